#![no_main]

#[path = "../c.rs"]
#[allow(dead_code, reason = "a test counts participations")]
mod c;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| c::c(bytes));
