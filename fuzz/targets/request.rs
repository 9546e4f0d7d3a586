//! Any bytes as the body of a request: decoded or refused with the field that is wrong.
//!
//! The first byte chooses the route.

#![no_main]

use libfuzzer_sys::fuzz_target;
use server::{Route, decode};

const ROUTES: [Route; 4] = [Route::RunCode, Route::Batch, Route::Submit, Route::Dataset];

fuzz_target!(|input: &[u8]| {
    let Some((first, body)) = input.split_first() else {
        return;
    };
    let route = ROUTES[usize::from(*first) % ROUTES.len()];
    match decode(route, body) {
        Ok(request) => assert_eq!(decode(route, body).ok(), Some(request)),
        Err(invalid) => {
            assert!(!invalid.loc.is_empty(), "no field is named: {invalid}");
            assert!(invalid.to_string().len() < 16 << 10);
        }
    }
});
