//! The file that an independent implementation has signed: `tests/vectors/delivery.py`.

use super::*;

const VECTORS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/vectors/delivery.json"
);

fn bytes(value: &serde_json::Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    let digits = |i: usize| u8::from_str_radix(&text[i..i + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}

#[test]
fn files_of_another_implementation_are_accepted_and_made() {
    let vectors: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(VECTORS).unwrap()).unwrap();
    let public = bytes(&vectors["public"]);
    assert_eq!(public, publisher(1).verifying_key().as_bytes());
    for (name, made) in [("words", made(3)), ("short", made(3).short())] {
        let file = bytes(&vectors[name]);
        assert_eq!(file, made.file(), "{name}");
        let mut slots = open(blank());
        assert_eq!(slots.install(&file), Ok(3), "{name}");
        assert_eq!(loaded(&mut slots), Some((3, parameters(3))), "{name}");
    }
}
