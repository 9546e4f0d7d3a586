//! Files of the work tree: read, written, removed, patched; and whatever commands put in their way.

use code::Patch;
use session::{PatchError, Session, SessionError};

use super::{path, shell};

const MOST: u64 = 1 << 20;

pub(super) async fn read_write_remove(s: &mut dyn Session) {
    assert_eq!(
        s.read(&path("tool.sh"), MOST).await.unwrap(),
        b"#!/bin/sh\necho tool \"$@\"\n"
    );
    let bytes: Vec<u8> = (0..=255).cycle().take(70_001).collect();
    s.write(&path("new/deep/file"), &bytes, 0o640)
        .await
        .unwrap();
    assert_eq!(s.read(&path("new/deep/file"), 70_001).await.unwrap(), bytes);
    assert_eq!(shell(s, "stat -c %a new/deep/file").await, "640\n");
    s.write(&path("new/deep/file"), b"", 0o644).await.unwrap();
    assert_eq!(s.read(&path("new/deep/file"), 0).await.unwrap(), b"");
    s.write(&path("run.sh"), b"#!/bin/sh\necho ran\n", 0o755)
        .await
        .unwrap();
    assert_eq!(shell(s, "./run.sh").await, "ran\n");
    // What commands wrote can be written over, and they can change what was written.
    shell(s, "echo theirs > theirs; echo more >> run.sh").await;
    s.write(&path("theirs"), b"ours", 0o600).await.unwrap();
    assert_eq!(shell(s, "cat theirs; stat -c %a theirs").await, "ours600\n");
    s.remove(&path("theirs")).await.unwrap();
    assert_eq!(shell(s, "test -e theirs || echo none").await, "none\n");
    let names = [
        "sp ace",
        "-rf",
        "quote'\"",
        "new\nline",
        "\u{fc}ml\u{e4}ut",
        "$HOME",
        "*",
    ];
    for name in names {
        match s.write(&path(name), name.as_bytes(), 0o644).await {
            Err(SessionError::Unsupported { detail, .. }) => {
                eprintln!("skipped: the name {name:?}: {detail}");
                continue;
            }
            written => written.unwrap(),
        }
        assert_eq!(s.read(&path(name), MOST).await.unwrap(), name.as_bytes());
        s.remove(&path(name)).await.unwrap();
        let gone = s.read(&path(name), MOST).await;
        assert_eq!(gone, Err(SessionError::NotFound { path: path(name) }));
    }
}

pub(super) async fn refusals(s: &mut dyn Session) {
    shell(
        s,
        "mkfifo fifo; ln -s nowhere dangling; ln -s package folder-link; echo 12345 > five",
    )
    .await;
    for absent in ["absent", "absent/below"] {
        let not_found = SessionError::NotFound { path: path(absent) };
        assert_eq!(s.read(&path(absent), MOST).await, Err(not_found.clone()));
        assert_eq!(s.remove(&path(absent)).await, Err(not_found));
    }
    for odd in [
        "package",
        "link",
        "dangling",
        "fifo",
        "folder-link",
        "folder-link/inner/module.py",
    ] {
        let read = s.read(&path(odd), MOST).await;
        assert!(
            matches!(&read, Err(SessionError::NotAFile { path: p, .. }) if odd.starts_with(p.as_str())),
            "{odd}: {read:?}"
        );
    }
    for odd in [
        "folder-link/new",
        "folder-link/inner/new",
        "dangling/new",
        "README/new",
        "package",
    ] {
        let written = s.write(&path(odd), b"x", 0o644).await;
        assert!(
            matches!(written, Err(SessionError::NotAFile { .. })),
            "{odd}: {written:?}"
        );
    }
    let removed = s.remove(&path("package")).await;
    assert!(
        matches!(removed, Err(SessionError::NotAFile { .. })),
        "{removed:?}"
    );
    let removed = s.remove(&path("folder-link/inner/module.py")).await;
    assert!(
        matches!(removed, Err(SessionError::NotAFile { .. })),
        "{removed:?}"
    );
    assert_eq!(
        s.read(&path("five"), 5).await,
        Err(SessionError::FileTooLarge {
            path: path("five"),
            bytes: 6,
            limit: 5
        })
    );
    assert_eq!(s.read(&path("five"), 6).await.unwrap(), b"12345\n");
    assert_eq!(
        shell(s, "ls package package/inner | sort -u")
            .await
            .replace("__pycache__\n", ""),
        "\ninner\nmodule.py\npackage/inner:\npackage:\n"
    );
}

pub(super) async fn hostile_links(s: &mut dyn Session) {
    shell(s, "ln -s /etc/passwd passwd; ln -s / root; ln -s ../.. up; echo keep > target; ln -s target over").await;
    for link in ["passwd", "root/etc/passwd", "up/etc/passwd"] {
        let read = s.read(&path(link), MOST).await;
        assert!(
            matches!(read, Err(SessionError::NotAFile { .. })),
            "{link}: {read:?}"
        );
    }
    for link in ["root/tmp/escaped", "up/tmp/escaped"] {
        let written = s.write(&path(link), b"x", 0o644).await;
        assert!(
            matches!(written, Err(SessionError::NotAFile { .. })),
            "{link}: {written:?}"
        );
    }
    // A link is replaced or removed, and what it leads to stays.
    s.write(&path("over"), b"new", 0o644).await.unwrap();
    assert_eq!(
        shell(s, "cat target over; test -L over || echo file").await,
        "keep\nnewfile\n"
    );
    shell(s, "ln -sf target over").await;
    s.remove(&path("over")).await.unwrap();
    assert_eq!(
        shell(s, "cat target; test -L over || echo gone").await,
        "keep\ngone\n"
    );
    shell(s, "rm -f passwd root up").await;
}

pub(super) async fn patches(s: &mut dyn Session) {
    let before = "one\ntwo\nthree\n";
    s.write(&path("patched/a"), before.as_bytes(), 0o755)
        .await
        .unwrap();
    s.write(&path("patched/old"), b"old\n", 0o600)
        .await
        .unwrap();
    let text = "\
--- a/patched/a
+++ b/patched/a
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
--- a/patched/old
+++ /dev/null
@@ -1 +0,0 @@
-old
--- /dev/null
+++ b/patched/folder/new
@@ -0,0 +1 @@
+new
";
    let patch = Patch::parse(text.as_bytes()).unwrap();
    let report = s.apply_patch(&patch).await.unwrap();
    assert_eq!(report.hunks.len(), 3);
    let told = shell(
        s,
        "cat patched/a patched/folder/new; stat -c %a patched/a; test -e patched/old || echo gone",
    )
    .await;
    assert_eq!(told, "one\nTWO\nthree\nnew\n755\ngone\n");

    // It does not fit any more, and nothing of it is done.
    let rejected = s.apply_patch(&patch).await;
    assert!(
        matches!(rejected, Err(PatchError::Rejected(_))),
        "{rejected:?}"
    );
    assert_eq!(
        s.read(&path("patched/a"), MOST).await.unwrap(),
        b"one\nTWO\nthree\n"
    );

    // A file that cannot be written: what was written before it is put back.
    shell(s, "ln -s /tmp patched/z").await;
    let text = "\
--- a/patched/a
+++ b/patched/a
@@ -1,3 +1,3 @@
 one
-TWO
+2
 three
--- /dev/null
+++ b/patched/z/new
@@ -0,0 +1 @@
+new
";
    let patch = Patch::parse(text.as_bytes()).unwrap();
    let refused = s.apply_patch(&patch).await;
    let not_a_file =
        |error: &PatchError| matches!(error, PatchError::Session(SessionError::NotAFile { .. }));
    assert!(refused.as_ref().is_err_and(not_a_file), "{refused:?}");
    assert_eq!(
        shell(s, "cat patched/a; test -e /tmp/new || echo none").await,
        "one\nTWO\nthree\nnone\n"
    );
    shell(s, "rm patched/z").await;
}
