//! A small sweep for the tests of this folder.

use super::file::Sweep;
use super::metric::Metric;
use super::results::{Figures, Results, RunRecord};
use super::summary::Summaries;
use super::workers::{Refusal, Run};
use smolfed_accounting::accountant::{Accountant, Estimate, EstimateKind};
use smolfed_accounting::event::{Mechanism, PrivacyEvent, PrivacyUnit, Sampling, TrustModel};
use smolfed_accounting::params::{ClipNorm, Delta, NoiseMultiplier};
use smolfed_release::condition::{Condition, Randomness};
use smolfed_release::provenance::{Figure, Provenance};
use smolfed_release::statement::PrivacyStatement;

/// Few devices and rounds on the built-in digits.
pub(super) const EXPERIMENT: &str = r#"
name = "small"
method = "dp-fed-ls"
seed = 5
rounds = 2
[data]
source = "digits"
devices = 40
samples_per_device = 5
test = 0.2
[cohort]
cohort_size = 10
[train]
epochs = 1
batch_size = 5
[privacy]
clip_norm = 0.5
noise_multiplier = 1.0
"#;

/// Returns [`EXPERIMENT`] with a `[sweep]`.
pub(super) fn sweep(table: &str) -> Sweep {
    let text = format!("{EXPERIMENT}{table}");
    Sweep::parse(&text, "small.toml", &[], None).unwrap()
}

/// Returns a result of a cell with this accuracy, and with a published and a proved ε.
pub(super) fn record(sweep: &Sweep, cell: usize, seed: u64, accuracy: f64) -> RunRecord {
    let event = PrivacyEvent {
        mechanism: Mechanism::Gaussian {
            noise_multiplier: NoiseMultiplier::new(2.0).unwrap(),
        },
        sampling: Sampling::uniform(40, 10).unwrap(),
        trust: TrustModel::Central,
        unit: PrivacyUnit::Device,
        count: 2,
        releases: 1,
        devices_per_user: std::num::NonZeroU32::MIN,
    };
    let statement = |accountant, kind, epsilon| {
        let estimate = Estimate {
            epsilon,
            delta: Delta::new(1e-3).unwrap(),
            kind,
            epsilon_low: None,
            accountant,
            notes: vec!["Common to all.".to_owned(), format!("Only of seed {seed}.")],
        };
        let clip_norm = Some(ClipNorm::new(0.5).unwrap());
        let statement = PrivacyStatement::new(&estimate, &[event], clip_norm).unwrap();
        statement.with(Condition::KnownSeed {
            seed,
            of: Randomness::Simulation,
        })
    };
    RunRecord {
        experiment: sweep.fingerprint.clone(),
        settings: sweep.cells[cell].to_json(),
        seed,
        devices: 40,
        evaluations: vec![Figures {
            rounds: 2,
            figures: [(Metric::TestAccuracy, figure(accuracy))].into(),
        }],
        privacy: vec![
            statement(Accountant::Theorem1, EstimateKind::AsPublished, 6.0),
            statement(Accountant::Rdp, EstimateKind::UpperBound, 4.5),
        ],
        seconds: 0.5,
    }
}

/// Returns a figure on public samples.
pub(super) const fn figure(value: f64) -> Figure {
    let origin = Provenance::Released;
    Figure { value, origin }
}

/// Returns the cells of a sweep with these accuracies by cell and seed. `None` means refused.
pub(super) fn summaries(sweep: &Sweep, accuracies: &[&[Option<f64>]]) -> Summaries {
    let dir = tempfile::tempdir().unwrap();
    let mut results = Results::fresh(dir.path());
    let mut refusals = Vec::new();
    for (cell, accuracies) in accuracies.iter().enumerate() {
        for (&seed, accuracy) in sweep.seeds.iter().zip(*accuracies) {
            match accuracy {
                Some(accuracy) => results.add(record(sweep, cell, seed, *accuracy)).unwrap(),
                None => refusals.push(Refusal {
                    run: Run { cell, seed },
                    reason: "infeasible: too little noise".to_owned(),
                }),
            }
        }
    }
    Summaries::new(sweep, &results, &refusals).unwrap()
}
