//! The work tree put aside and brought back.

use session::{Session, SessionError, SnapshotId};

use super::{path, shell};

/// Everything in the work tree that a snapshot keeps: names, kinds, permissions, links, contents.
const STATE: &str = "find . | sort | while read -r f; do \
    if test -L \"$f\"; then echo \"$f -> $(readlink \"$f\")\"; \
    elif test -d \"$f\"; then stat -c '%n %a folder' \"$f\"; \
    else stat -c '%n %a %s' \"$f\"; sha256sum < \"$f\"; fi; done";

pub(super) async fn changes_come_and_go(s: &mut dyn Session) {
    let fresh = shell(s, STATE).await;
    let first = s.snapshot().await.unwrap();
    assert_eq!(shell(s, STATE).await, fresh, "a snapshot changes nothing");

    shell(
        s,
        "echo changed > README; rm bytes; mkdir added; echo a > added/file; chmod 700 package; \
         chmod 600 tool.sh; rm link; ln -s bytes link; rm -r package/inner; mkdir package/inner; \
         echo other > package/inner/other; ln README hard",
    )
    .await;
    let changed = shell(s, STATE).await;
    assert_ne!(changed, fresh);
    let second = s.snapshot().await.unwrap();
    assert_ne!(first, second);
    assert_eq!(shell(s, STATE).await, changed);

    s.restore(&first).await.unwrap();
    assert_eq!(shell(s, STATE).await, fresh);
    // What is changed now belongs to no snapshot.
    shell(s, "echo lost > lost; rm -r package; rm README").await;
    s.restore(&second).await.unwrap();
    assert_eq!(shell(s, STATE).await, changed);
    shell(s, "rm -r added").await;
    let third = s.snapshot().await.unwrap();
    let trimmed = shell(s, STATE).await;
    for _ in 0..2 {
        s.restore(&first).await.unwrap();
        assert_eq!(shell(s, STATE).await, fresh);
        s.restore(&third).await.unwrap();
        assert_eq!(shell(s, STATE).await, trimmed);
        s.restore(&second).await.unwrap();
        assert_eq!(shell(s, STATE).await, changed);
    }
    // Files can be written and commands run as before.
    s.write(&path("after"), b"after", 0o644).await.unwrap();
    assert_eq!(shell(s, "cat after added/file").await, "aftera\n");

    let unknown = SnapshotId("never-made".to_owned());
    let refused = s.restore(&unknown).await;
    assert_eq!(
        refused,
        Err(SessionError::NoSuchSnapshot { snapshot: unknown })
    );
    assert_eq!(shell(s, "cat after").await, "after");
}
