//! The divisor of a released sum.

use crate::config::{Config, Override};
use crate::round::TrainingLoop;
use crate::run::prepare;
use crate::source::Simulated;
use smolfed_data::DataFolders;

const TEXT: &str = "method = \"dp-fed\"\nrounds = 2\nevaluate_every = 0\n[data]\nsource = \
                    \"synthetic\"\ndevices = 40\nsamples_per_device = 8\nfeatures = 4\n\
                    [cohort]\ncohort_size = 10\n[privacy]\nclip_norm = 0.5\n\
                    noise_multiplier = 1.0\ndelta = 1e-3\n";

/// Settings of a run, and the resulting denominator: the cohort's size, or its expected size. It
/// depends neither on the draw nor on the devices' samples.
const CASES: [(&str, f64); 7] = [
    ("", 10.0),
    ("privacy.trust=\"local\"", 10.0),
    ("cohort={sampling=\"poisson\",sampling_rate=0.3}", 12.0),
    ("cohort={sampling=\"full\"}", 40.0),
    (
        "cohort={cohort_size=10,weighting=\"samples\",weight_cap=3}",
        10.0,
    ),
    (
        "cohort={cohort_size=10,weighting=\"samples\",weight_cap=16}",
        10.0,
    ),
    (
        "cohort={sampling=\"poisson\",sampling_rate=0.3,weighting=\"samples\",weight_cap=16}",
        12.0,
    ),
];

/// The change of the model is the released sum over this number, in every round.
#[test]
fn the_denominator_follows_from_public_values() {
    for (settings, denominator) in CASES {
        let overrides = settings.split_whitespace().map(|text| text.parse());
        let overrides: Vec<Override> = overrides.collect::<Result<_, _>>().unwrap();
        let config = Config::parse(TEXT, "a test", &overrides).unwrap();
        let (experiment, federation) = prepare(config, &DataFolders::new(Vec::new())).unwrap();
        let mut training = TrainingLoop::simulation(&experiment, &federation).unwrap();
        for _ in 0..2 {
            let before = training.global().to_vec();
            let round = training.step(&mut Simulated(&federation)).unwrap();
            let sum = round.released.unwrap().over(1.0);
            assert!(sum.iter().any(|x| x.abs() > 0.01), "{settings}");
            for ((before, after), sum) in before.iter().zip(training.global()).zip(sum) {
                let change = f64::from(*after) - f64::from(*before);
                let expected = f64::from(sum) / denominator;
                assert!(
                    (change - expected).abs() < 1e-6,
                    "{settings}: {change} {expected}"
                );
            }
        }
    }
}
