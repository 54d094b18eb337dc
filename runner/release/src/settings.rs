//! The releases of a run, configured before it starts: their kinds and timing, clip norm, masking,
//! and the noise of a sum.

use smolfed_accounting::{PrivacyEvent, TrustModel};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::ClipNorm;
use smolfed_core::quantize::{DEFAULT_BITS, Grid};
use smolfed_core::stream::Purpose;

use super::encoding::Encoding;
use super::fault::Fault;
use super::mechanism::Mechanism;
use crate::masking::Masking;

/// How often a device releases something in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// Never: each device trains on its own.
    Never,
    /// Once per round: its update.
    #[default]
    EachRound,
    /// In each of this many local steps: its gradient.
    EachStep(u32),
}

impl Timing {
    /// Returns the number of releases of a device in a round.
    #[must_use]
    pub const fn releases(self) -> u32 {
        match self {
            Self::Never => 0,
            Self::EachRound => 1,
            Self::EachStep(steps) => steps,
        }
    }
}

/// The kind of release. Each has separate random streams, so that no noise covers two releases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Channel {
    /// The updates of a round.
    #[default]
    Updates,
    /// The moments of the devices' features, before the first round.
    Moments,
    /// The score of a trial, after the last round.
    Score,
    /// Answers to a question. The question's number names the streams, and differs from all round
    /// numbers.
    Answers,
}

impl Channel {
    /// Returns the purpose of the streams of the server's noise.
    pub(super) const fn server_noise(self) -> Purpose {
        match self {
            Self::Updates => Purpose::ServerNoise,
            Self::Moments => Purpose::ServerMomentNoise,
            Self::Score => Purpose::ServerScoreNoise,
            Self::Answers => Purpose::ServerAnswerNoise,
        }
    }

    /// Returns the purpose of the streams of the devices' noise.
    pub(super) const fn device_noise(self) -> Purpose {
        match self {
            // A device takes part once under each number: in a round, or with an answer.
            Self::Updates | Self::Answers => Purpose::DeviceNoise,
            Self::Moments => Purpose::DeviceMomentNoise,
            // Unused: trials are refused under local trust.
            Self::Score => Purpose::ServerScoreNoise,
        }
    }
}

/// The releases of a run.
#[derive(Clone, Debug)]
pub struct ReleaseSettings {
    /// The kind of release.
    pub channel: Channel,
    /// The encoding of updates as integers.
    pub encoding: Encoding,
    /// The number of samples from which on an update has weight 1. `None` for uniform weights.
    pub weight_cap: Option<u32>,
    /// The noise of a release.
    pub mechanism: Mechanism,
    /// The masking of updates (distributed trust).
    pub masking: Option<Masking>,
    /// How often a device releases something.
    pub timing: Timing,
    /// Noise std of one release of one party that adds noise, in units of the release (of the clip
    /// norm).
    pub noise_std: f64,
    /// Whether the sum may be used without noise: only with simulated devices.
    pub is_simulation: bool,
    /// An injected fault. Only audits have one.
    pub fault: Fault,
}

impl ReleaseSettings {
    /// Creates a single release of numbers of at most 1, of all devices of a simulation at once.
    #[must_use]
    pub fn once(
        channel: Channel,
        event: PrivacyEvent,
        sampler: Option<DiscreteGaussian>,
    ) -> Option<Self> {
        Self::of_numbers(channel, event, sampler, DEFAULT_BITS)
    }

    /// Creates the release of [`Self::once`] on a grid of `grid_bits` bits.
    #[must_use]
    pub fn of_numbers(
        channel: Channel,
        event: PrivacyEvent,
        sampler: Option<DiscreteGaussian>,
        grid_bits: u32,
    ) -> Option<Self> {
        let bound = ClipNorm::new(1.0).ok()?;
        Some(Self {
            channel,
            encoding: Encoding::Clipped(Grid::new(bound, grid_bits).ok()?),
            weight_cap: None,
            mechanism: Mechanism::independent(event, sampler),
            masking: None,
            timing: Timing::EachRound,
            noise_std: event.mechanism.noise_multiplier().get(),
            is_simulation: true,
            fault: Fault::None,
        })
    }

    /// Returns the masking of the updates of simulated devices. Simulated devices in a fleet have
    /// none: their updates are in the coordinator's process, and do not count for a helper's
    /// cohort.
    pub(super) fn masking_here(&self) -> Option<Masking> {
        self.masking.filter(|_| self.is_simulation)
    }

    /// Returns the noise that each device adds to its messages (local trust).
    #[must_use]
    pub fn device_noise(&self) -> Option<&DiscreteGaussian> {
        let sampler = self.mechanism.sampler.as_ref();
        sampler.filter(|_| self.mechanism.is_local())
    }

    /// Returns the release of a round with this clip norm: the noise multipliers stay the same, so
    /// the noise scales with it. Nothing changes if updates are not clipped.
    #[must_use]
    pub fn at_clip_norm(&self, clip_norm: ClipNorm) -> Self {
        let Some(grid) = self.encoding.grid() else {
            return self.clone();
        };
        let ratio = f64::from(clip_norm.get()) / f64::from(grid.clip_norm().get());
        match Grid::new(clip_norm, grid.bits()) {
            Ok(grid) => Self {
                encoding: Encoding::Clipped(grid),
                noise_std: self.noise_std * ratio,
                ..self.clone()
            },
            Err(_) => self.clone(),
        }
    }

    /// Returns the step of the integers of a round with this local learning rate, in units of the
    /// parameters. The releases of local steps are gradients.
    #[must_use]
    pub fn step(&self, learning_rate: f32) -> f64 {
        match self.timing {
            Timing::EachStep(_) => self.encoding.step() * f64::from(learning_rate),
            Timing::EachRound | Timing::Never => self.encoding.step(),
        }
    }

    /// Returns the std of the noise on the sum of such a round, in units of the parameters: from
    /// `cohort_size` devices with local noise, from the server, or from the server and its helpers.
    #[must_use]
    pub fn noise_std_of_sum(&self, learning_rate: f32, cohort_size: usize) -> f64 {
        let sources = match self.mechanism.trust() {
            TrustModel::Central => 1.0,
            TrustModel::Local => cohort_size as f64,
            TrustModel::Distributed(parties) => f64::from(parties.count()),
        };
        let releases = sources * f64::from(self.timing.releases());
        // The releases of local steps are gradients.
        let unit = self.step(learning_rate) / self.encoding.step();
        self.noise_std * releases.sqrt() * unit
    }
}

#[cfg(test)]
mod tests {
    use smolfed_accounting::{NoiseMultiplier, Parties};

    use super::*;

    /// Returns a release with steps of 1/4, and noise of std 3 in each release.
    fn release(trust: TrustModel, timing: Timing) -> ReleaseSettings {
        let grid = Grid::new(ClipNorm::new(16.0).unwrap(), 6).unwrap();
        ReleaseSettings {
            channel: Channel::Updates,
            encoding: Encoding::Clipped(grid),
            weight_cap: None,
            mechanism: Mechanism::for_test(trust, None),
            masking: None,
            timing,
            noise_std: 3.0,
            is_simulation: true,
            fault: Fault::None,
        }
    }

    #[test]
    fn noise_and_grid_follow_the_clip_norm() {
        let before = release(TrustModel::Central, Timing::EachRound);
        let after = before.at_clip_norm(ClipNorm::new(8.0).unwrap());
        assert_eq!((before.noise_std, before.step(0.5)), (3.0, 0.25));
        assert_eq!((after.noise_std, after.step(0.5)), (1.5, 0.125));
        assert_eq!(after.encoding.grid().unwrap().bits(), 6);
    }

    /// The variances of independent noise add up: of four devices under local trust, and of nine
    /// local steps of each. The release of a step is a gradient, which moves the model by the
    /// learning rate.
    #[test]
    fn noise_adds_up_over_devices_and_local_steps() {
        use {Timing::*, TrustModel::*};
        for (trust, timing, step, std) in [
            (Central, EachRound, 0.25, 3.0),
            (Local, EachRound, 0.25, 6.0),
            (Local, EachStep(9), 0.125, 9.0),
            (Local, Never, 0.25, 0.0),
            (
                Distributed(Parties::new(3, 2).unwrap()),
                EachRound,
                0.25,
                6.0,
            ),
        ] {
            let release = release(trust, timing);
            let found = (release.step(0.5), release.noise_std_of_sum(0.5, 4));
            assert_eq!(found, (step, std), "{timing:?}");
        }
    }

    /// Numbers of at most 1 on the default grid, with the noise of the event.
    #[test]
    fn a_single_release_has_the_noise_of_its_event() {
        let event = Mechanism::for_test(TrustModel::Central, None).event;
        let event = event.with_noise_multiplier(NoiseMultiplier::new(3.0).unwrap());
        let sampler = DiscreteGaussian::new(3 << DEFAULT_BITS, 1).ok();
        let once = ReleaseSettings::once(Channel::Moments, event, sampler).unwrap();
        assert_eq!((once.channel, once.noise_std), (Channel::Moments, 3.0));
        assert_eq!(once.mechanism.event, event);
        assert_eq!(once.mechanism.sampler, sampler);
        assert_eq!(once.step(0.1), f64::from(DEFAULT_BITS).exp2().recip());
        assert_eq!(once.fault, Fault::None);
    }
}
