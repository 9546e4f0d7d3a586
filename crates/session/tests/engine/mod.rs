//! A container engine of a test's own: Podman's service with its own storage, on a socket in a
//! scratch folder, and an image with busybox. Everything ends with it. Where `ETUDE_TEST_CONTAINER_ENGINE`
//! is `docker`, it is Docker's daemon.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    dead_code,
    reason = "shared by tests, which start processes and stop at the first surprise"
)]

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

/// The image that every engine here has.
pub(crate) const IMAGE: &str = "localhost/etude-test:latest";
/// An image without a shell.
pub(crate) const BARE: &str = "localhost/etude-bare:latest";

const APPLETS: &str = "sh ash cat chmod chown cp dd echo env false find fuser grep head id kill \
    ln ls mkdir mkfifo mknod mv nohup od printf ps pwd readlink rm rmdir sed seq setsid sha256sum \
    sleep sort stat tail test touch tr true uname wc yes";

pub(crate) struct TestEngine {
    folder: tempfile::TempDir,
    service: Child,
}

impl TestEngine {
    /// `None`, with the reason printed, where Podman, runc or a static busybox is missing or they
    /// cannot run containers.
    pub(crate) fn start() -> Option<Self> {
        let busybox = match missing() {
            Ok(busybox) => busybox,
            Err(reason) => {
                eprintln!("skipped: {reason}");
                return None;
            }
        };
        let folder = tempfile::Builder::new()
            .prefix("etude-engine-")
            .tempdir()
            .unwrap();
        if is_docker() {
            return Self::docker(folder, &busybox);
        }
        // Locks in files: those in shared memory are shared by all engines of the machine.
        let settings = "[engine]\nlock_type = \"file\"\nevents_logger = \"none\"\n\
            cgroup_manager = \"cgroupfs\"\nruntime = \"runc\"\n";
        fs::write(folder.path().join("containers.conf"), settings).unwrap();
        let socket = folder.path().join("engine.sock");
        let service = podman(folder.path())
            .args(["system", "service", "--time", "0"])
            .arg(format!("unix://{}", socket.display()))
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.path().join("service.log")).unwrap())
            .spawn()
            .unwrap();
        Self { folder, service }.filled(&busybox)
    }

    fn docker(folder: tempfile::TempDir, busybox: &Path) -> Option<Self> {
        let named = |name: &str| folder.path().join(name);
        let service = Command::new("dockerd")
            .arg("--data-root")
            .arg(named("root"))
            .arg("--exec-root")
            .arg(named("run"))
            .arg("--pidfile")
            .arg(named("pid"))
            .arg("--host")
            .arg(format!("unix://{}", named("engine.sock").display()))
            .args(["--storage-driver", "vfs", "--bridge", "none"])
            .args(["--iptables=false", "--ip-masq=false"])
            .stdout(Stdio::null())
            .stderr(fs::File::create(named("service.log")).unwrap())
            .spawn()
            .unwrap();
        Self { folder, service }.filled(busybox)
    }

    /// With the images, if it can run them.
    fn filled(self, busybox: &Path) -> Option<Self> {
        for _ in 0..3000 {
            if UnixStream::connect(self.folder.path().join("engine.sock")).is_ok() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        self.import(IMAGE, busybox, APPLETS);
        self.import(BARE, busybox, "sleep");
        self.works().then_some(self)
    }

    pub(crate) fn address(&self) -> String {
        format!(
            "unix://{}",
            self.folder.path().join("engine.sock").display()
        )
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends the service at once, as a crash would. Containers go on.
    pub(crate) fn crash(&mut self) {
        self.service.kill().unwrap();
        self.service.wait().unwrap();
    }

    /// Ids of all containers.
    pub(crate) fn containers(&self) -> Vec<String> {
        self.list(&["ps", "--all", "--quiet"])
    }

    /// Names of all images but the test's own.
    pub(crate) fn images(&self) -> Vec<String> {
        let images = self.list(&["images", "--all", "--format", "{{.Repository}}:{{.Tag}}"]);
        let own = [IMAGE, BARE];
        images
            .into_iter()
            .filter(|name| !own.contains(&name.as_str()))
            .collect()
    }

    /// Names of all volumes.
    pub(crate) fn volumes(&self) -> Vec<String> {
        self.list(&["volume", "ls", "--quiet"])
    }

    /// Processes that keep containers of this engine, by id.
    pub(crate) fn monitors(&self) -> Vec<i32> {
        let monitors = self.all_monitors().into_iter();
        // Those of ended commands stay for minutes, to tell their exit code.
        let kept = monitors.filter(|(_, line)| !line.contains("--exec-process-spec"));
        kept.map(|(pid, _)| pid).collect()
    }

    fn all_monitors(&self) -> Vec<(i32, String)> {
        let mark = self.folder.path().display().to_string();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let lines = pids.map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (pid, String::from_utf8_lossy(&line).into_owned())
        });
        let own = |line: &str| line.starts_with("/usr/bin/conmon") && line.contains(&mark);
        lines.filter(|(_, line)| own(line)).collect()
    }

    fn list(&self, arguments: &[&str]) -> Vec<String> {
        let output = client(self.folder.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn import(&self, name: &str, busybox: &Path, applets: &str) {
        let root = self.folder.path().join("image");
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::create_dir_all(root.join("etc")).unwrap();
        fs::create_dir_all(root.join("tmp")).unwrap();
        fs::write(root.join("etc/passwd"), "root:x:0:0:root:/:/bin/sh\n").unwrap();
        fs::copy(busybox, root.join("bin/busybox")).unwrap();
        for applet in applets.split_whitespace() {
            symlink("busybox", root.join("bin").join(applet)).unwrap();
        }
        let archive = self.folder.path().join("image.tar");
        let mut tar = tar::Builder::new(fs::File::create(&archive).unwrap());
        tar.follow_symlinks(false);
        tar.append_dir_all(".", &root).unwrap();
        tar.into_inner().unwrap();
        let mut import = client(self.folder.path());
        let import = import
            .arg("import")
            .arg(&archive)
            .arg(name)
            .output()
            .unwrap();
        assert!(import.status.success(), "{import:?}");
        fs::remove_dir_all(root).unwrap();
        fs::remove_file(archive).unwrap();
    }

    /// Whether containers run at all: not where cgroups cannot be written, for one.
    fn works(&self) -> bool {
        let mut run = client(self.folder.path());
        run.args([
            "run",
            "--rm",
            "--network",
            "none",
            "--ulimit",
            "nofile=4096:4096",
        ]);
        run.args(["--ulimit", "nproc=4096:4096", IMAGE, "true"]);
        let output = run.output().unwrap();
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr);
            eprintln!("skipped: this engine cannot run containers here: {reason}");
        }
        output.status.success()
    }
}

impl Drop for TestEngine {
    fn drop(&mut self) {
        if is_docker() {
            // It may have been ended by its test.
            let list = client(self.folder.path())
                .args(["ps", "--all", "--quiet"])
                .output();
            let list = list.map_or_else(|_| Vec::new(), |output| output.stdout);
            for container in String::from_utf8_lossy(&list).lines() {
                let mut remove = client(self.folder.path());
                let _ = remove.args(["rm", "--force", container]).output();
            }
            // Told to end, it ends what it has started, and unmounts.
            if let Some(pid) = rustix::process::Pid::from_raw(self.service.id() as i32) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
        } else {
            let _ = client(self.folder.path())
                .args(["rm", "--all", "--force", "--time", "0"])
                .output();
            let _ = self.service.kill();
        }
        let _ = self.service.wait();
        for (pid, _) in self.all_monitors() {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

fn is_docker() -> bool {
    std::env::var_os("ETUDE_TEST_CONTAINER_ENGINE").is_some_and(|name| name == "docker")
}

/// The engine's own client.
fn client(folder: &Path) -> Command {
    if !is_docker() {
        return podman(folder);
    }
    let mut command = Command::new("docker");
    let socket = folder.join("engine.sock");
    command
        .arg("--host")
        .arg(format!("unix://{}", socket.display()))
        .stdin(Stdio::null());
    command
}

fn podman(folder: &Path) -> Command {
    let mut command = Command::new("podman");
    let named = |name: &str| folder.join(name);
    command
        .arg("--root")
        .arg(named("root"))
        .arg("--runroot")
        .arg(named("run"))
        .arg("--tmpdir")
        .arg(named("tmp"))
        .args(["--storage-driver", "vfs", "--runtime", "runc"])
        .env("CONTAINERS_CONF", named("containers.conf"))
        .stdin(Stdio::null());
    command
}

/// A static busybox, or what is not installed.
fn missing() -> Result<PathBuf, String> {
    let programs = if is_docker() {
        ["dockerd", "docker"]
    } else {
        ["podman", "runc"]
    };
    for program in programs {
        let found = Command::new(program).arg("--version").output();
        if !found.is_ok_and(|output| output.status.success()) {
            return Err(format!("{program} is not installed"));
        }
    }
    if !rustix::process::geteuid().is_root() {
        return Err("this engine needs root".to_owned());
    }
    let places = ["/bin/busybox", "/usr/bin/busybox", "/bin/busybox.static"];
    let busybox = places
        .into_iter()
        .map(PathBuf::from)
        .find(|path| path.exists());
    busybox.ok_or_else(|| "busybox-static is not installed".to_owned())
}
