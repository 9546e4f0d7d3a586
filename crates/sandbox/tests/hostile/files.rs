//! Disks that fill up, files of the host, and files that are not what they seem.

use std::os::unix::fs::PermissionsExt;

use sandbox::{Job, NotFetched, SandboxError, Status};

use crate::common::{
    ALL, ATTEMPT, TIGHT, Tier, WALLED, at, config, ends_as, job_ends_as, reaches_nothing, run,
    start,
};

#[tokio::test]
async fn row_04_the_disk_is_bounded() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    for tier in ALL {
        let mut config = config(*tier, 1);
        config.scratch = scratch.path().to_owned();
        let Some(sandbox) = start(config) else {
            continue;
        };
        for source in [
            "f = open('x', 'wb')\nwhile True: f.write(bytes(1 << 20))",
            "f = open('x', 'wb')\nf.truncate(1 << 40)",
            "import os\nos.posix_fallocate(os.open('x', os.O_CREAT | os.O_RDWR), 0, 1 << 30)",
            "
i = 0
while True:
    i += 1
    with open(str(i), 'wb') as f: f.write(bytes(3 << 20))",
            "
import os
i = 0
while True:
    i += 1
    os.mkdir(str(i)); fd = os.open(str(i), os.O_RDONLY)
    with open(os.open('x', os.O_CREAT | os.O_WRONLY, dir_fd=fd), 'wb') as f: f.write(bytes(3 << 20))
    os.fchmod(fd, 0); os.close(fd)",
        ] {
            ends_as(&sandbox, source, &[Status::Disk]).await;
            let found = run(&sandbox, "import os; print(os.listdir('.'))").await;
            assert_eq!(found.stdout.text(), "['main.py']\n", "{tier}");
        }
        if *tier == Tier::Namespaces {
            let elsewhere = "f = open('/tmp/x', 'wb')\nwhile True: f.write(bytes(1 << 20))";
            ends_as(&sandbox, elsewhere, &[Status::Disk]).await;
            let caught = "
try:
    for i in range(9): open('/tmp/%d' % i, 'wb').write(bytes(1 << 20))
except OSError as e: print(e.errno)";
            let outcome = ends_as(&sandbox, caught, &[Status::Ok]).await;
            assert_eq!(outcome.stdout.text(), "28\n");
        }
    }
}

#[tokio::test]
async fn row_05_many_files_and_deep_folders_are_bounded_and_removed() {
    for sandbox in at(ALL) {
        for source in [
            "for i in range(10**6): open(str(i), 'w').close()",
            "import os\nfor i in range(10**6): os.symlink('x', str(i))",
            "import os\nfor i in range(10**6): os.mkdir('d'); os.chdir('d')",
            "import os\nfor i in range(10**6): os.mkdir('d' * 200); os.chdir('d' * 200)",
        ] {
            // Where it is watched only, the CPU limit may come first.
            let statuses = match sandbox.tier() {
                Tier::Namespaces => &[Status::Disk][..],
                _ => &[Status::Disk, Status::CpuTimeout],
            };
            ends_as(&sandbox, source, statuses).await;
            let found = run(&sandbox, "import os; print(os.listdir('.'))").await;
            assert_eq!(found.stdout.text(), "['main.py']\n", "{}", sandbox.tier());
        }
        let locked = "
import os
for i in range(200): os.mkdir('d'); os.chdir('d')
os.chdir('/box' if os.path.isdir('/box') else os.path.expanduser('~'))
os.makedirs('locked/inner'); open('locked/inner/x', 'w').close()
os.chmod('locked/inner', 0); os.chmod('locked', 0); os.chmod('.', 0)";
        ends_as(&sandbox, locked, &[Status::Ok]).await;
        let found = run(&sandbox, "import os; print(os.listdir('.'))").await;
        assert_eq!(found.stdout.text(), "['main.py']\n", "{}", sandbox.tier());
    }
}

#[tokio::test]
async fn row_14_files_of_the_host_are_out_of_sight() {
    let checkout = env!("CARGO_MANIFEST_DIR");
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "secret").unwrap();
    std::fs::set_permissions(secret.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    for sandbox in at(WALLED) {
        let secret = secret.path().display();
        let source = format!(
            "{ATTEMPT}
read = lambda path: lambda: open(path, 'rb').read(100)
ls = lambda path: lambda: os.listdir(path)
attempt(
    read('/etc/shadow'), read('/etc/machine-id'), ls('/root'), ls('/home'), ls('/var'), ls('/sys'), ls('/run'), ls('{checkout}'),
    read('{checkout}/Cargo.toml'), read('{secret}'), ls('/etc/ssh'), ls('/boot'), ls('/mnt'), ls('/srv'),
    read('/dev/mem'), read('/dev/vda'), read('/dev/kmsg'), read('/dev/fuse'), read('/proc/kcore'), read('/proc/kmsg'),
    ls('/proc/1/root'), ls('/proc/1/cwd'), read('/proc/1/mem'),
    lambda: open('../../../../../..{secret}').read(), lambda: open('/proc/self/root{secret}').read(),
    lambda: os.symlink('{secret}', 'link') or open('link').read(),
    lambda: os.link('{secret}', 'hard') or open('hard').read(),
    lambda: os.open('{secret}', os.O_PATH) and open('/proc/self/fd/3').read(),
)"
        );
        reaches_nothing(&sandbox, &source).await;
    }
}

#[tokio::test]
async fn row_15_no_variables_or_credentials_come_along() {
    let own = std::process::id();
    for sandbox in at(ALL) {
        let source = format!(
            "{ATTEMPT}
names = {NAMES}
print('no' if sorted(os.environ) == names else os.environ)
try: environ = open('/proc/self/environ').read().split('\\0')
except PermissionError: environ = []
print('no' if all(v.split('=')[0] in names for v in environ if v) else environ)
attempt(
    lambda: open('/proc/1/environ').read(), lambda: open('/proc/%d/environ' % (os.getppid() or 1)).read(),
    lambda: open('/proc/{own}/environ').read() if {other_user} else open('/no'), lambda: open(os.path.expanduser('~/.netrc')).read(),
    lambda: os.listdir('/root/.ssh'), lambda: open('/proc/self/loginuid').read(-1) and os.open('/none', 0),
)
groups = [g for g in os.getgroups() if g not in (os.getgid(), 65534)]
print('no' if not groups or {same_groups} else groups)
",
            // The weakest tier as an ordinary user: see `weakest`.
            other_user = if sandbox.tier() == Tier::Limits && !crate::common::is_root() { "False" } else { "True" },
            same_groups = if crate::common::is_root() { "False" } else { "True" },
        );
        reaches_nothing(&sandbox, &source).await;
    }
}

const NAMES: &str = "['HOME', 'LANG', 'MALLOC_ARENA_MAX', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'PATH', 'PYTHONDONTWRITEBYTECODE', 'PYTHONHASHSEED', 'PYTHONUTF8', 'TMPDIR']";

#[tokio::test]
async fn row_21_the_system_cannot_be_written() {
    for sandbox in at(ALL) {
        let source = format!(
            "{ATTEMPT}
attempt(
    lambda: open('/usr/x', 'w'), lambda: open('/etc/x', 'w'), lambda: open('/x', 'w'), lambda: open('/dev/x', 'w'),
    lambda: open('/usr/bin/env', 'r+b'), lambda: os.unlink('/usr/bin/env'), lambda: os.rename('/usr', '/usr2'),
    lambda: put('/proc/sys/kernel/hostname', 'x'), lambda: put('/proc/sys/kernel/core_pattern', '|/box/x'),
    lambda: put('/proc/sys/vm/drop_caches', '1'), lambda: os.chmod('/usr/bin/env', 0o777),
    lambda: os.chown('/usr/bin/env', 1000, 1000), lambda: os.utime('/usr/bin/env'), lambda: os.truncate('/usr/bin/env', 0),
    lambda: put('/proc/sysrq-trigger', 'h'), lambda: put('/sys/power/state', 'mem'),
    lambda: os.setxattr('/usr/bin/env', 'user.x', b'1'), lambda: put('/proc/sys/kernel/shmmax', '1'),
    lambda: put('/proc/1/oom_score_adj', '-1000'), lambda: put('/proc/self/oom_score_adj', '-1'),
    lambda: os.mkdir('/sys/fs/cgroup/x'), lambda: put('/sys/fs/cgroup/cgroup.procs', '0'), lambda: put('/sys/fs/cgroup/memory/cgroup.procs', '0'),
)
"
        );
        reaches_nothing(&sandbox, &source).await;
    }
}

#[tokio::test]
async fn row_26_links_and_pipes_do_not_mislead_the_host() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "secret").unwrap();
    let target = secret.path().display();
    for sandbox in at(ALL) {
        let source = format!(
            "
import os, socket
os.symlink('{target}', 'link'); os.symlink('/etc', 'folder'); os.symlink('/proc/self/root', 'magic')
os.mkfifo('fifo'); os.makedirs('real/inner'); open('real/inner/file', 'w').write('mine')
os.symlink('real', 'inside')
try: os.link('/usr/bin/env', 'hard')
except OSError: pass
try: socket.socket(socket.AF_UNIX).bind('socket')
except OSError: os.mkfifo('socket')
os.symlink('loop', 'loop'); os.symlink('/proc/self/fd/0', 'descriptor')
if os.fork() == 0:
    while True:
        for a, b in (('file', '{target}'), ('x', 'file')):
            try: os.symlink(b, 'swap2'); os.rename('swap2', 'swap')
            except OSError: pass
open('swap3', 'w').write('mine')
"
        );
        let fetched = [
            "link",
            "folder/passwd",
            "magic/etc/passwd",
            "fifo",
            "real/inner",
            "inside/inner/file",
            "socket",
            "loop",
            "descriptor",
            "swap",
        ];
        let job = Job::script(source, TIGHT).with_fetch(fetched).with_fetch([
            "real/inner/file",
            "swap3",
            "hard",
        ]);
        let outcome = job_ends_as(&sandbox, job, &[Status::Ok]).await;
        for file in &outcome.files[..fetched.len()] {
            let refused = matches!(file.contents, Err(NotFetched::NotRegular))
                || (file.path == "swap" && file.contents == Err(NotFetched::Missing));
            assert!(refused, "{}: {file:?}", sandbox.tier());
        }
        let [mine, swap3, hard] = &outcome.files[fetched.len()..] else {
            panic!("{:?}", outcome.files);
        };
        assert_eq!(mine.contents.as_deref(), Ok(&b"mine"[..]));
        assert_eq!(swap3.contents.as_deref(), Ok(&b"mine"[..]));
        assert_eq!(
            hard.contents,
            Err(NotFetched::Missing),
            "{}",
            sandbox.tier()
        );
        // A link left behind is not written through by the files of the next job.
        let leave = format!("import os\nos.symlink('{target}', 'next'); os.symlink('/tmp', 'way')");
        ends_as(&sandbox, &leave, &[Status::Ok]).await;
        let job = Job::script("print(open('next').read())", TIGHT)
            .with_file("next", "new")
            .with_file("way/file", "new");
        assert_eq!(sandbox.run(job).await.unwrap().stdout.text(), "new\n");
        assert_eq!(std::fs::read(secret.path()).unwrap(), b"secret");
        for path in ["../x", "/etc/passwd", "a/../../x", "..", ""] {
            let read = Job::script("", TIGHT).with_fetch([path]);
            let write = Job::script("", TIGHT).with_file(path, "x");
            for job in [read, write] {
                let refused = sandbox.run(job).await;
                assert!(
                    matches!(refused, Err(SandboxError::Invalid { .. })),
                    "{path}: {refused:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn row_27_archives_explode_inside_only() {
    for sandbox in at(ALL) {
        let bomb = "
import io, tarfile, zipfile
with zipfile.ZipFile('bomb.zip', 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
    for i in range(40): archive.writestr(str(i), bytes(1 << 20))
with zipfile.ZipFile('bomb.zip') as archive: archive.extractall('out')";
        ends_as(&sandbox, bomb, &[Status::Disk]).await;
        let many = "
import zipfile
with zipfile.ZipFile('bomb.zip', 'w') as archive:
    for i in range(4000): archive.writestr('d%d/f' % i, b'')
with zipfile.ZipFile('bomb.zip') as archive: archive.extractall('out')";
        ends_as(&sandbox, many, &[Status::Disk, Status::CpuTimeout]).await;
        let escape = format!(
            "{ATTEMPT}
import io, tarfile
data = io.BytesIO()
with tarfile.open(fileobj=data, mode='w') as archive:
    for name in ('../../../../etc/escaped', '/usr/escaped', '/escaped'):
        archive.addfile(tarfile.TarInfo(name), io.BytesIO())
data.seek(0)
archive = tarfile.open(fileobj=data)
for member in archive.getmembers(): attempt(lambda: archive._extract_member(member, os.path.join('/', member.name)))"
        );
        reaches_nothing(&sandbox, &escape).await;
        for path in ["/etc/escaped", "/usr/escaped", "/escaped"] {
            assert!(!std::path::Path::new(path).exists(), "{path}");
        }
    }
}
