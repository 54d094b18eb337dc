//! Released programs, without the feature `faults`: a fault changes nothing.
//!
//! The workspace's tests have that feature. This test runs alone and shares the crates of the
//! release build: `cargo test --release -p smolfed --features full --test without_faults`.
#![cfg(not(feature = "faults"))]
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use smolfed_accounting::{NoiseMultiplier, PrivacyEvent, Sampling, TrustModel};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::ClipNorm;
use smolfed_core::quantize::Grid;
use smolfed_core::stream::Root;
use smolfed_core::train::TrainReport;
use smolfed_release::sum::ReleaseAt;
use smolfed_release::{
    Admitted, Channel, Encoding, Fault, Mechanism, Outcome, ReleaseSettings, Released, Timing,
    Uploads,
};

const LENGTH: usize = 9000;

/// Returns the release of one device and the server with this fault, and the device's outcome.
fn release(fault: Fault, trust: TrustModel, entry: f32) -> (Released, Outcome) {
    let noise = DiscreteGaussian::new(1 << 20, 1).unwrap();
    let gaussian = smolfed_accounting::Mechanism::Gaussian {
        noise_multiplier: NoiseMultiplier::NONE,
    };
    let event = PrivacyEvent {
        trust,
        ..PrivacyEvent::new(gaussian, Sampling::full(1).unwrap(), 1)
    };
    let release = ReleaseSettings {
        channel: Channel::Updates,
        encoding: Encoding::Clipped(Grid::new(ClipNorm::new(0.5).unwrap(), 20).unwrap()),
        weight_cap: None,
        mechanism: Mechanism::independent(event, Some(noise)),
        masking: None,
        timing: Timing::EachRound,
        noise_std: 0.5,
        is_simulation: true,
        fault,
    };
    let root = Root::from_seed(5);
    let mut uploads = Uploads::new(&release, &root, 1, LENGTH);
    let outcome = uploads.device(1, 1, |contribution| {
        contribution.update()[0] = entry;
        Ok(TrainReport::default())
    });
    let at = ReleaseAt {
        number: 1,
        learning_rate: 0.1,
        cohort_size: 1,
    };
    (uploads.into_sum().release(&release, &root, &at), outcome)
}

#[test]
fn noise_cannot_be_switched_off() {
    const { assert!(!Fault::ARE_COMPILED) };
    for trust in [TrustModel::Central, TrustModel::Local] {
        let (honest, _) = release(Fault::None, trust, 0.25);
        for fault in [
            Fault::NoNoiseIn(1),
            Fault::NoNoiseInOneBlock,
            Fault::NoNoiseAtOneDevice,
            Fault::NoiseStreamReused,
            Fault::NoiseSharedByTwoRounds,
        ] {
            let (released, _) = release(fault, trust, 0.25);
            assert_eq!(released.over(1.0), honest.over(1.0), "{fault:?}");
        }
    }
}

#[test]
fn the_check_cannot_be_switched_off() {
    let (_, outcome) = release(Fault::NoClipFrom(0), TrustModel::Central, 2.0);
    assert!(matches!(outcome, Outcome::LeftOut { .. }), "{outcome:?}");
    let admitted = Admitted::Only(vec![3]);
    assert_eq!(Fault::DeviceLetInEarly.admits(admitted.clone()), admitted);
}
