//! Bit-exact results, for comparison on other targets.

use super::*;

const PINNED: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/vectors/laplacian_smoothing_bits.json"
));

/// The input of every pinned case. Each entry is exact in `f32`.
fn input(d: usize) -> Vec<f32> {
    (0..d)
        .map(|i| ((i * 7_919 % 2_003) as f32 - 1_000.0) / 1_024.0)
        .collect()
}

/// FNV-1a over the little-endian bytes of all entries, 64 bits.
fn fingerprint(v: &[f32]) -> u64 {
    v.iter()
        .flat_map(|x| x.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

#[test]
fn bits_are_those_of_every_other_target() {
    let pinned: Value = serde_json::from_str(PINNED).unwrap();
    for case in pinned["cases"].as_array().unwrap() {
        let axes: Vec<usize> = case["axes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap() as usize)
            .collect();
        let mut v = input(axes.iter().product());
        smoothing(case["sigma"].as_f64().unwrap())
            .apply_grid(&mut v, &axes)
            .unwrap();
        let first: Vec<u64> = v.iter().take(8).map(|x| u64::from(x.to_bits())).collect();
        let found = std::format!("{first:?} {:016x}", fingerprint(&v));
        let expected = std::format!(
            "{} {}",
            case["first_bits"],
            case["fnv1a64"].as_str().unwrap()
        )
        .replace(',', ", ");
        assert_eq!(found, expected, "sigma {} axes {axes:?}", case["sigma"]);
    }
}
