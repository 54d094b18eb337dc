#![no_main]

#[path = "../parsers.rs"]
#[allow(dead_code, reason = "each target runs one of the parsers")]
mod parsers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parsers::packets(bytes));
