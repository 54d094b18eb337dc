//! The noise of a release: one object holds the accounted event and its noise.

mod independent;

use std::sync::Arc;

use smolfed_accounting::correlated::Strategy;
use smolfed_accounting::{ClipNorm, NoiseMultiplier, PrivacyEvent, TrustModel};
use smolfed_core::noise::{DiscreteGaussian, NoiseError};
use smolfed_core::stream::{Purpose, Root};

use super::bit::ClipBit;
use super::split::Split;

pub(crate) use independent::add_noise;

/// Returns the sampler of a std in grid steps, and its std, which is rounded up.
///
/// # Errors
/// [`NoiseError`] if the grid cannot carry it.
pub fn sampler_of_std(std: f64) -> Result<(DiscreteGaussian, f64), NoiseError> {
    /// The std is a multiple of 1/`DENOMINATOR` steps.
    const DENOMINATOR: u64 = 1 << 10;
    let numerator = (std * DENOMINATOR as f64).ceil();
    let sampler = DiscreteGaussian::new(numerator as u64, DENOMINATOR)?;
    Ok((sampler, numerator / DENOMINATOR as f64))
}

/// The accounted event of a release, and its noise.
#[derive(Clone, Debug)]
pub struct Mechanism {
    /// The event of one release. Its `count` is 1.
    pub event: PrivacyEvent,
    /// The sampler of the noise, in steps of the grid. With a strategy, in steps of the finer grid
    /// of [`History::combine`](crate::History::combine). `None` for runs without a guarantee, and
    /// if nothing is released.
    pub sampler: Option<DiscreteGaussian>,
    /// The combination of the sums of rounds before noise is added, if the noise is correlated.
    pub strategy: Option<Arc<Strategy>>,
    /// The bit that devices send with each update if the clip norm is adaptive: it indicates
    /// whether the update was clipped.
    pub bit: Option<ClipBit>,
}

impl Mechanism {
    /// Creates a mechanism without noise for releases with this event.
    #[must_use]
    pub const fn new(event: PrivacyEvent) -> Self {
        Self {
            event,
            sampler: None,
            strategy: None,
            bit: None,
        }
    }

    /// Creates a mechanism with fresh noise of this sampler on every release.
    #[must_use]
    pub fn independent(event: PrivacyEvent, sampler: Option<DiscreteGaussian>) -> Self {
        Self {
            sampler,
            ..Self::new(event)
        }
    }

    /// Creates the noise of a test. Its event names only who adds it.
    #[cfg(test)]
    pub(crate) fn for_test(trust: TrustModel, sampler: Option<DiscreteGaussian>) -> Self {
        let noise_multiplier = NoiseMultiplier::NONE;
        let mechanism = smolfed_accounting::Mechanism::Gaussian { noise_multiplier };
        let sampling = smolfed_accounting::Sampling::full(1).unwrap();
        let event = PrivacyEvent::new(mechanism, sampling, 1);
        Self::independent(PrivacyEvent { trust, ..event }, sampler)
    }

    /// Returns who adds the noise.
    #[must_use]
    pub const fn trust(&self) -> TrustModel {
        self.event.trust
    }

    /// Returns whether devices add the noise themselves.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.trust() == TrustModel::Local
    }

    /// Returns z: noise std over clip norm, of the whole release.
    #[must_use]
    pub const fn multiplier(&self) -> NoiseMultiplier {
        self.event.mechanism.noise_multiplier()
    }

    /// Returns the noise multiplier of each party that adds noise: z, or less if the noise of
    /// several parties adds up to z.
    #[must_use]
    pub fn party_multiplier(&self) -> NoiseMultiplier {
        match self.trust() {
            TrustModel::Central | TrustModel::Local => self.multiplier(),
            TrustModel::Distributed(parties) => parties.of_each(self.multiplier()),
        }
    }

    /// Returns the split of the noise between an update and its bit. `None` without a bit or
    /// without noise.
    #[must_use]
    pub fn split(&self) -> Option<Split> {
        self.bit?.split()
    }

    /// Returns the noise std ν on the sum (on each update with local trust, on each release with
    /// correlated noise) in a round with this clip norm, in units of the parameters.
    #[must_use]
    pub fn noise_std_at(&self, clip_norm: ClipNorm) -> f64 {
        let of_updates = self.split().map_or(self.multiplier(), |split| split.update);
        let sensitivity = self.strategy.as_deref().map(Strategy::sensitivity);
        of_updates.noise_std(clip_norm) * sensitivity.unwrap_or(1.0)
    }

    /// Returns the noise std of one party: all of it, or less if the noise of several parties adds
    /// up to it.
    #[must_use]
    pub fn party_noise_std_at(&self, clip_norm: ClipNorm) -> f64 {
        let of_all = self.multiplier().get();
        let share = match of_all > 0.0 {
            true => self.party_multiplier().get() / of_all,
            false => 1.0,
        };
        self.noise_std_at(clip_norm) * share
    }

    /// Adds the server's noise of round `number` to an exact sum.
    pub(crate) fn cover(&self, sum: &mut [i64], root: &Root, purpose: Purpose, number: u32) {
        if let Some(sampler) = &self.sampler {
            add_noise(sum, sampler, root, purpose, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use smolfed_accounting::Parties;

    use super::*;

    /// Returns noise of this multiplier, without a sampler.
    fn mechanism(trust: TrustModel, multiplier: f64) -> Mechanism {
        let noise_multiplier = NoiseMultiplier::new(multiplier).unwrap();
        let mechanism = smolfed_accounting::Mechanism::Gaussian { noise_multiplier };
        let sampling = smolfed_accounting::Sampling::full(9).unwrap();
        let event = PrivacyEvent::new(mechanism, sampling, 1);
        Mechanism::new(PrivacyEvent { trust, ..event })
    }

    #[test]
    fn a_party_adds_all_of_the_noise_or_its_share() {
        let clip_norm = ClipNorm::new(0.5).unwrap();
        for trust in [TrustModel::Central, TrustModel::Local] {
            assert_eq!(mechanism(trust, 3.0).party_noise_std_at(clip_norm), 1.5);
        }
        // Four of the nine parties may collude: the noise of the other five is enough.
        let parties = Parties::new(8, 4).unwrap();
        let share = mechanism(TrustModel::Distributed(parties), 3.0);
        let std = share.party_noise_std_at(clip_norm);
        assert!((std * 5f64.sqrt() / 1.5 - 1.0).abs() < 1e-6, "{std}");
        assert_eq!(share.noise_std_at(clip_norm), 1.5);
        let silent = mechanism(TrustModel::Distributed(parties), 0.0);
        assert_eq!(silent.party_noise_std_at(clip_norm), 0.0);
    }
}
