//! What every backend must do, whatever it is made of.
//!
//! [`all`] takes a backend and an image whose work tree is [`checkout`]'s. What a backend does not
//! promise is skipped, and said.

#![allow(
    dead_code,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "each test file uses a part; a failed unwrap is a failed test"
)]

mod commands;
mod files;
mod snapshots;

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
    time::Duration,
};

use code::RelativePath;
use sandbox::Limits;
use session::{Backend, Command, CommandOutcome, Image, Session};

/// Generous, as backends may be slow and machines busy.
pub(super) const LIMITS: Limits = Limits {
    wall: Duration::from_secs(120),
    cpu: Duration::from_secs(60),
    address_space: false,
    ..Limits::SMALL
};

/// Everything, in sessions of `backend` on `image`, whose work tree holds what [`checkout`] makes.
pub(super) async fn all(backend: &dyn Backend, image: &Image) {
    let before = image.checkout.as_deref().map(listing);
    let skip = |what: &str, why: &str| {
        eprintln!(
            "skipped for {}: {what}: {why}",
            backend.capabilities().backend
        );
    };

    let mut session = backend.start(image).await.unwrap();
    let s = session.as_mut();
    let capabilities = s.capabilities();
    eprintln!("conformance of {capabilities:?}");
    // What another machine promises is known when it has been asked.
    if capabilities.backend != "ssh" {
        assert_eq!(backend.capabilities(), capabilities);
    }
    commands::outcomes(s).await;
    commands::streams(s).await;
    commands::surroundings(s, image).await;
    commands::what_is_missing(s).await;
    commands::state_is_kept(s).await;
    commands::nothing_runs_on(s).await;
    files::read_write_remove(s).await;
    files::refusals(s).await;
    files::hostile_links(s).await;
    files::patches(s).await;
    commands::wall_timeout(s).await;
    match capabilities.cpu {
        session::Enforcement::None => skip("CPU timeout", "not enforced"),
        _ => commands::cpu_timeout(s).await,
    }
    match capabilities.memory {
        session::Enforcement::None => skip("memory", "not enforced"),
        _ => commands::memory(s).await,
    }
    match capabilities.no_network {
        true => commands::no_network(s).await,
        false => skip("no network", "not promised"),
    }
    session.stop().await.unwrap();

    let mut session = backend.start(image).await.unwrap();
    snapshots::changes_come_and_go(session.as_mut()).await;
    session.stop().await.unwrap();

    sessions_are_apart(backend, image).await;
    if let (Some(checkout), Some(before)) = (&image.checkout, before) {
        assert_eq!(listing(checkout), before, "the checkout was changed");
    }
}

/// Fills `folder` with the work tree that [`all`] expects.
pub(super) fn checkout(folder: &Path) {
    fs::create_dir_all(folder.join("package/inner")).unwrap();
    fs::write(folder.join("README"), "first\nsecond\nthird\n").unwrap();
    fs::write(folder.join("bytes"), b"\xff\0\n\xfe").unwrap();
    fs::write(folder.join("package/inner/module.py"), "VALUE = 1\n").unwrap();
    fs::write(folder.join("tool.sh"), "#!/bin/sh\necho tool \"$@\"\n").unwrap();
    fs::set_permissions(folder.join("tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("README", folder.join("link")).unwrap();
}

async fn sessions_are_apart(backend: &dyn Backend, image: &Image) {
    let mut one = backend.start(image).await.unwrap();
    let mut two = backend.start(image).await.unwrap();
    assert_ne!(one.id(), two.id());
    let (here, there) = tokio::join!(
        async {
            shell(one.as_mut(), "echo one > mine; echo changed > README").await;
            shell(one.as_mut(), "cat mine README").await
        },
        shell(
            two.as_mut(),
            "sleep 0.2; cat README; test -e mine || echo none"
        ),
    );
    assert_eq!(here, "one\nchanged\n");
    assert_eq!(there, "first\nsecond\nthird\nnone\n");
    one.stop().await.unwrap();
    // Ended by being dropped, while the other goes.
    drop(two);
}

/// Path, kind and permissions, size, time of change and content of everything below `folder`.
pub(super) fn listing(folder: &Path) -> Vec<(String, u32, u64, i64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let data = fs::symlink_metadata(&path).unwrap();
            let content = match data.is_file() {
                true => fs::read(&path).unwrap(),
                false => Vec::new(),
            };
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            found.push((
                name,
                data.mode(),
                data.uid().into(),
                data.mtime_nsec(),
                content,
            ));
            if data.is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

pub(super) fn path(text: &str) -> RelativePath {
    RelativePath::new(text).unwrap()
}

pub(super) async fn run(session: &mut dyn Session, script: &str) -> CommandOutcome {
    session.exec(&Command::shell(script, LIMITS)).await.unwrap()
}

/// The standard output of a script that must end well.
pub(super) async fn shell(session: &mut dyn Session, script: &str) -> String {
    let outcome = run(session, script).await;
    let errors = outcome.stderr.text();
    assert!(outcome.is_ok(), "{script}: {:?}: {errors}", outcome.status);
    outcome.stdout.text()
}
