//! Compares predictions of boards with an 8-bit network with predictions of this machine.

use smolfed_core::quantised::probabilities_in_place;

use super::data::{self, SAMPLES};

#[path = "../../firmware-example/src/quantised.rs"]
mod digits;

use digits::{CLASSES, INPUT, NETWORK, SCALE, SCRATCH};

/// Returns the self-test's output for the network.
pub(super) fn line() -> String {
    const PIXELS: usize = INPUT.count();
    let (mut scored, mut said) = (0, 0);
    let mut classes = [0; CLASSES.len()];
    for number in 0..SAMPLES {
        let image: [i8; PIXELS] = data::image(number);
        let mut scores = [0; CLASSES.len()];
        let mut scratch = [0; SCRATCH];
        let class = NETWORK.predict(&image, &mut scratch, &mut scores).unwrap();
        classes[usize::from(class)] += 1;
        let words = |scores: [i32; CLASSES.len()]| scores.map(i32::cast_unsigned).into_iter();
        scored = data::checksum([scored].into_iter().chain(words(scores)));
        probabilities_in_place(&mut scores);
        let before = [said, u32::from(class)].into_iter();
        said = data::checksum(before.chain(words(scores)));
    }
    // Features from -1 to 1 fill 8 bits.
    assert_eq!([-1.0, 0.0, 1.0].map(|x| SCALE.integer(x)), [-128, -1, 126]);
    assert!(classes.iter().filter(|count| **count > 0).count() > 1);
    format!("quantised 0 {scored:08x} {said:08x}\n")
}
