//! Whom a slot works for.

use std::{io, os::fd::BorrowedFd};

use crate::sys;

/// Whoever asks for runs, and the supervisor behind it.
#[derive(Clone, Copy)]
pub(crate) struct Client<'a> {
    /// Requests come in, replies go out; its end is the end of the run under way.
    pub(crate) socket: BorrowedFd<'a>,
    /// Ends with the supervisor.
    pub(crate) leash: BorrowedFd<'a>,
}

impl Client<'_> {
    /// Until there is something to read, or to learn.
    pub(crate) fn wait(&self) -> io::Result<()> {
        let interest = |fd| sys::interest(fd, libc::POLLIN);
        sys::poll(&mut [interest(self.socket), interest(self.leash)], None)
    }

    /// Whether the supervisor is gone.
    pub(crate) fn is_orphaned(&self) -> bool {
        let mut fds = [sys::interest(self.leash, libc::POLLIN)];
        let polled = sys::poll(&mut fds, Some(std::time::Duration::ZERO));
        polled.is_ok() && fds[0].revents != 0
    }
}
