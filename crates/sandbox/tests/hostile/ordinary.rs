//! The same rows as an ordinary user, when these tests are run by root: other rights, no control
//! groups, so that other mechanisms hold the limits.

use std::{
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use crate::common::{config, is_root, start};

/// Somebody without rights, groups or a home.
const ORDINARY: u32 = 54_321;

#[test]
fn the_rows_hold_for_an_ordinary_user_too() {
    if !is_root() {
        eprintln!("SKIPPED: not root, so the rows were run as an ordinary user already");
        return;
    }
    let output = Command::new("/proc/self/exe")
        .args(["--test-threads", "4", "row_", "tiers_of"])
        .args(["--nocapture"])
        .current_dir("/")
        .env("TMPDIR", "/tmp")
        .uid(ORDINARY)
        .gid(ORDINARY)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains("row_38") || out.contains("row_37"), "{out}");
    println!("{out}");
}

/// What works here, for people to read: `cargo test tiers_of -- --nocapture`.
#[test]
fn tiers_of_this_user_are_told() {
    let who = if is_root() { "root" } else { "ordinary" };
    for tier in sandbox::Tier::ALL {
        match start(config(tier, 1)) {
            Some(sandbox) => println!("{who}: {tier}: {}", sandbox.enforced()),
            None => println!("{who}: {tier} does not work"),
        }
    }
}
