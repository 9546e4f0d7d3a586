//! What the weakest tier lets through. It has no walls around files and processes, only a filter of
//! system calls; these facts are why it must be asked for.

use std::os::unix::fs::PermissionsExt;

use sandbox::SandboxError;

use crate::common::{Tier, at, run};

#[tokio::test]
async fn the_weakest_tier_lets_programs_read_what_anybody_may() {
    let open = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(open.path(), "not for you").unwrap();
    std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let own = std::process::id();
    for sandbox in at(&[Tier::Limits]) {
        let source = format!(
            "import os
print(open('{}').read(), os.path.isdir('/proc/{own}'), 'root' in open('/etc/passwd').read())",
            open.path().display()
        );
        let seen = run(&sandbox, source).await;
        assert_eq!(
            seen.stdout.text(),
            "not for you True True\n",
            "{}",
            seen.stderr.text()
        );
    }
}

#[tokio::test]
async fn the_weakest_tier_lets_programs_write_where_anybody_may() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let left = folder.path().join("left");
    for sandbox in at(&[Tier::Limits]) {
        let write = format!("open('{}', 'w').write('x')", left.display());
        assert!(run(&sandbox, write).await.is_ok());
        assert_eq!(std::fs::read(&left).unwrap(), b"x");
        let read = format!("print(open('{}').read())", left.display());
        assert_eq!(
            run(&sandbox, read).await.stdout.text(),
            "x\n",
            "from run to run"
        );
    }
}

#[tokio::test]
async fn the_weakest_tier_lets_programs_end_their_slot() {
    for sandbox in at(&[Tier::Limits]) {
        let job =
            sandbox::Job::script("import os\nos.kill(os.getppid(), 15)", crate::common::TIGHT);
        // A fault of the machinery, not an outcome: it can neither pass nor count as a failure.
        let lost = sandbox.run(job).await;
        let is_fault = matches!(
            lost,
            Err(SandboxError::Setup { .. } | SandboxError::SlotLost { .. })
        );
        assert!(is_fault, "{lost:?}");
        assert!(run(&sandbox, "print(1)").await.is_ok());
    }
}
