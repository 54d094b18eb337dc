//! The seeds of the fuzz targets, and inputs that once failed, cause no panic.

use std::path::Path;

#[path = "../../fuzz/parsers.rs"]
mod parsers;

#[test]
fn every_kept_input_is_read_or_refused() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/vectors/fuzz"));
    for (name, parse) in parsers::PARSERS {
        let inputs = std::fs::read_dir(folder.join(name)).expect("each target has inputs");
        for input in inputs {
            let path = input.unwrap().path();
            println!("{}", path.display());
            parse(&std::fs::read(path).unwrap());
        }
    }
}

#[test]
fn the_seed_of_the_protocol_gets_through_a_round() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/vectors/fuzz/session"));
    let seed = std::fs::read(folder.join("two-rounds")).unwrap();
    assert!(parsers::protocol::session::sends_an_update(&seed));
}

/// A header that claims a large size allocates no more than the bytes that follow.
#[test]
fn nothing_and_noise_are_refused() {
    let noise: Vec<u8> = (0..4096u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    for (_, parse) in parsers::PARSERS {
        for length in [0, 1, 2, 3, 4, 8, 16, 4096] {
            parse(&noise[..length]);
        }
    }
}
