//! Values of `tests/vectors/window.py`, which evaluates the definitions.

use super::*;

const VECTORS: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/vectors/window.json"
));

/// A window and its recipe.
struct Case {
    name: std::string::String,
    samples: Vec<i16>,
    bounds: Vec<u16>,
    /// The features in order, with the number of crossings.
    features: Vec<f64>,
    bands: Vec<f64>,
}

fn cases() -> Vec<Case> {
    let vectors: serde_json::Value = serde_json::from_str(VECTORS).unwrap();
    let numbers = |value: &serde_json::Value| -> Vec<f64> {
        let values = value.as_array().unwrap().iter();
        values.map(|x| x.as_f64().unwrap()).collect()
    };
    let case = |case: &serde_json::Value| Case {
        name: case["name"].as_str().unwrap().into(),
        samples: numbers(&case["samples"])
            .iter()
            .map(|x| *x as i16)
            .collect(),
        bounds: numbers(&case["bounds"]).iter().map(|x| *x as u16).collect(),
        features: [
            "mean",
            "deviation",
            "minimum",
            "maximum",
            "energy",
            "zero_crossings",
        ]
        .map(|name| case[name].as_f64().unwrap())
        .into(),
        bands: numbers(&case["bands"]),
    };
    vectors["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(case)
        .collect()
}

/// Returns whether a feature is close enough, relative to a size.
#[track_caller]
fn near(name: &str, at: usize, found: f64, expected: f64, tolerance: f64) {
    let error = (found - expected).abs();
    assert!(error <= tolerance, "{name}, {at}: {found}, not {expected}");
}

#[test]
fn floats_agree_with_the_definitions() {
    for case in cases() {
        let samples: Vec<f32> = case.samples.iter().map(|x| f32::from(*x)).collect();
        let peak = case.features[2].abs().max(case.features[3].abs());
        let length = samples.len() as f64;
        for measure in [Measure::Energy, Measure::Amplitude] {
            let found = of_floats(&recipe(samples.len(), &case.bounds, measure), &samples);
            let (features, bands) = found.split_at(6);
            for (at, (found, expected)) in features.iter().zip(&case.features).enumerate() {
                let (expected, size) = match at {
                    4 => (*expected, peak * peak),
                    5 => (expected / length, 1.0),
                    _ => (*expected, peak),
                };
                near(&case.name, at, (*found).into(), expected, 2e-6 * size);
            }
            for (at, (found, expected)) in bands.iter().zip(&case.bands).enumerate() {
                // The largest energy is the energy of all bands.
                let energy = case.features[1] * case.features[1];
                let (expected, size) = match measure {
                    Measure::Energy => (*expected, energy + peak * 1e-3),
                    Measure::Amplitude => (expected.sqrt(), case.features[1] + peak * 1e-3),
                };
                near(&case.name, 6 + at, (*found).into(), expected, 2e-6 * size);
            }
        }
    }
}

#[test]
fn integers_agree_with_the_definitions() {
    for case in cases() {
        let peak = case.features[2].abs().max(case.features[3].abs());
        for measure in [Measure::Energy, Measure::Amplitude] {
            let found = of_counts(
                &recipe(case.samples.len(), &case.bounds, measure),
                &case.samples,
            );
            let (features, bands) = found.split_at(6);
            for (at, (found, expected)) in features.iter().zip(&case.features).enumerate() {
                let tolerance = match at {
                    // Rounded once. An energy is a quotient of 23 bits.
                    0 | 1 => 0.51,
                    4 => 0.5 + expected / f64::from(1 << 22),
                    _ => 0.0,
                };
                near(&case.name, at, (*found).into(), *expected, tolerance);
            }
            for (at, (found, expected)) in bands.iter().zip(&case.bands).enumerate() {
                let amplitude = match measure {
                    Measure::Energy => f64::from(*found).sqrt(),
                    Measure::Amplitude => (*found).into(),
                };
                let tolerance = 1.0 + peak / 2048.0;
                near(&case.name, 6 + at, amplitude, expected.sqrt(), tolerance);
            }
        }
    }
}

/// Pins the bits for every target. `tests/boards.rs` compares boards.
#[test]
fn the_bits_are_recorded() {
    let (mut floats, mut counts) = (Vec::new(), Vec::new());
    for case in cases() {
        let samples: Vec<f32> = case.samples.iter().map(|x| f32::from(*x)).collect();
        for measure in [Measure::Energy, Measure::Amplitude] {
            let recipe = recipe(samples.len(), &case.bounds, measure);
            let features = of_floats(&recipe, &samples).into_iter();
            floats.extend(features.flat_map(f32::to_le_bytes));
            let features = of_counts(&recipe, &case.samples).into_iter();
            counts.extend(features.flat_map(i32::to_le_bytes));
        }
    }
    let (floats, counts) = (crc32(&floats), crc32(&counts));
    assert_eq!(
        std::format!("{floats:08x} {counts:08x}"),
        "a1a783df 0b9a3846"
    );
}
