//! The ε of DP-SGD by each accountant that knows it, and the noise for a target ε.
//!
//! `cargo run -p smolfed-accounting --example epsilon`

use std::error::Error;

use smolfed_accounting::{
    Accountant, CalibrationProblem, Comparison, Delta, Epsilon, Mechanism, NoiseMultiplier,
    PrivacyEvent, Sampling, SamplingRate,
};

fn main() -> Result<(), Box<dyn Error>> {
    // 60,000 records, batches of 256 on average, 10 passes over the data.
    let sampling_rate = SamplingRate::new(256.0 / 60_000.0)?;
    let steps = (10.0 / sampling_rate.get()).round() as u64;
    let event = PrivacyEvent::new(
        Mechanism::Gaussian {
            noise_multiplier: NoiseMultiplier::new(1.1)?,
        },
        Sampling::poisson(60_000, sampling_rate)?,
        steps,
    );
    let delta = Delta::new(1e-5)?;

    let accountants = [
        Accountant::Pld,
        Accountant::Rdp,
        Accountant::RdpClassic,
        Accountant::Gdp,
        Accountant::UniformProfile,
    ];
    let comparison = Comparison::of_events(&accountants, &[event], delta);
    for (answer, estimate) in comparison.found() {
        let kind = estimate.kind.words();
        let name = answer.accountant.name();
        println!("{name:<12} {:.4}  {kind}", estimate.epsilon);
        for note in &estimate.notes {
            println!("             {note}");
        }
    }
    for (_, reason) in comparison.refused() {
        println!("{reason}");
    }

    let problem = CalibrationProblem {
        accountant: Accountant::tightest_for(&[event]),
        event,
        spent: &[],
        target: Epsilon::new(1.0)?,
        delta,
    };
    let found = problem.noise_multiplier()?;
    println!("epsilon 1 needs a noise multiplier of {:.4}", found.value);
    Ok(())
}
