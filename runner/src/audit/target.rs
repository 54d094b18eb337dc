//! What is attacked: the rounds of an experiment, without their training.
//!
//! A canary is a device whose update is L along a coordinate of its own (and, under replace-one,
//! −L in the other world); all others send zero. No update of norm L can be told from another one
//! better than these from zero, and coordinates of their own keep canaries apart. Everything else
//! is the code of `smolfed run`: the draw of the cohort, clipping, the grid and its check, the
//! exact sum, the discrete Gaussian, its streams, the denominator. What comes after the noisy
//! average is post-processing and cannot lose more.

use smolfed_core::clip::clip_l2;
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::ClipNorm;
use smolfed_core::quantize::Grid;
use smolfed_core::stream::{Purpose, Root, StreamId};

use crate::experiment::Experiment;
use crate::privacy::event::{Adjacency, Sampling};
use crate::sampling::draw_cohort;
use crate::server::{NoisySum, ServerStep, add_noise};
use crate::simulate::Encoding;

/// A bug, planted to see that the audit finds it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// None: the code as it is.
    #[default]
    None,
    /// The noise is divided by the size of the cohort, and then the noisy sum is again.
    NoiseDividedTwice,
    /// Updates are neither clipped nor checked; the canary's is ten times too long.
    ClipSkipped,
    /// The sum is divided by the number of devices drawn.
    RealisedDenominator,
    /// All rounds draw the same noise.
    NoiseStreamReused,
}

impl Fault {
    /// All that can be planted.
    pub const ALL: [Self; 4] = [
        Self::NoiseDividedTwice,
        Self::ClipSkipped,
        Self::RealisedDenominator,
        Self::NoiseStreamReused,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::NoiseDividedTwice => "noise-divided-twice",
            Self::ClipSkipped => "clip-skipped",
            Self::RealisedDenominator => "realised-denominator",
            Self::NoiseStreamReused => "noise-stream-reused",
        }
    }
}

/// Why an experiment cannot be audited.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// Nothing is clipped or nothing is added, so that nothing is claimed.
    #[error(
        "there is nothing to audit: without `privacy.clip_norm` and noise no epsilon is claimed"
    )]
    NothingClaimed,
    /// Devices that release something in each local step.
    #[error(
        "the audit sends one update a round, and this experiment releases {releases}: set \
         `personalise.noise` to \"each-round\""
    )]
    Steps {
        /// Releases of a device in a round.
        releases: u32,
    },
}

/// What the attacker sees of one round.
#[derive(Debug, Clone)]
pub struct Release {
    /// The noisy average, or under local trust the sum of the canaries' own uploads.
    pub average: Vec<f32>,
}

/// The mechanism of an experiment.
#[derive(Debug, Clone)]
pub struct Target {
    sampling: Sampling,
    rounds: u32,
    grid: Grid,
    clip_norm: ClipNorm,
    noise: DiscreteGaussian,
    is_local: bool,
    server: ServerStep,
    fault: Fault,
    /// z and the steps of a clip norm.
    noise_multiplier: f64,
    steps: f64,
}

impl Target {
    /// The mechanism of `experiment`, with a bug if one is to be planted.
    ///
    /// # Errors
    /// [`TargetError::NothingClaimed`] without a clip norm or without noise.
    pub fn new(experiment: &Experiment, fault: Fault) -> Result<Self, TargetError> {
        let (Encoding::Clipped(grid), Some(noise), Some(clip_norm)) = (
            experiment.encoding,
            experiment.privacy.noise,
            experiment.training.clip_norm,
        ) else {
            return Err(TargetError::NothingClaimed);
        };
        let releases = experiment.privacy.event.releases;
        if releases != 1 {
            return Err(TargetError::Steps { releases });
        }
        let mut server = experiment.server.clone();
        if fault == Fault::RealisedDenominator {
            server.fixed_denominator = None;
        }
        let mut target = Self {
            sampling: experiment.sampling,
            rounds: experiment.config.rounds,
            grid,
            clip_norm,
            noise,
            is_local: experiment.privacy.is_local(),
            server,
            fault,
            noise_multiplier: experiment.privacy.multiplier().get(),
            steps: f64::from(grid.bits()).exp2(),
        };
        if fault == Fault::NoiseDividedTwice {
            target.noise = target.divided_noise().unwrap_or(noise);
        }
        Ok(target)
    }

    /// The noise that a server would add which divides it by the cohort, too.
    fn divided_noise(&self) -> Option<DiscreteGaussian> {
        const DENOMINATOR: u64 = 1 << 10;
        let cohort = self.server.fixed_denominator?;
        let std = self.noise_multiplier * self.steps * DENOMINATOR as f64 / cohort;
        DiscreteGaussian::new(std.ceil() as u64, DENOMINATOR).ok()
    }

    /// Devices in the federation.
    #[must_use]
    pub const fn device_count(&self) -> u32 {
        self.sampling.device_count()
    }

    /// Rounds of the experiment.
    #[must_use]
    pub const fn rounds(&self) -> u32 {
        self.rounds
    }

    /// One run: device j is a canary at coordinate j and takes part if `is_in[j]`.
    ///
    /// `coordinates` is the length of the model, at least as long as `is_in`. The devices after the
    /// canaries send zeros. A canary that is not in is not there under add-remove, and sends −L
    /// under replace-one.
    #[must_use]
    pub fn releases(&self, root: &Root, is_in: &[bool], coordinates: usize) -> Vec<Release> {
        (0..self.rounds)
            .map(|round| self.release(root, round, is_in, coordinates))
            .collect()
    }

    fn release(&self, root: &Root, round: u32, is_in: &[bool], coordinates: usize) -> Release {
        // The other world of a canary: under replace-one the opposite update; where the server sees
        // who takes part, a zero update; else it is not there.
        let other = match self.sampling.adjacency() {
            Adjacency::ReplaceOne => Some(-1.0),
            Adjacency::AddRemove if self.is_local => Some(0.0),
            Adjacency::AddRemove => None,
        };
        let is_out = |device: u32| is_in.get(device as usize).copied() == Some(false);
        let is_there = |device: u32| other.is_some() || !is_out(device);
        let mut cohort = draw_cohort(&self.sampling, root, round);
        cohort.retain(|device| is_there(*device));
        let mut sum = vec![0i64; coordinates];
        for device in cohort.iter().map(|device| *device as usize) {
            let Some(is_in) = is_in.get(device) else {
                continue;
            };
            let sign = if *is_in { 1.0 } else { other.unwrap_or(0.0) };
            if let Some(entry) = sum.get_mut(device) {
                *entry += self.upload(sign);
            }
        }
        let noise_round = match self.fault {
            Fault::NoiseStreamReused => 0,
            _ => round,
        };
        if self.is_local {
            self.add_device_noise(&mut sum, root, noise_round, &cohort);
        } else {
            add_noise(&mut sum, &self.noise, root, noise_round);
        }
        let average = self.server.average(&NoisySum {
            integers: &sum,
            step: Encoding::Clipped(self.grid).step(),
            noise_std: 0.0,
            cohort_size: cohort.len(),
        });
        Release { average }
    }

    /// Under local trust the server sees each upload: the canary's own noise at its coordinate.
    /// Who did not upload left nothing there, which the server sees as well.
    fn add_device_noise(&self, sum: &mut [i64], root: &Root, round: u32, cohort: &[u32]) {
        for device in cohort {
            let id = StreamId {
                purpose: Purpose::DeviceNoise,
                round,
                device: *device,
            };
            if let Some(entry) = sum.get_mut(*device as usize..=*device as usize) {
                self.noise.add_to(entry, &mut root.stream(id));
            }
        }
    }

    /// A canary's integer at its coordinate, by the device's own code.
    fn upload(&self, sign: f32) -> i64 {
        /// The update before it is clipped, in clip norms.
        const LENGTH: f32 = 10.0;
        let mut update = [sign * LENGTH * self.clip_norm.get()];
        if self.fault == Fault::ClipSkipped {
            return (f64::from(update[0]) / Encoding::Clipped(self.grid).step()) as i64;
        }
        let mut integers = [0];
        let clipped = clip_l2(&mut update, self.clip_norm.get()).is_ok()
            && self.grid.quantize_into(&update, &mut integers).is_ok()
            && self.grid.check(&integers).is_ok();
        // What fails is left out of the round: a zero update.
        if clipped { i64::from(integers[0]) } else { 0 }
    }
}
