//! Time of privacy accounting: one query of ε, and the noise multiplier for a target ε.

use std::error::Error;
use std::hint::black_box;

use criterion::Criterion;
use smolfed_accounting::pld::pld_epsilon;
use smolfed_accounting::{
    Accountant, CalibrationProblem, Delta, Epsilon, Mechanism, NoiseMultiplier, PrivacyEvent,
    Sampling, SamplingRate,
};

const DEVICES: u32 = 1_000;
const ROUNDS: u64 = 1_000;
const DELTA: f64 = 1e-6;
/// Relative growth of δ between queries: answers are cached, and each must be computed.
const DELTA_GROWTH: f64 = 1e-9;
const TARGET: f64 = 8.0;

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = smolfed_benches::criterion().configure_from_args();
    rdp(&mut criterion)?;
    composed(&mut criterion)?;
    criterion.final_summary();
    Ok(())
}

/// Returns Poisson sampling of 5 %, noise multiplier 1 and 1,000 rounds.
fn event() -> Result<PrivacyEvent, Box<dyn Error>> {
    let mechanism = Mechanism::Gaussian {
        noise_multiplier: NoiseMultiplier::new(1.0)?,
    };
    let sampling = Sampling::poisson(DEVICES, SamplingRate::new(0.05)?)?;
    Ok(PrivacyEvent::new(mechanism, sampling, ROUNDS))
}

fn rdp(criterion: &mut Criterion) -> Result<(), Box<dyn Error>> {
    let (event, delta) = (event()?, Delta::new(DELTA)?);
    criterion.bench_function("accounting/rdp/epsilon", |bencher| {
        bencher.iter(|| Accountant::Rdp.epsilon(black_box(&[event]), delta));
    });
    let problem = CalibrationProblem {
        accountant: Accountant::Rdp,
        event,
        spent: &[],
        target: Epsilon::new(TARGET)?,
        delta,
    };
    criterion.bench_function("accounting/rdp/noise multiplier", |bencher| {
        bencher.iter(|| black_box(&problem).noise_multiplier());
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
    let mut query = 0.0;
    criterion.bench_function("accounting/pld/noise multiplier", |bencher| {
        bencher.iter(|| {
            query += 1.0;
            let problem = CalibrationProblem {
                accountant: Accountant::Pld,
                event,
                spent: &[],
                target,
                delta: Delta::new(DELTA * (1.0 + query * DELTA_GROWTH)).unwrap_or(delta),
            };
            problem.noise_multiplier()
        });
    });
    Ok(())
}
