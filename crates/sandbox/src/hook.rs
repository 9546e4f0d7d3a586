//! Makes every program that links this crate its own supervisor.
//!
//! The supervisor is the running executable once more, recognised by its `argv[0]` before `main`
//! by an initialisation function of the program. So no second binary has to be shipped or found,
//! and test binaries work like the product.

use std::{ffi::OsString, hint::black_box, os::unix::ffi::OsStringExt};

use crate::supervisor;

/// The supervisor's `argv[0]`.
const MARKER: &str = "sandbox-supervisor";

/// How to start the supervisor: the executable and its `argv[0]`.
pub(crate) fn supervisor_command() -> (&'static str, &'static str) {
    // Referring to the hook here keeps it in every program that starts a sandbox.
    black_box(&HOOK);
    ("/proc/self/exe", MARKER)
}

#[used]
#[unsafe(link_section = ".init_array")]
static HOOK: extern "C" fn() = become_supervisor_if_asked;

extern "C" fn become_supervisor_if_asked() {
    // The standard library's arguments are not available this early on every libc.
    let Ok(command_line) = std::fs::read("/proc/self/cmdline") else {
        return;
    };
    let mut arguments = command_line.split(|byte| *byte == 0);
    if arguments.next() != Some(MARKER.as_bytes()) {
        return;
    }
    let setup = OsString::from_vec(arguments.next().unwrap_or_default().to_vec());
    supervisor::main(&setup.to_string_lossy());
}
