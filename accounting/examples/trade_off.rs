//! What an ε means for an attacker: the best membership test that any adversary could run.
//!
//! `cargo run -p smolfed-accounting --example trade_off`

use std::error::Error;

use smolfed_accounting::{
    Accountant, Delta, Mechanism, NoiseMultiplier, PrivacyEvent, Sampling, SamplingRate, TradeOff,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mechanism = Mechanism::Gaussian {
        noise_multiplier: NoiseMultiplier::new(1.0)?,
    };
    let sampling = Sampling::poisson(10_000, SamplingRate::new(0.01)?)?;
    let events = [PrivacyEvent::new(mechanism, sampling, 1_000)];
    let estimate = Accountant::Pld.epsilon(&events, Delta::new(1e-5)?)?;

    // The whole privacy profile bounds a test more sharply than its one point (ε, δ).
    let profile = TradeOff::of_events(&estimate, &events);
    let point = TradeOff::new(estimate.epsilon, estimate.delta);
    println!("epsilon {:.3} at delta 1e-5", estimate.epsilon);
    println!("false positives   true positives, profile   one point");
    for rate in [0.001, 0.01, 0.1, 0.5] {
        println!(
            "{rate:>15.3}   {:>23.4}   {:>9.4}",
            profile.true_positive_rate(rate),
            point.true_positive_rate(rate)
        );
    }
    println!("advantage at most {:.4}", profile.advantage());
    Ok(())
}
