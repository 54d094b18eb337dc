//! Injects wiring faults into an experiment, through the inputs of the release path. The other
//! faults are in the release path itself ([`smolfed_release::fault`]).

use smolfed_accounting::{PrivacyEvent, Sampling, SamplingRate};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::ClipNorm;
use smolfed_core::quantize::Grid;

use crate::attendance::Attendance;
use crate::experiment::Experiment;
use crate::experiment::scaling::ScaleRelease;
use smolfed_data::federation::Federation;
use smolfed_release::weight;
use smolfed_release::{Channel, ClipBit, Encoding, Fault, ReleaseSettings};

/// Injects the faults outside the release path.
pub fn inject(
    fault: Fault,
    experiment: &mut Experiment,
    federation: &Federation,
    denominator: f64,
) {
    let factor = match fault {
        Fault::NoiseDividedTwice => 1.0 / denominator,
        Fault::NoiseTooSmall => 0.9,
        _ => 1.0,
    };
    if factor < 1.0
        && let Some(noise) = scaled_noise(experiment, factor)
    {
        experiment.release.mechanism.sampler = Some(noise);
    }
    match fault {
        Fault::RealisedDenominator => experiment.server.fixed_denominator = None,
        Fault::DenominatorWeighted => {
            let denominator = &mut experiment.server.fixed_denominator;
            if let (Some(cap), Some(denominator)) = (experiment.release.weight_cap, denominator) {
                *denominator *= weight::mean(cap, federation.sample_counts());
            }
        }
        Fault::SamplingRateTooLarge => {
            experiment.attendance = Attendance::Drawn(with_rate(&experiment.sampling(), 1.1));
        }
        Fault::NoNoiseOnBit => {
            let grid = experiment.release.encoding.grid();
            let bit = &mut experiment.release.mechanism.bit;
            *bit = bit.zip(grid).map(|(_, grid)| ClipBit::new(&grid, None));
        }
        _ => {}
    }
    experiment.attendance = experiment.attendance.clone().with_fault(fault);
    experiment.release.fault = fault.of_updates();
    for asked in &mut experiment.questions {
        inject_in_answers(fault, &mut asked.release);
    }
    if let (Fault::ScoreNoiseTooSmall, Some(trial)) = (fault, &mut experiment.trial) {
        let multiplier = trial.side.event.mechanism.noise_multiplier().get();
        let release = trial.release_mut();
        if let Some(noise) = noise_of(&release.encoding, 0.8 * multiplier) {
            release.mechanism.sampler = Some(noise);
        }
    }
    if let Some(scale) = &mut experiment.scale_release {
        inject_in_moments(fault, scale);
    }
}

/// Injects them into the moments of a private scale.
fn inject_in_moments(fault: Fault, scale: &mut ScaleRelease) {
    let multiplier = scale.side.event.mechanism.noise_multiplier().get();
    let release = scale.release_mut();
    match fault {
        Fault::MomentNoiseTooSmall => {
            if let Some(noise) = noise_of(&release.encoding, 0.9 * multiplier) {
                release.mechanism.sampler = Some(noise);
            }
        }
        Fault::NoNoiseOnMoments => release.mechanism.sampler = None,
        Fault::MomentNoiseReused => release.channel = Channel::Updates,
        _ => {}
    }
}

/// Injects them into the answers, which share the faults of the release path.
fn inject_in_answers(fault: Fault, release: &mut ReleaseSettings) {
    release.fault = fault;
    match fault {
        Fault::AnswerNoiseOfRound => release.channel = Channel::Updates,
        Fault::AnswerTooLong => {
            let grid = release.encoding.grid();
            // The same steps, with a bound of twice as many.
            let longer = ClipNorm::new(2.0).ok().zip(grid);
            let longer = longer.and_then(|(two, grid)| Grid::new(two, grid.bits() + 1).ok());
            release.encoding = longer.map_or(release.encoding, Encoding::Clipped);
        }
        _ => {}
    }
}

/// Returns the events to charge instead of `charges`.
pub fn charged(fault: Fault, mut charges: Vec<(u32, PrivacyEvent)>) -> Vec<(u32, PrivacyEvent)> {
    match fault {
        Fault::EventNeverCharged => {
            charges.pop();
        }
        Fault::EventChargedTwice => charges.extend(charges.last().copied()),
        Fault::EventWithAnotherRate => {
            for (_, event) in charges.iter_mut().filter(|(_, event)| !event.is_moments()) {
                event.sampling = with_rate(&event.sampling, 0.9);
            }
        }
        Fault::MomentsNeverCharged => charges.retain(|(_, event)| !event.is_moments()),
        Fault::AnswerNeverCharged => charges.retain(|(_, event)| !event.is_answer()),
        _ => {}
    }
    charges
}

/// Returns the experiment's noise with another standard deviation.
fn scaled_noise(experiment: &Experiment, factor: f64) -> Option<DiscreteGaussian> {
    let mechanism = &experiment.privacy.mechanism;
    let of_updates = mechanism.split().map(|split| split.update);
    let of_updates = of_updates.unwrap_or(mechanism.party_multiplier());
    noise_of(&experiment.release.encoding, factor * of_updates.get())
}

/// Returns noise of this std in clip norms.
fn noise_of(encoding: &Encoding, multiplier: f64) -> Option<DiscreteGaussian> {
    const DENOMINATOR: u64 = 1 << 10;
    let steps = f64::from(encoding.grid()?.bits()).exp2();
    let std = multiplier * steps * DENOMINATOR as f64;
    DiscreteGaussian::new(std.ceil() as u64, DENOMINATOR).ok()
}

/// Returns the same sampling with another rate, if devices are sampled.
pub(super) fn with_rate(sampling: &Sampling, factor: f64) -> Sampling {
    let other = match *sampling {
        Sampling::Poisson {
            device_count,
            sampling_rate,
            ..
        } => SamplingRate::new((sampling_rate.get() * factor).min(1.0))
            .and_then(|rate| Sampling::poisson(device_count, rate)),
        Sampling::Uniform {
            device_count,
            cohort_size,
            ..
        } => {
            let size = (f64::from(cohort_size) * factor).round() as u32;
            Sampling::uniform(device_count, size.clamp(1, device_count))
        }
        Sampling::BlockCyclic {
            device_count,
            parts,
            sampling_rate,
            ..
        } => SamplingRate::new((sampling_rate.get() * factor).min(1.0))
            .and_then(|rate| Sampling::block_cyclic(device_count, parts, rate)),
        other => Ok(other),
    };
    other.unwrap_or(*sampling)
}
