//! Any bytes as a patch, and a file for it: see `invariants::check` for what must hold.

#![no_main]

#[path = "../../crates/code/tests/invariants/mod.rs"]
mod invariants;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    invariants::check(input);
});
