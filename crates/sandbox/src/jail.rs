//! The walls of a slot (user, mount, pid, net namespaces and a private root) and of each run in it.

use std::{
    ffi::CString,
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::fs::symlink,
    },
    path::{Path, PathBuf},
};

use libc::pid_t;

use crate::{InputFile, Workspace, disk, files, ids, sys, workspace::Opened};

/// The namespaces of a slot. The network namespace has nothing but a loopback, which is down unless asked for.
pub(crate) const SLOT_NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    // So that paths of the host's control groups are not seen.
    | libc::CLONE_NEWCGROUP;

/// The working folder of runs.
pub(crate) const HOME: &str = "/box";

/// The user and group of jailed programs, as they see themselves.
pub(crate) const INNER_ID: u32 = 1000;

/// Outside, where the starting user may not give each slot a user of its own.
const NOBODY_ID: u32 = 65534;

/// Maps [`INNER_ID`] of the user namespace of `pid`. Called in the parent.
///
/// Programs are a user that owns nothing, where the starting user may arrange that; one per slot, as
/// some per-user limits of older kernels ignore namespaces.
///
/// A `chosen` user is taken or refused.
pub(crate) fn map_ids(pid: pid_t, slot: usize, chosen: Option<u32>) -> io::Result<()> {
    let (user, group) = sys::effective_ids();
    let unowned = ids::unowned(slot);
    let candidates = match chosen {
        Some(chosen) => vec![(chosen, chosen)],
        None => vec![(unowned, unowned), (NOBODY_ID, NOBODY_ID), (user, group)],
    };
    let mut refused = io::Error::other("no user could be mapped");
    for (outer_user, outer_group) in candidates {
        let own = outer_user == user;
        if own {
            // Required before an ordinary user may map a group.
            let _ = fs::write(format!("/proc/{pid}/setgroups"), "deny");
        }
        let mapped = fs::write(
            format!("/proc/{pid}/uid_map"),
            format!("{INNER_ID} {outer_user} 1"),
        )
        .and_then(|()| {
            fs::write(
                format!("/proc/{pid}/gid_map"),
                format!("{INNER_ID} {outer_group} 1"),
            )
        });
        match mapped {
            Ok(()) => return Ok(()),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Builds the slot's root and moves into it. Called in the slot, while it still has the ids of its
/// parent, so that folders only they can enter may be bound; becomes [`INNER_ID`] on the way.
///
/// `binds` appear read-only at their own place, and the work tree at its own. Returns what the
/// programs change of that.
pub(crate) fn enter_root(
    binds: &[PathBuf],
    workspace: Option<&Workspace>,
) -> io::Result<Option<OwnedFd>> {
    let base = Path::new("/tmp");
    sys::mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)?;
    let mut sources = Vec::new();
    for path in binds
        .iter()
        .map(PathBuf::as_path)
        .chain(OPTIONAL_BINDS.map(Path::new))
    {
        match sys::open_path(&sys::c_path(path)?) {
            Ok(source) => sources.push((path.to_owned(), source)),
            Err(error) if binds.iter().any(|bind| bind == path) => {
                return Err(at(path, error));
            }
            Err(_) => {}
        }
    }
    let workspace = workspace.map(Opened::new).transpose()?;
    let devices = DEVICES.map(|name| Path::new("/dev").join(name));
    let devices = devices.into_iter().map(|path| {
        let source = sys::open_path(&sys::c_path(&path)?).map_err(|error| at(&path, error))?;
        Ok((path, source))
    });
    let devices = devices.collect::<io::Result<Vec<_>>>()?;
    sys::become_user(INNER_ID, INNER_ID)?;

    let hidden = libc::MS_NOSUID | libc::MS_NODEV;
    let options = c"size=4m,nr_inodes=1024,mode=755";
    sys::mount(
        Some(c"tmpfs"),
        &sys::c_path(base)?,
        Some(c"tmpfs"),
        hidden,
        Some(options),
    )?;
    for folder in ["usr", "etc", "dev", "proc", "tmp", "box"] {
        fs::create_dir(base.join(folder))?;
    }
    copy_links(base)?;
    for (path, source) in &sources {
        let target = base.join(path.strip_prefix("/").unwrap_or(path));
        if fs::metadata(path).is_ok_and(|found| found.is_dir()) || is_folder(source.as_fd())? {
            fs::create_dir_all(&target)?;
        } else {
            target.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::File::create(&target)?;
        }
        bind(source, &target).map_err(|error| at(path, error))?;
        sys::make_read_only(&sys::c_path(&target)?).map_err(|error| at(path, error))?;
    }
    if let Some(workspace) = &workspace {
        workspace.mount_below(base)?;
    }
    for (path, source) in &devices {
        let target = base.join(path.strip_prefix("/").unwrap_or(path));
        fs::File::create(&target)?;
        bind(source, &target).map_err(|error| at(path, error))?;
    }
    for (link, target) in [
        ("dev/fd", "/proc/self/fd"),
        ("dev/stdin", "/proc/self/fd/0"),
        ("dev/stdout", "/proc/self/fd/1"),
        ("dev/stderr", "/proc/self/fd/2"),
        ("dev/shm", "/tmp"),
    ] {
        symlink(target, base.join(link))?;
    }
    for (file, text) in [
        ("etc/passwd", "runner:x:1000:1000::/box:/bin/sh\n"),
        ("etc/group", "runner:x:1000:\n"),
        ("etc/hosts", "127.0.0.1 localhost\n"),
        (
            "etc/nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files\n",
        ),
    ] {
        fs::write(base.join(file), text)?;
    }
    // While the host's own is still in sight: the kernel asks for that.
    mount_proc(&base.join("proc"))?;
    pivot(base)?;
    Ok(workspace.map(|workspace| workspace.changes))
}

/// Present on some systems, and needed by some programs where present.
const OPTIONAL_BINDS: [&str; 2] = ["/etc/ld.so.cache", "/etc/alternatives"];

const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// The top-level links into `/usr` of this system; where they are folders, they are bound.
fn copy_links(base: &Path) -> io::Result<()> {
    for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
        let host = Path::new("/").join(name);
        let Ok(found) = fs::symlink_metadata(&host) else {
            continue;
        };
        if found.is_symlink() {
            symlink(fs::read_link(&host)?, base.join(name))?;
        } else if found.is_dir() {
            let target = base.join(name);
            fs::create_dir(&target)?;
            bind(&sys::open_path(&sys::c_path(&host)?)?, &target)?;
            sys::make_read_only(&sys::c_path(&target)?)?;
        }
    }
    Ok(())
}

pub(crate) fn bind(source: &OwnedFd, target: &Path) -> io::Result<()> {
    let source = CString::new(format!("/proc/self/fd/{}", source.as_raw_fd()))?;
    let flags = libc::MS_BIND | libc::MS_REC;
    sys::mount(Some(&source), &sys::c_path(target)?, None, flags, None)
}

fn is_folder(place: BorrowedFd<'_>) -> io::Result<bool> {
    let link = format!("/proc/self/fd/{}", place.as_raw_fd());
    Ok(fs::metadata(link)?.is_dir())
}

/// Shows the processes of this pid namespace only.
fn mount_proc(target: &Path) -> io::Result<()> {
    let target = sys::c_path(target)?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    sys::mount(Some(c"proc"), &target, Some(c"proc"), flags, None)
}

fn pivot(root: &Path) -> io::Result<()> {
    let here = c".";
    std::env::set_current_dir(root)?;
    // SAFETY: both strings are NUL-terminated. The old root comes to lie over the new one, and is
    // taken away next.
    unsafe {
        let returned = libc::syscall(libc::SYS_pivot_root, here.as_ptr(), here.as_ptr());
        sys::check(returned as i32)?;
        sys::check(libc::umount2(here.as_ptr(), libc::MNT_DETACH))?;
    }
    std::env::set_current_dir("/")?;
    let flags =
        libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV;
    sys::mount(None, c"/", None, flags, None)
}

pub(crate) fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The namespaces of one run. Its pid 1 holds them open and collects orphans; when it is killed,
/// the kernel ends all others and drops the mounts.
pub(crate) struct RunNamespaces {
    pid: pid_t,
    pub(crate) pidfd: OwnedFd,
}

impl RunNamespaces {
    /// Fresh pid, mount, ipc and uts namespaces with an empty `/tmp` and a `/box` of `input` alone,
    /// each with room for `disk` bytes more. What the slot's root has of `shown` stays visible
    /// where these would hide it. Called in a slot.
    pub(crate) fn new(disk: u64, input: &[InputFile], shown: &[PathBuf]) -> io::Result<Self> {
        let namespaces =
            libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
        let options = |bytes: u64, inodes: u64| {
            let (size, inodes) = (disk + bytes, disk::most_files(disk) + inodes);
            CString::new(format!("size={size},nr_inodes={inodes},mode=1777"))
        };
        let options = if input.is_empty() {
            [options(0, 0)?, options(0, 0)?]
        } else {
            let needed = files::space(input);
            [options(0, 0)?, options(needed.bytes, needed.files)?]
        };
        let (ready, tell_ready) = sys::pipe()?;
        match sys::clone(namespaces)? {
            sys::Cloned::Child => {
                let told = match furnish(&options, input, shown) {
                    Ok(()) => "ready".to_owned(),
                    Err(error) => error.to_string(),
                };
                let _ = sys::write_all(tell_ready.as_fd(), told.as_bytes());
                // SAFETY: this process opens and uses nothing any more.
                unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) };
                sys::collect_orphans_forever()
            }
            sys::Cloned::Parent { pid, pidfd } => {
                drop(tell_ready);
                let namespaces = Self { pid, pidfd };
                let mut buffer = [0; 256];
                let n = sys::read(ready.as_fd(), &mut buffer)?;
                match &buffer[..n] {
                    b"ready" => Ok(namespaces),
                    told => Err(io::Error::other(format!(
                        "namespaces of the run: {}",
                        String::from_utf8_lossy(told)
                    ))),
                }
            }
        }
    }

    pub(crate) fn pid(&self) -> pid_t {
        self.pid
    }

    /// The working folder, as this process sees it while the namespaces are there.
    pub(crate) fn home(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{HOME}", self.pid))
    }

    /// Ends every process of the run. They are gone when this value is dropped.
    pub(crate) fn kill(&self) {
        sys::kill(self.pidfd.as_fd());
    }
}

impl Drop for RunNamespaces {
    fn drop(&mut self) {
        self.kill();
        sys::wait_collecting_all(self.pid);
    }
}

/// In the new namespaces, as their pid 1. The options are those of `/tmp` and `/box`.
fn furnish(options: &[CString; 2], input: &[InputFile], shown: &[PathBuf]) -> io::Result<()> {
    sys::die_with_parent()?;
    mount_proc(Path::new("/proc"))?;
    let hidden_by_these = |path: &&PathBuf| path.starts_with("/tmp") || path.starts_with(HOME);
    let shown = shown.iter().filter(hidden_by_these);
    let shown = shown.map(|path| Ok((path, sys::open_path(&sys::c_path(path)?)?)));
    let shown = shown.collect::<io::Result<Vec<_>>>()?;
    let hidden = libc::MS_NOSUID | libc::MS_NODEV;
    for (place, options) in [c"/tmp", c"/box"].into_iter().zip(options) {
        sys::mount(Some(c"tmpfs"), place, Some(c"tmpfs"), hidden, Some(options))?;
    }
    for (path, source) in shown {
        if is_folder(source.as_fd())? {
            fs::create_dir_all(path)?;
        } else {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::File::create(path)?;
        }
        bind(&source, path).map_err(|error| at(path, error))?;
        sys::make_read_only(&sys::c_path(path)?).map_err(|error| at(path, error))?;
    }
    files::write(Path::new(HOME), input)
}
