//! The system calls that the jail needs, each as a small function returning `io::Result`.

use std::{
    ffi::{CStr, CString},
    fs::File,
    io,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    ptr,
    time::Duration,
};

use libc::{c_int, c_long, c_ulong, pid_t};

/// The result of a call that returns -1 and sets `errno`.
pub(crate) fn check(returned: c_int) -> io::Result<c_int> {
    if returned < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(returned)
    }
}

fn check_long(returned: c_long) -> io::Result<c_long> {
    if returned < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(returned)
    }
}

/// A path for the kernel. Paths of the jail contain no NUL.
pub(crate) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
}

pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for both descriptors, which are ours from here on.
    unsafe {
        check(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// A pair of connected local sockets of `kind`, such as `SOCK_STREAM`.
pub(crate) fn socket_pair(kind: c_int) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: as for `pipe`.
    unsafe {
        let kind = kind | libc::SOCK_CLOEXEC;
        check(libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// A counter that wakes whoever polls it.
pub(crate) fn event_fd() -> io::Result<OwnedFd> {
    // SAFETY: a new descriptor, which is ours from here on.
    unsafe {
        let fd = check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// A read-only in-memory file holding the concatenated `parts`.
pub(crate) fn memory_file(parts: &[&[u8]]) -> io::Result<OwnedFd> {
    use std::io::{Seek, Write};
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is NUL-terminated; the descriptor is ours from here on.
    let mut file = unsafe {
        let fd = check(libc::memfd_create(c"input".as_ptr(), flags))?;
        File::from_raw_fd(fd)
    };
    for part in parts {
        file.write_all(part)?;
    }
    file.rewind()?;
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: a plain call on a descriptor we own.
    unsafe { check(libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals))? };
    Ok(file.into())
}

pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: plain calls on a borrowed descriptor.
    unsafe {
        let flags = check(libc::fcntl(fd.as_raw_fd(), libc::F_GETFL))?;
        check(libc::fcntl(
            fd.as_raw_fd(),
            libc::F_SETFL,
            flags | libc::O_NONBLOCK,
        ))?;
    }
    Ok(())
}

pub(crate) fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes into it.
    let n = unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Writes without ever raising SIGPIPE when `fd` is a socket.
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let (buffer, flags) = (bytes.as_ptr().cast(), libc::MSG_NOSIGNAL);
    // SAFETY: the kernel reads at most `bytes.len()` bytes from the slice.
    let n = unsafe { libc::send(fd.as_raw_fd(), buffer, bytes.len(), flags) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

pub(crate) fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: the kernel reads at most `bytes.len()` bytes from the slice.
        let n = unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(n) {
            Ok(n) => bytes = &bytes[n..],
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// At most this many descriptors travel with one message.
const MAX_FDS: usize = 8;

/// Sends one message and descriptors with it.
pub(crate) fn send_with_fds(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[RawFd]) -> io::Result<()> {
    assert!(fds.len() <= MAX_FDS, "{} descriptors do not fit", fds.len());
    let mut control = [0u64; 8];
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let size = size_of_val(fds) as u32;
    // SAFETY: `control` is aligned and large enough for one header and MAX_FDS descriptors; the
    // message only borrows `bytes` and `control`, which outlive the call.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if !fds.is_empty() {
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size) as _;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size) as _;
            ptr::copy_nonoverlapping(fds.as_ptr(), libc::CMSG_DATA(header).cast(), fds.len());
        }
        let sent = libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL);
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Receives one message into `buffer`, and the descriptor that came with it.
pub(crate) fn receive_with_fd(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut control = [0u64; 8];
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: as for `send_with_fds`; a received descriptor is ours from here on.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let n = libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC);
        let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        let fd = (!header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS)
            .then(|| OwnedFd::from_raw_fd(ptr::read_unaligned(libc::CMSG_DATA(header).cast())));
        Ok((n, fd))
    }
}

/// What [`poll`] waits for on one descriptor.
pub(crate) fn interest(fd: impl AsFd, events: i16) -> libc::pollfd {
    libc::pollfd {
        fd: fd.as_fd().as_raw_fd(),
        events,
        revents: 0,
    }
}

/// Waits until something happens or `timeout` is over; rounds up to milliseconds.
pub(crate) fn poll(fds: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<()> {
    let milliseconds = match timeout {
        Some(timeout) => c_int::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(c_int::MAX),
        None => -1,
    };
    // SAFETY: the pointer and length are those of the slice.
    match check(unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as _, milliseconds) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// Both sides of a [`clone`].
pub(crate) enum Cloned {
    Child,
    Parent { pid: pid_t, pidfd: OwnedFd },
}

/// Forks this single-threaded process into the new namespaces of `flags`.
pub(crate) fn clone(flags: c_int) -> io::Result<Cloned> {
    let mut pidfd: c_int = -1;
    let flags = c_long::from(flags | libc::CLONE_PIDFD | libc::SIGCHLD);
    // SAFETY: without a stack and CLONE_VM this is fork; the caller's process has one thread, so
    // the child may go on as if nothing had happened. The pidfd is ours from here on.
    unsafe {
        let pid = check_long(libc::syscall(
            libc::SYS_clone,
            flags,
            0 as c_long,
            &raw mut pidfd,
            0 as c_long,
            0 as c_long,
        ))?;
        match pid {
            0 => Ok(Cloned::Child),
            pid => Ok(Cloned::Parent {
                pid: pid as pid_t,
                pidfd: OwnedFd::from_raw_fd(pidfd),
            }),
        }
    }
}

/// Ends the process behind `pidfd`; one that is gone already is fine.
pub(crate) fn kill(pidfd: BorrowedFd<'_>) {
    // SAFETY: a plain call on a borrowed descriptor.
    unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            libc::SIGKILL,
            ptr::null::<libc::siginfo_t>(),
            0,
        );
    }
}

/// Waits for the end of a child of this process.
pub(crate) fn wait(pid: pid_t) {
    let mut status = 0;
    // SAFETY: the status outlives the call.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// As [`wait`], taking note of all other ended children on the way: the end of a pid namespace waits
/// for those of its processes that were orphaned outside of it.
pub(crate) fn wait_collecting_all(pid: pid_t) {
    let mut status = 0;
    loop {
        // SAFETY: the status outlives the call.
        let ended = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
        let interrupted = || io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        if ended == pid || (ended < 0 && !interrupted()) {
            return;
        }
    }
}

/// Makes this process the parent of its descendants whose parents end.
pub(crate) fn adopt_orphans() {
    // SAFETY: a plain call.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// The work of a pid 1 that has no other. Orphans are waited for, not ignored, so that their CPU time
/// is in this process's account.
pub(crate) fn collect_orphans_forever() -> ! {
    // SAFETY: the set is initialised before it is used, and outlives the calls.
    unsafe {
        let mut ended: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut ended);
        libc::sigaddset(&raw mut ended, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const ended, ptr::null_mut());
        let mut signal = 0;
        loop {
            reap_orphans();
            libc::sigwait(&raw const ended, &raw mut signal);
        }
    }
}

/// Takes note of ended children without waiting.
pub(crate) fn reap_orphans() {
    let mut status = 0;
    // SAFETY: the status outlives the call.
    while unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::WNOHANG) } > 0 {}
}

pub(crate) fn prctl(option: c_int, argument: c_ulong) -> io::Result<()> {
    // SAFETY: only options that take plain numbers are used in this crate.
    check(unsafe { libc::prctl(option, argument, 0 as c_ulong, 0 as c_ulong, 0 as c_ulong) })?;
    Ok(())
}

/// Asks for SIGKILL when the parent thread ends. Lost when user or group ids change.
pub(crate) fn die_with_parent() -> io::Result<()> {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong)
}

/// Raises the loopback of the network namespace that the caller is in, with its addresses 127.0.0.1 and `::1`. Needs
/// the capability to administer that network.
pub(crate) fn raise_loopback() -> io::Result<()> {
    // SAFETY: makes a descriptor, which is ours from here on.
    let socket = unsafe {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, kind, 0))?)
    };
    // SAFETY: an all-zero request is a valid one.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    for (letter, place) in b"lo".iter().zip(&mut request.ifr_name) {
        *place = *letter as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the kernel reads the request, which outlives the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request) })?;
    Ok(())
}

/// Closes every descriptor except 0 to 2 and `keep`.
pub(crate) fn close_others(keep: &[RawFd]) {
    let mut keep: Vec<u32> = keep
        .iter()
        .filter_map(|fd| u32::try_from(*fd).ok())
        .collect();
    keep.sort_unstable();
    let mut from = 3;
    for fd in keep.into_iter().chain([u32::MAX]) {
        if fd > from {
            // SAFETY: only called by new single-threaded processes that use none of the others.
            unsafe { libc::syscall(libc::SYS_close_range, from, fd - 1, 0) };
        }
        from = from.max(fd.saturating_add(1));
    }
}

pub(crate) fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: c_ulong,
    options: Option<&CStr>,
) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: all strings are NUL-terminated and outlive the call.
    check(unsafe {
        libc::mount(
            pointer(source),
            target.as_ptr(),
            pointer(kind),
            flags,
            pointer(options).cast(),
        )
    })?;
    Ok(())
}

/// Makes the mount at `path` and those below it read-only, without set-user-id and devices.
pub(crate) fn make_read_only(path: &CStr) -> io::Result<()> {
    const RDONLY_NOSUID_NODEV: u64 = 1 | 2 | 4;
    set_mount_attributes(path, RDONLY_NOSUID_NODEV)
}

/// Takes set-user-id and devices from the mount at `path` and those below it.
pub(crate) fn make_harmless(path: &CStr) -> io::Result<()> {
    const NOSUID_NODEV: u64 = 2 | 4;
    set_mount_attributes(path, NOSUID_NODEV)
}

fn set_mount_attributes(path: &CStr, set: u64) -> io::Result<()> {
    #[repr(C)]
    struct MountAttributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    let attributes = MountAttributes {
        set,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    // SAFETY: the structure has the kernel's layout and its size is passed along.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    check_long(returned).map(drop)
}

/// The effective user and group.
pub(crate) fn effective_ids() -> (u32, u32) {
    // SAFETY: these calls cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Becomes `user` and `group`, without supplementary groups where that is allowed.
pub(crate) fn become_user(user: u32, group: u32) -> io::Result<()> {
    // SAFETY: plain calls. Dropping groups is refused in a user namespace made by an ordinary user.
    unsafe {
        libc::setgroups(0, ptr::null());
        check(libc::setresgid(group, group, group))?;
        check(libc::setresuid(user, user, user))?;
    }
    Ok(())
}

/// Opens a place in the file system without access to its contents.
pub(crate) fn open_path(path: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the path is NUL-terminated; the descriptor is ours from here on.
    unsafe {
        let fd = check(libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Opens the file at `path` for reading, following no link and never leaving `folder`. Does not wait
/// for the other end of a FIFO.
pub(crate) fn open_beneath(folder: BorrowedFd<'_>, path: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: a structure of plain numbers, all zero where not set.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS;
    // SAFETY: the path is NUL-terminated and the size is that of the structure; the descriptor is
    // ours from here on.
    unsafe {
        let fd = check_long(libc::syscall(
            libc::SYS_openat2,
            folder.as_raw_fd(),
            path.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        ))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// Bytes of a memory page.
pub(crate) fn page_size() -> u64 {
    // SAFETY: this call cannot fail for this name.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Ticks per second of the CPU times in `/proc`.
pub(crate) fn clock_ticks() -> u64 {
    // SAFETY: this call cannot fail for this name.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as u64 }
}

/// Leaves this process at once, without running anything else in it.
pub(crate) fn exit(code: c_int) -> ! {
    // SAFETY: never returns.
    unsafe { libc::_exit(code) }
}

/// Raises every capability of this process into the ambient set, so that they survive `execve`
/// within its own user namespace.
pub(crate) fn keep_capabilities_over_exec() -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    let mut header = [VERSION_3, 0];
    let mut sets = [MaybeUninit::<[u32; 3]>::zeroed(), MaybeUninit::zeroed()];
    // SAFETY: header and sets have the kernel's layout for version 3: two triples of effective,
    // permitted and inheritable bits.
    unsafe {
        check_long(libc::syscall(
            libc::SYS_capget,
            header.as_mut_ptr(),
            sets.as_mut_ptr(),
        ))?;
        let mut sets = sets.map(|set| set.assume_init());
        for [_, permitted, inheritable] in &mut sets {
            *inheritable = *permitted;
        }
        check_long(libc::syscall(
            libc::SYS_capset,
            header.as_mut_ptr(),
            sets.as_ptr(),
        ))?;
        for capability in 0..64 as c_ulong {
            // Fails for those that do not exist.
            let raise = libc::PR_CAP_AMBIENT_RAISE as c_ulong;
            libc::prctl(
                libc::PR_CAP_AMBIENT,
                raise,
                capability,
                0 as c_ulong,
                0 as c_ulong,
            );
        }
    }
    Ok(())
}

pub(crate) fn open_null() -> io::Result<OwnedFd> {
    // SAFETY: the path is NUL-terminated; the descriptor is ours from here on.
    unsafe {
        let fd = check(libc::open(
            c"/dev/null".as_ptr(),
            libc::O_RDWR | libc::O_CLOEXEC,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Gives descriptors the wanted low numbers, to be kept over `execve`.
pub(crate) fn place_fds(wanted: impl Iterator<Item = (RawFd, RawFd)>) -> io::Result<()> {
    const OUT_OF_THE_WAY: c_int = 64;
    let mut moved = Vec::new();
    for (fd, number) in wanted {
        // SAFETY: a plain call; the copy is given its place below.
        let copy = check(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, OUT_OF_THE_WAY) })?;
        moved.push((copy, number));
    }
    for (copy, number) in moved {
        // SAFETY: called by a new single-threaded process that uses no other descriptors.
        check(unsafe { libc::dup2(copy, number) })?;
    }
    Ok(())
}

/// Turns address randomisation off for the program that is executed next, where that is allowed.
pub(crate) fn fix_addresses() {
    // SAFETY: a plain call.
    unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as c_ulong) };
}

/// Writes to standard error, which goes to whoever started this process.
pub(crate) fn complain(error: &io::Error) {
    let text = error.to_string();
    // SAFETY: the kernel reads at most `text.len()` bytes from the string.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}

/// Locks a folder for this process alone, as long as the returned file is open in it.
pub(crate) fn lock_folder(path: &Path) -> io::Result<File> {
    let folder = File::open(path)?;
    // SAFETY: a plain call on an open descriptor.
    check(unsafe { libc::flock(folder.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) })?;
    Ok(folder)
}

/// The exit code of a child, once it has ended; `None` when it was killed.
pub(crate) fn wait_for_code(pid: pid_t) -> Option<c_int> {
    let mut status = 0;
    loop {
        // SAFETY: the status outlives the call.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) };
        let interrupted = || io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        if waited == pid {
            return libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        }
        if !interrupted() {
            return None;
        }
    }
}
