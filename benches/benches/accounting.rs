//! What privacy accounting costs: one query of ε, and the noise for a target ε.

use std::error::Error;
use std::hint::black_box;

use criterion::Criterion;
use smolfed::privacy::pld::pld_epsilon;
use smolfed::privacy::{
    Accountant, Delta, Epsilon, Mechanism, NoiseMultiplier, Plan, PrivacyEvent, PrivacyUnit,
    Sampling, SamplingRate, TrustModel,
};

const DEVICES: u32 = 1_000;
const ROUNDS: u64 = 1_000;
const DELTA: f64 = 1e-6;
/// Part by which δ grows from one query to the next: answers are kept, and none may be found again.
const APART: f64 = 1e-9;
const TARGET: f64 = 8.0;

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = smolfed_benches::criterion().configure_from_args();
    rdp(&mut criterion)?;
    composed(&mut criterion)?;
    criterion.final_summary();
    Ok(())
}

/// Poisson sampling of 5 %, noise multiplier 1, 1,000 rounds.
fn event() -> Result<PrivacyEvent, Box<dyn Error>> {
    Ok(PrivacyEvent {
        mechanism: Mechanism::Gaussian {
            noise_multiplier: NoiseMultiplier::new(1.0)?,
        },
        sampling: Sampling::poisson(DEVICES, SamplingRate::new(0.05)?)?,
        trust: TrustModel::Central,
        unit: PrivacyUnit::Device,
        count: ROUNDS,
        releases: 1,
    })
}

fn rdp(criterion: &mut Criterion) -> Result<(), Box<dyn Error>> {
    let (event, delta) = (event()?, Delta::new(DELTA)?);
    criterion.bench_function("accounting/rdp/epsilon", |bencher| {
        bencher.iter(|| Accountant::Rdp.epsilon(black_box(&[event]), delta));
    });
    let plan = Plan {
        accountant: Accountant::Rdp,
        event,
        spent: &[],
        target: Epsilon::new(TARGET)?,
        delta,
    };
    criterion.bench_function("accounting/rdp/noise multiplier", |bencher| {
        bencher.iter(|| black_box(&plan).noise_multiplier());
    });
    Ok(())
}

fn composed(criterion: &mut Criterion) -> Result<(), Box<dyn Error>> {
    let event = event()?;
    let (exposure, delta) = ([event.exposure()], Delta::new(DELTA)?);
    criterion.bench_function("accounting/pld/epsilon", |bencher| {
        bencher.iter(|| pld_epsilon(black_box(&exposure), delta));
    });
    let target = Epsilon::new(TARGET)?;
    let mut question = 0.0;
    criterion.bench_function("accounting/pld/noise multiplier", |bencher| {
        bencher.iter(|| {
            question += 1.0;
            let plan = Plan {
                accountant: Accountant::Pld,
                event,
                spent: &[],
                target,
                delta: Delta::new(DELTA * (1.0 + question * APART)).unwrap_or(delta),
            };
            plan.noise_multiplier()
        });
    });
    Ok(())
}
