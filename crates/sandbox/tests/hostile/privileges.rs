//! What only the machine's owner may do.

use sandbox::{Job, Status};

use crate::common::{ALL, ATTEMPT, TIGHT, WALLED, at, reaches_nothing};

fn attempts(calls: &[String]) -> String {
    let calls: Vec<String> = calls.iter().map(|call| format!("lambda: {call}")).collect();
    format!("{ATTEMPT}\nattempt({})", calls.join(", "))
}

fn syscall(number: libc::c_long, arguments: &str) -> String {
    format!("sys({number}, {arguments})")
}

#[tokio::test]
async fn row_17_namespaces_and_mounts_cannot_be_changed() {
    let mut calls = vec![
        syscall(libc::SYS_mount, "0, b'/tmp', b'tmpfs', 0, 0"),
        syscall(libc::SYS_umount2, "b'/proc', 2"),
        syscall(libc::SYS_pivot_root, "b'.', b'.'"),
        syscall(libc::SYS_fsopen, "b'tmpfs', 0"),
        syscall(libc::SYS_open_tree, "-100, b'/', 1"),
        syscall(libc::SYS_move_mount, "0, b'', 0, b'', 0"),
        syscall(libc::SYS_mount_setattr, "-100, b'/', 0, 0, 0"),
        syscall(libc::SYS_setns, "os.open('/proc/self/ns/mnt', 0), 0"),
        syscall(libc::SYS_clone3, "0, 0"),
        "os.chroot('/tmp')".to_owned(),
    ];
    for flag in [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ] {
        calls.push(syscall(libc::SYS_unshare, &flag.to_string()));
        calls.push(syscall(
            libc::SYS_clone,
            &format!("{}, 0, 0, 0, 0", flag | libc::SIGCHLD),
        ));
    }
    for sandbox in at(ALL) {
        reaches_nothing(&sandbox, &attempts(&calls)).await;
    }
}

#[tokio::test]
async fn row_18_dangerous_parts_of_the_kernel_are_out_of_reach() {
    let calls = [
        syscall(libc::SYS_bpf, "0, 0, 0"),
        syscall(libc::SYS_perf_event_open, "0, 0, 0, -1, 0"),
        syscall(libc::SYS_io_uring_setup, "1, b'\\0' * 200"),
        syscall(libc::SYS_userfaultfd, "1"),
        syscall(libc::SYS_keyctl, "0, -3, 0"),
        syscall(libc::SYS_add_key, "b'user', b'x', b'x', 1, -3"),
        syscall(libc::SYS_request_key, "b'user', b'x', 0, -3"),
        syscall(libc::SYS_memfd_secret, "0"),
        syscall(
            libc::SYS_name_to_handle_at,
            "-100, b'/', b'\\0' * 200, b'\\0' * 8, 0",
        ),
        syscall(libc::SYS_open_by_handle_at, "3, b'\\0' * 200, 0"),
        syscall(libc::SYS_pidfd_getfd, "3, 0, 0"),
        syscall(libc::SYS_kcmp, "1, 1, 0, 0, 0"),
        syscall(libc::SYS_personality, "0x20000"),
        syscall(libc::SYS_reboot, "0, 0, 0"),
        syscall(libc::SYS_kexec_load, "0, 0, 0, 0"),
        syscall(libc::SYS_init_module, "0, 0, b''"),
        syscall(libc::SYS_syslog, "3, b'\\0' * 100, 99"),
        syscall(libc::SYS_fanotify_init, "0, 0"),
        syscall(libc::SYS_swapon, "b'x', 0"),
        syscall(libc::SYS_quotactl, "0, 0, 0, 0"),
        syscall(libc::SYS_acct, "0"),
        // The same calls by another numbering.
        "sys(0x40000000 + 39)".to_owned(),
    ];
    for sandbox in at(ALL) {
        reaches_nothing(&sandbox, &attempts(&calls)).await;
    }
}

#[tokio::test]
async fn row_19_devices_cannot_be_made() {
    let calls = [
        "os.mknod('d', 0o60600, os.makedev(254, 0))",
        "os.mknod('c', 0o20600, os.makedev(1, 1))",
        "os.mknod('/dev/d', 0o60600, os.makedev(8, 0))",
        "open('/dev/sda', 'rb')",
        "open('/dev/vda', 'rb')",
        "open('/dev/loop-control', 'rb')",
        "open('/dev/kvm', 'rb')",
    ]
    .map(str::to_owned);
    for sandbox in at(ALL) {
        reaches_nothing(&sandbox, &attempts(&calls)).await;
    }
}

#[tokio::test]
async fn row_20_nobody_becomes_somebody_else() {
    use std::os::unix::fs::PermissionsExt;
    let known = [
        "/usr/bin/umount",
        "/usr/bin/newgrp",
        "/usr/bin/su",
        "/usr/bin/passwd",
    ];
    let privileged = known.iter().find(|path| {
        let found = std::fs::metadata(path);
        found.is_ok_and(|found| found.permissions().mode() & 0o4000 != 0)
    });
    for sandbox in at(ALL) {
        let source = format!(
            "{ATTEMPT}
def raise_limits():
    import resource
    try: resource.setrlimit(resource.RLIMIT_NPROC, (10**6, 10**6))
    except ValueError: raise OSError
attempt(
    lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.setreuid(-1, 0), lambda: os.setresgid(0, 0, 0),
    lambda: os.setpriority(os.PRIO_PROCESS, 0, -5), raise_limits, lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
)
try: status = dict(line.rstrip('\\n').split(':\\t', 1) for line in open('/proc/self/status'))
except PermissionError: status = dict.fromkeys(('CapPrm', 'CapEff', 'CapAmb', 'CapInh'), '0') | {{'NoNewPrivs': '1', 'Seccomp': '2'}}
print('no' if all(int(status[name], 16) == 0 for name in ('CapPrm', 'CapEff', 'CapAmb', 'CapInh')) else status)
print('no' if status['NoNewPrivs'] == '1' and status['Seccomp'] == '2' else status)
"
        );
        reaches_nothing(&sandbox, &source).await;
        let Some(privileged) = privileged else {
            eprintln!("SKIPPED: no set-user-id program here");
            continue;
        };
        // The loader shows who a program runs as, unless the program gains rights.
        let mut job = Job::exec([*privileged, "--version"], TIGHT);
        job.env.push(("LD_SHOW_AUXV".to_owned(), "1".to_owned()));
        let outcome = sandbox.run(job).await.unwrap();
        let shown = outcome.stdout.text();
        let euid = shown.lines().find_map(|line| line.strip_prefix("AT_EUID:"));
        assert!(
            euid.is_some_and(|id| id.trim() != "0"),
            "{}: {shown}",
            sandbox.tier()
        );
        assert!(shown.contains("AT_SECURE:            0"), "{shown}");
        // One of the program's own making.
        let own = "import os, shutil, subprocess
shutil.copy('/usr/bin/id', 'id'); os.chmod('id', 0o6755)
print(subprocess.run(['./id', '-u'], capture_output=True).stdout != b'0\\n')";
        let outcome = sandbox.run(Job::script(own, TIGHT)).await.unwrap();
        assert_eq!(
            (outcome.status, outcome.stdout.text().as_str()),
            (Status::Ok, "True\n")
        );
    }
}

#[tokio::test]
async fn row_28_terminals_are_out_of_reach() {
    for sandbox in at(WALLED) {
        let source = format!(
            "{ATTEMPT}
import fcntl, errno
attempt(
    lambda: open('/dev/tty', 'r+b'), lambda: open('/dev/console', 'w'), lambda: open('/dev/tty1', 'w'), lambda: os.openpty(),
    lambda: os.ttyname(0), lambda: os.tcgetpgrp(0),
)
def refused(request, fd=0):
    try: fcntl.ioctl(fd, request, b'x')
    except OSError as e: return e.errno == errno.EPERM
for fd in (0, 1, 2):
    # Refused as such, whatever is behind the descriptor.
    print('no' if refused(0x5412, fd) and refused(0x541c, fd) else 'reached')
    libc.syscall(ctypes.c_long({ioctl}), ctypes.c_long(fd), ctypes.c_ulong(0x100005412), b'x')
    print('no' if ctypes.get_errno() == errno.EPERM else 'reached')
print('no' if os.getsid(0) == os.getpid() else 'reached')
try: print('no' if open('/proc/self/stat').read().rsplit(')', 1)[1].split()[4] == '0' else 'a terminal')
except PermissionError: pass
",
            ioctl = libc::SYS_ioctl,
        );
        reaches_nothing(&sandbox, &source).await;
    }
}
