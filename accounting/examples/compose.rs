//! A budget over several runs: what is spent composes, and the next run is planned with the rest.
//!
//! `cargo run -p smolfed-accounting --example compose`

use std::error::Error;

use smolfed_accounting::{
    Accountant, CalibrationProblem, Delta, Epsilon, Mechanism, NoiseMultiplier, PrivacyEvent,
    Sampling, SamplingRate,
};

fn main() -> Result<(), Box<dyn Error>> {
    let delta = Delta::new(1e-5)?;
    let gaussian = |noise_multiplier| {
        let noise_multiplier = NoiseMultiplier::new(noise_multiplier)?;
        Ok::<_, Box<dyn Error>>(Mechanism::Gaussian { noise_multiplier })
    };
    let statistics = PrivacyEvent::new(gaussian(8.0)?, Sampling::full(5_000)?, 1);
    let sampling = Sampling::poisson(5_000, SamplingRate::new(0.02)?)?;
    let pretraining = PrivacyEvent::new(gaussian(1.5)?, sampling, 400);
    let spent = [statistics, pretraining];

    let accountant = Accountant::Pld;
    for events in [&spent[..1], &spent[1..], &spent] {
        let epsilon = accountant.epsilon(events, delta)?.epsilon;
        println!("{} event(s): epsilon at most {epsilon:.4}", events.len());
    }

    // Fine-tuning with a noise multiplier of 1, until epsilon 3 is spent in total.
    let problem = CalibrationProblem {
        accountant,
        event: PrivacyEvent::new(gaussian(1.0)?, sampling, 1),
        spent: &spent,
        target: Epsilon::new(3.0)?,
        delta,
    };
    let rounds = problem.rounds()?;
    println!(
        "{} rounds of fine-tuning fit: epsilon {:.4}",
        rounds.value, rounds.estimate.epsilon
    );
    Ok(())
}
