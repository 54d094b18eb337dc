//! The view of a party: it knows its own noise, and subtracts it from a release. For audits, which
//! attack the views of parties in a simulation.

use smolfed_core::stream::{Purpose, Root};

use super::device::helper_root;
use super::policy::HelperPolicy;
use crate::mechanism::add_noise;
use crate::settings::ReleaseSettings;

/// A party that adds noise to a release under distributed trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The coordinator.
    Coordinator,
    /// A helper, from 0.
    Helper(u8),
}

impl Party {
    /// Returns the noise that it added to `length` integers in round `number` of a simulation with
    /// this root.
    #[must_use]
    pub fn noise(
        self,
        release: &ReleaseSettings,
        policy: &HelperPolicy,
        root: &Root,
        number: u32,
        length: usize,
    ) -> Vec<i64> {
        let (fault, mechanism) = (release.fault, &release.mechanism);
        let mut noise = vec![0; length];
        match self {
            Self::Coordinator => {
                let purpose = release.channel.server_noise();
                fault.cover(&mut noise, number, |sum| {
                    mechanism.cover(sum, root, purpose, fault.noise_number(number));
                });
            }
            Self::Helper(helper) => {
                let terms = release.masking.map(|masking| masking.terms());
                let sampler = terms.and_then(|terms| policy.accepts(terms).ok()?.1);
                if let Some(sampler) = sampler.filter(|_| !fault.is_helper_silent()) {
                    let root = helper_root(root, helper);
                    let number = fault.helper_number(number);
                    add_noise(&mut noise, &sampler, &root, Purpose::HelperNoise, number);
                }
            }
        }
        noise
    }
}
