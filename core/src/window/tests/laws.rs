//! Laws of the features, for windows of any length.

use super::*;

/// Windows of counts: noise of any loudness, waves, steps, and the two extremes in any order.
fn counts() -> impl Strategy<Value = Vec<i16>> {
    let extremes = vec(prop_oneof![Just(i16::MIN), Just(i16::MAX)], 2..300);
    let noise = (vec(any::<i16>(), 2..300), 0u32..14)
        .prop_map(|(samples, quiet)| samples.into_iter().map(|x| x >> quiet).collect());
    let wave = (
        2usize..300,
        0.0..150.0,
        1.0..32_767.0,
        0.0..7.0,
        -32_768.0..32_767.0,
    )
        .prop_map(
            |(length, periods, amplitude, phase, offset): (usize, f64, f64, f64, f64)| {
                let angle = |t: usize| {
                    phase + 2.0 * core::f64::consts::PI * periods * t as f64 / length as f64
                };
                // `as` saturates.
                let sample = |t| (offset + amplitude * angle(t).sin()) as i16;
                (0..length).map(sample).collect()
            },
        );
    prop_oneof![extremes, noise, wave]
}

fn floats(samples: &[i16]) -> Vec<f32> {
    samples.iter().map(|x| f32::from(*x)).collect()
}

proptest! {
    /// The energies of all frequencies are the square of the deviation.
    #[test]
    fn parseval_holds(samples in counts()) {
        let bounds = every_band(samples.len());
        let recipe = recipe(samples.len(), &bounds, Measure::Energy);
        let features = of_floats(&recipe, &floats(&samples));
        let variance = f64::from(features[1]).powi(2);
        let sum: f64 = features[6..].iter().map(|x| f64::from(*x)).sum();
        let size = f64::from(features[4]) * 1e-9 + variance;
        prop_assert!((sum - variance).abs() <= 3e-6 * size, "{sum}, not {variance}");

        let of_samples: Vec<f64> = samples.iter().map(|x| f64::from(*x)).collect();
        let reference = reference(&of_samples, &bounds);
        let all = [0, *bounds.last().unwrap()];
        let recipe = super::recipe(samples.len(), &all, Measure::Amplitude);
        let features = of_counts(&recipe, &samples);
        let error = f64::from(features[6]) - reference.deviation;
        prop_assert!(error.abs() <= tolerance(&reference), "{error} of {}", reference.deviation);
    }

    /// Adding a constant only changes mean, extremes and energy, and no bit of anything else.
    #[test]
    fn a_shift_moves_the_mean_alone(samples in counts(), shift in any::<i16>()) {
        let samples: Vec<i16> = samples.iter().map(|x| x >> 1).collect();
        let shift = shift >> 1;
        let recipe = recipe(samples.len(), &every_band(samples.len()), Measure::Amplitude);
        let before = of_counts(&recipe, &samples);
        let moved: Vec<i16> = samples.iter().map(|x| x + shift).collect();
        let after = of_counts(&recipe, &moved);
        for at in [0, 2, 3] {
            prop_assert_eq!(after[at], before[at] + i32::from(shift));
        }
        prop_assert_eq!(after[1], before[1]);
        prop_assert_eq!(&after[5..], &before[5..]);
    }

    /// A power of two scales every feature in `f32` without rounding.
    #[test]
    fn powers_of_two_scale_all_features(samples in counts(), exponent in -20i32..20) {
        let scale = 2f32.powi(exponent);
        let samples = floats(&samples);
        let scaled: Vec<f32> = samples.iter().map(|x| x * scale).collect();
        for (measure, of_band) in [(Measure::Amplitude, scale), (Measure::Energy, scale * scale)] {
            let recipe = recipe(samples.len(), &every_band(samples.len()), measure);
            let before = of_floats(&recipe, &samples);
            let after = of_floats(&recipe, &scaled);
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                let factor = match at {
                    0..=3 => scale,
                    4 => scale * scale,
                    5 => 1.0,
                    _ => of_band,
                };
                prop_assert_eq!((before * factor).to_bits(), after.to_bits(), "{}", at);
            }
        }
    }

    /// A constant window has its value as mean and extremes, its square as energy, and zeros
    /// elsewhere.
    #[test]
    fn constants_have_no_spectrum(value in any::<i16>(), length in 2usize..=MAX_LENGTH) {
        let recipe = recipe(length, &every_band(length), Measure::Energy);
        let found = of_counts(&recipe, &std::vec![value; length]);
        let value = i32::from(value);
        prop_assert_eq!(&found[..4], [value, 0, value, value]);
        prop_assert_eq!(found[4], value * value);
        prop_assert!(found[5..].iter().all(|x| *x == 0));
        let zero = of_floats(&recipe, &std::vec![0.0; length]);
        prop_assert!(zero.iter().all(|x| x.to_bits() == 0), "not even a sign: {:?}", zero);
    }

    /// The claim of `window::integer`.
    #[test]
    fn the_error_of_amplitudes_is_bounded(samples in counts()) {
        let bounds = every_band(samples.len());
        let of_samples: Vec<f64> = samples.iter().map(|x| f64::from(*x)).collect();
        let reference = reference(&of_samples, &bounds);
        let found = of_counts(&recipe(samples.len(), &bounds, Measure::Amplitude), &samples);
        prop_assert_eq!(f64::from(found[0]), (reference.mean + 0.5).floor());
        prop_assert!((f64::from(found[1]) - reference.deviation).abs() <= 0.51);
        let error = f64::from(found[4]) - reference.energy;
        prop_assert!(error.abs() <= 0.5 + reference.energy / 4e6);
        for (found, energy) in found[6..].iter().zip(&reference.bands) {
            let error = f64::from(*found) - energy.sqrt();
            prop_assert!(error.abs() <= tolerance(&reference), "{error} of {}", energy.sqrt());
        }
    }
}

/// The longest windows have the largest sums: overflow would panic here.
#[test]
fn extremes_of_the_longest_windows_do_not_overflow() {
    for length in [1_000, 1_023, MAX_LENGTH] {
        let bounds = every_band(length);
        for period in [1, 2, 3, 64, 511, length / 2, length] {
            let sample = |t: usize| {
                if (t / period).is_multiple_of(2) {
                    i16::MAX
                } else {
                    i16::MIN
                }
            };
            let samples: Vec<i16> = (0..length).map(sample).collect();
            let of_samples: Vec<f64> = samples.iter().map(|x| f64::from(*x)).collect();
            let reference = reference(&of_samples, &bounds);
            for measure in [Measure::Amplitude, Measure::Energy] {
                let found = of_counts(&recipe(length, &bounds, measure), &samples);
                for (found, energy) in found[6..].iter().zip(&reference.bands) {
                    let amplitude = match measure {
                        Measure::Amplitude => f64::from(*found),
                        Measure::Energy => f64::from(*found).sqrt(),
                    };
                    let error = amplitude - energy.sqrt();
                    let tolerance = 0.5 + tolerance(&reference);
                    assert!(error.abs() <= tolerance, "{length}, {period}: {error}");
                }
            }
        }
    }
}
