//! Masks and helpers of distributed trust: is a mask used once, and does a helper answer once per
//! round, only for devices that took part?

use smolfed_core::stream::Root;

use crate::audit::check::Check;
use crate::audit::target::Target;
use smolfed_release::PrivateSum;
use smolfed_release::masked::{Asked, DeviceMasks, HelperError, Helpers, MaskedRound};
use smolfed_release::masking::Ring;
use smolfed_release::{ReleaseSettings, Uploads};

/// First seed of these runs.
const SEEDS: u64 = 7 << 40;
/// Entries of an update. Two masks of this length with 8 bits or more per entry are the same with
/// probability 2^-512.
const LENGTH: usize = 64;

/// Runs the tests. There are none without masks.
#[must_use]
pub fn checks(target: &Target<'_>, seed: u64) -> Vec<Check> {
    let experiment = target.experiment();
    let root = Root::from_seed(seed.wrapping_add(SEEDS));
    let (Some(masking), Some(helpers)) =
        (experiment.release.masking, experiment.local_helpers(&root))
    else {
        return Vec::new();
    };
    let scene = Scene {
        release: &experiment.release,
        ring: masking.ring,
        root,
    };
    vec![
        scene.masks(),
        scene.second_answer(helpers),
        scene.attendance(experiment.local_helpers(&scene.root)),
    ]
}

/// A few devices that send zeros under masks.
struct Scene<'a> {
    release: &'a ReleaseSettings,
    ring: Ring,
    root: Root,
}

impl Scene<'_> {
    fn sum(&self, round: u32, devices: &[u32]) -> (PrivateSum, Asked) {
        let asked = Asked {
            invitation: round.to_le_bytes().to_vec(),
            model: Vec::new(),
        };
        let masks = DeviceMasks::for_round(self.release, &self.root, round, &asked);
        let uploads = Uploads::new(self.release, &self.root, round, LENGTH);
        let mut uploads = uploads.masking(masks);
        for device in devices {
            uploads.device(*device, 1, |_| Err("it sends zeros".to_owned()));
        }
        (uploads.into_sum(), asked)
    }

    /// Returns the question for these devices. The device `forged` did not take part.
    fn question(&self, devices: &[u32], forged: Option<u32>) -> Option<MaskedRound> {
        let (mut sum, asked) = self.sum(1, devices);
        let mut attendees = std::mem::take(sum.attendees_mut());
        let found = attendees.iter_mut().find(|a| Some(a.device) == forged);
        if let Some(attendee) = found {
            attendee.tags.fill([0; 16]);
        }
        Some(MaskedRound {
            number: 1,
            terms: self.release.masking?.terms(),
            asked,
            entries: LENGTH as u32,
            attendees,
            earlier: Vec::new(),
        })
    }

    /// Checks whether the masks of a device in two rounds, and of two devices, differ. The rounds
    /// are neighbours, or have numbers with the same low 16 bits.
    fn masks(&self) -> Check {
        let seen = |round, device| -> Vec<i64> {
            let (sum, _) = self.sum(round, &[device]);
            sum.masked(self.ring)
        };
        let first = seen(0, 0);
        let same = |other: &[i64]| first.iter().zip(other).filter(|(a, b)| a == b).count();
        let in_rounds = same(&seen(1, 0)).max(same(&seen(1 << 16, 0)));
        let of_devices = same(&seen(0, 1));
        Check {
            test: "masks of two rounds",
            is_as_claimed: in_rounds.max(of_devices) < LENGTH / 2,
            evidence: format!(
                "of {LENGTH} entries, {in_rounds} are the same in two rounds, and {of_devices} of \
                 two devices"
            ),
        }
    }

    /// Checks whether a helper that has answered also answers for another list.
    fn second_answer(&self, mut helpers: Box<dyn Helpers + '_>) -> Check {
        let mut ask = |devices: &[u32]| answer(&mut *helpers, self.question(devices, None));
        let (first, second) = (ask(&[0, 1]), ask(&[0]));
        Check {
            test: "answers of a helper in one round",
            is_as_claimed: first.is_ok() && second.is_err(),
            evidence: words(&second),
        }
    }

    /// Checks whether a helper answers for a device that did not take part.
    fn attendance(&self, helpers: Option<Box<dyn Helpers + '_>>) -> Check {
        let question = self.question(&[0, 1], Some(1));
        let found = helpers.map(|mut helpers| answer(&mut *helpers, question));
        let found = found.unwrap_or(Err(HelperError::NoHelpers));
        Check {
            test: "attendance on the list of a helper",
            is_as_claimed: found.is_err(),
            evidence: words(&found),
        }
    }
}

fn answer(helpers: &mut dyn Helpers, question: Option<MaskedRound>) -> Result<(), HelperError> {
    let question = question.ok_or(HelperError::NoHelpers)?;
    helpers.unmask(&question).map(drop)
}

fn words(found: &Result<(), HelperError>) -> String {
    match found {
        Ok(()) => "it answered".to_owned(),
        Err(error) => error.to_string(),
    }
}
