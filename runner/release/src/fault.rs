//! Wiring faults that `smolfed audit --fault` injects, to check that the audit detects them. No run
//! has one: an experiment sets [`Fault::None`], and only an audit's target changes it. Without the
//! cargo feature `faults`, which no released program enables, faults do not affect the release.
//! docs/wiring-faults.md names the test that detects each of them.

use std::ops::Range;

use super::admission::Admitted;

/// Coordinates that share a noise stream of the server: the second block, which a fault leaves
/// without noise.
const BLOCK: Range<usize> = 4096..8192;
/// The first coordinate that a fault leaves without noise.
const UNCOVERED: usize = 20_480;
/// Coordinates after which the noise repeats.
const REPEATED: usize = 16_384;
/// Devices after which the noise of the devices repeats.
const APART: u32 = 64;
/// The device affected by a fault at one device.
const DEVICE: u32 = 1;
/// The device whose coin it shares.
const OTHER_DEVICE: u32 = 17;

/// A fault injected to test whether the audit detects it. Only audits have one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// None: the code as it is.
    #[default]
    None,
    /// The noise is divided by the cohort size, and the noisy sum is then divided by it again.
    NoiseDividedTwice,
    /// The standard deviation of the noise is a tenth smaller than claimed.
    NoiseTooSmall,
    /// All rounds draw the same noise.
    NoiseStreamReused,
    /// The second round draws the noise of the first.
    NoiseSharedByTwoRounds,
    /// A round in the middle of the run has no noise.
    NoNoiseInOneRound,
    /// The last round has no noise.
    NoNoiseInLastRound,
    /// The coordinates from 4,096 to 8,191 have no noise.
    NoNoiseInOneBlock,
    /// One device adds no noise to its uploads (local trust).
    NoNoiseAtOneDevice,
    /// Updates are neither clipped nor checked, and the canary's update is ten times too long.
    ClipSkipped,
    /// The last tensor of a model is neither clipped nor checked.
    ClipSkippedForOneTensor,
    /// Coordinates from 512 on are neither clipped nor checked.
    ClipSkippedFrom512,
    /// The sum is divided by the number of devices drawn.
    RealisedDenominator,
    /// The cohort of the first round takes part in every round.
    CohortKept,
    /// Devices are drawn at a rate that is a tenth larger than is claimed.
    SamplingRateTooLarge,
    /// The last round is not charged.
    EventNeverCharged,
    /// The last round is charged twice: the claim is larger than necessary, but holds.
    EventChargedTwice,
    /// Rounds are charged with a sampling rate that is a tenth too small.
    EventWithAnotherRate,
    /// The noise on correlation matrices is a tenth smaller than claimed.
    MatrixNoiseTooSmall,
    /// The noise on the moments of a private scale is a tenth smaller than claimed.
    MomentNoiseTooSmall,
    /// The moments of a private scale have no noise.
    NoNoiseOnMoments,
    /// The moments of a private scale have the noise of the first round's updates.
    MomentNoiseReused,
    /// The moments of a private scale are not charged.
    MomentsNeverCharged,
    /// The bit of adaptive clipping has no noise.
    NoNoiseOnBit,
    /// The bit of adaptive clipping has the noise of the first coordinate of the updates (central
    /// trust).
    BitNoiseReused,
    /// Devices send their bit as 0 or 1 instead of as -1/2 or 1/2.
    WholeBit,
    /// The coefficients that combine sums of rounds are larger than accounted for (correlated
    /// noise).
    OtherCoefficients,
    /// Devices take part in every round (correlated noise).
    DeviceLetInEarly,
    /// All rounds have the same masks (distributed trust).
    MaskReused,
    /// Helpers add no noise (distributed trust).
    NoHelperNoise,
    /// Helpers answer twice in a round, for different lists (distributed trust).
    OneAnswerTooMany,
    /// Helpers answer for devices that did not take part (distributed trust).
    AttendanceForged,
    /// Two devices share the coin that draws them.
    CoinShared,
    /// One device is drawn in every round.
    DeviceAlwaysDrawn,
    /// The draw from a part is the same in each of its turns (block-cyclic sampling).
    TurnsAlike,
    /// The coordinates from 20,480 on have no noise.
    NoNoiseFrom20480,
    /// Blocks of the server's noise repeat after 16,384 coordinates.
    NoiseBlocksRepeated,
    /// A device without an update adds no noise (local trust).
    NoNoiseWithoutUpdate,
    /// Devices whose numbers differ by 64 add the same noise (local trust).
    DeviceNoiseShared,
    /// Helpers add the same noise in every round (distributed trust).
    HelperNoiseReused,
    /// Masks depend only on the lower 16 bits of the round number (distributed trust).
    MaskRoundCut,
    /// The denominator is multiplied by the mean weight of the devices (weights by samples).
    DenominatorWeighted,
    /// A device trains on two ranks (several processes).
    DeviceOnTwoRanks,
    /// Only the first step of a round has noise (noise of each step).
    NoiseOnFirstStepOnly,
    /// The noise on the score of a trial is a fifth smaller than is claimed (private selection).
    ScoreNoiseTooSmall,
    /// The first entry of an answer has no noise (questions).
    AnswerEntryWithoutNoise,
    /// The answer of one device is added twice (questions).
    AnswersTwice,
    /// Answers have the noise of the previous round's updates (questions).
    AnswerNoiseOfRound,
    /// Answers are not charged (questions).
    AnswerNeverCharged,
    /// Answers with twice the claimed norm are accepted (questions).
    AnswerTooLong,
    /// The previous round's cohort is asked (questions).
    AnswerCohortOfRound,
    /// No noise in the round of this number.
    #[value(skip)]
    NoNoiseIn(u32),
    /// No clipping and no check from this coordinate on.
    #[value(skip)]
    NoClipFrom(usize),
}

impl Fault {
    /// Whether this crate was compiled with faults. Otherwise nothing can switch noise off.
    pub const ARE_COMPILED: bool = cfg!(any(test, feature = "faults"));

    /// Returns the fault itself if faults are compiled, and [`Fault::None`] otherwise.
    #[must_use]
    pub const fn compiled(self) -> Self {
        if Self::ARE_COMPILED { self } else { Self::None }
    }

    /// Returns the name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Returns the same fault, placed in a run of `rounds` rounds on tensors of these lengths.
    #[must_use]
    pub fn placed(self, rounds: u32, tensors: &[usize]) -> Self {
        match self {
            Self::NoNoiseInOneRound => Self::NoNoiseIn(rounds / 2),
            Self::NoNoiseInLastRound => Self::NoNoiseIn(rounds.saturating_sub(1)),
            Self::ClipSkipped => Self::NoClipFrom(0),
            Self::ClipSkippedFrom512 => Self::NoClipFrom(512),
            Self::ClipSkippedForOneTensor => {
                let before = tensors.split_last().map_or(&[][..], |(_, before)| before);
                Self::NoClipFrom(before.iter().sum())
            }
            _ => self,
        }
    }

    /// Returns the number that names the draw of a round, if the same devices have their turn again
    /// after `turns` rounds.
    #[must_use]
    pub fn draw_number(self, number: u32, turns: u32) -> u32 {
        match self.compiled() {
            Self::CohortKept => 0,
            Self::TurnsAlike => number.checked_rem(turns).unwrap_or(number),
            _ => number,
        }
    }

    /// Returns the cohort that replaces the drawn one, both in ascending order.
    #[must_use]
    pub fn drawn(self, mut cohort: Vec<u32>) -> Vec<u32> {
        let is_drawn = match self.compiled() {
            Self::CoinShared => cohort.contains(&OTHER_DEVICE),
            Self::DeviceAlwaysDrawn => true,
            _ => return cohort,
        };
        cohort.retain(|device| *device != DEVICE);
        if is_drawn {
            cohort.push(DEVICE);
            cohort.sort_unstable();
        }
        cohort
    }

    /// Returns the devices of a rank. Without a fault they are `part`, a contiguous part of the
    /// cohort.
    #[must_use]
    pub fn part<'a>(self, cohort: &'a [u32], part: &'a [u32]) -> &'a [u32] {
        let (Self::DeviceOnTwoRanks, Some(first)) = (self.compiled(), part.first()) else {
            return part;
        };
        let start = cohort.partition_point(|device| device < first);
        &cohort[start.saturating_sub(1)..start + part.len()]
    }

    /// Returns the number that names the noise streams of a round.
    pub(super) const fn noise_number(self, number: u32) -> u32 {
        match (self.compiled(), number) {
            (Self::NoiseStreamReused, _) | (Self::NoiseSharedByTwoRounds, 1) => 0,
            _ => number,
        }
    }

    /// Returns the round that names the masks of `round`.
    pub(super) const fn mask_round(self, round: u32) -> u32 {
        match self.compiled() {
            Self::MaskReused => 0,
            Self::MaskRoundCut => round & 0xFFFF,
            _ => round,
        }
    }

    /// Returns whether helpers add no noise.
    pub(super) const fn is_helper_silent(self) -> bool {
        matches!(self.compiled(), Self::NoHelperNoise)
    }

    /// Returns the number that names the helpers' noise of a round.
    pub(super) const fn helper_number(self, round: u32) -> u32 {
        match self.compiled() {
            Self::HelperNoiseReused => 0,
            _ => round,
        }
    }

    /// Returns whether helpers answer as often as they are asked.
    pub(super) const fn answers_again(self) -> bool {
        matches!(self.compiled(), Self::OneAnswerTooMany)
    }

    /// Returns whether helpers ignore the tags of devices.
    pub(super) const fn trusts_tags(self) -> bool {
        matches!(self.compiled(), Self::AttendanceForged)
    }

    /// Returns the devices admitted to a round, if `admitted` should be.
    #[must_use]
    pub fn admits(self, admitted: Admitted) -> Admitted {
        match self.compiled() {
            Self::DeviceLetInEarly => Admitted::All,
            _ => admitted,
        }
    }

    /// Returns the fault in the release of updates: none, if it affects answers.
    #[must_use]
    pub const fn of_updates(self) -> Self {
        match self {
            Self::AnswerEntryWithoutNoise => Self::None,
            _ => self,
        }
    }

    /// Returns the number that names the draw of the asked devices. Without a fault, this is `own`.
    /// `of_round` names the draw of the round before.
    #[must_use]
    pub const fn answer_draw(self, own: u32, of_round: u32) -> u32 {
        match self.compiled() {
            Self::AnswerCohortOfRound => of_round,
            _ => own,
        }
    }

    /// Returns the number that names the noise on answers. Without a fault it is the number of the
    /// draw.
    #[must_use]
    pub const fn answer_number(self, drawn: u32, own: u32, of_round: u32) -> u32 {
        match self.compiled() {
            Self::AnswerCohortOfRound => own,
            Self::AnswerNoiseOfRound => of_round,
            _ => drawn,
        }
    }

    /// Returns how often the answer of a device is added.
    #[must_use]
    pub const fn answers_of(self, device: u32) -> usize {
        match self.compiled() {
            Self::AnswersTwice if device == DEVICE => 2,
            _ => 1,
        }
    }

    /// Removes the noise from the first entry, which was `clean` before.
    pub(super) fn uncover_first(self, clean: Option<i64>, values: &mut [i64]) {
        if let (Self::AnswerEntryWithoutNoise, Some(clean), Some(first)) =
            (self.compiled(), clean, values.first_mut())
        {
            *first = clean;
        }
    }

    /// Lets the server add its noise of round `number`.
    pub(super) fn cover(self, sum: &mut [i64], number: u32, add_noise: impl Fn(&mut [i64])) {
        match self.compiled() {
            Self::NoNoiseIn(round) if round == number => {}
            Self::NoNoiseInOneBlock => {
                let block = BLOCK.start.min(sum.len())..BLOCK.end.min(sum.len());
                let clean = sum[block.clone()].to_vec();
                add_noise(sum);
                sum[block].copy_from_slice(&clean);
            }
            Self::NoNoiseFrom20480 => {
                let covered = sum.len().min(UNCOVERED);
                add_noise(&mut sum[..covered]);
            }
            Self::NoiseBlocksRepeated => sum.chunks_mut(REPEATED).for_each(add_noise),
            _ => {
                let first = sum.first().copied();
                add_noise(sum);
                self.uncover_first(first, sum);
            }
        }
    }

    /// Returns the block that names the noise stream of the bits: `block` without a fault.
    pub(super) const fn bit_block(self, block: u32) -> u32 {
        match self.compiled() {
            Self::BitNoiseReused => 0,
            _ => block,
        }
    }

    /// Returns the integer that a device sends for this half.
    pub(super) const fn bit(self, half: i64) -> i64 {
        match self.compiled() {
            Self::WholeBit => half + half.abs(),
            _ => half,
        }
    }

    /// Returns whether a device adds its noise in round `number`.
    pub(super) fn has_noise_at(self, device: u32, number: u32) -> bool {
        match self.compiled() {
            Self::NoNoiseAtOneDevice => device != DEVICE,
            Self::NoNoiseIn(round) => round != number,
            _ => true,
        }
    }

    /// Returns whether a device without an update still adds noise.
    pub(super) const fn covers_absence(self) -> bool {
        !matches!(self.compiled(), Self::NoNoiseWithoutUpdate)
    }

    /// Returns whether each step of a device has noise.
    pub(super) const fn covers_each_step(self) -> bool {
        !matches!(self.compiled(), Self::NoiseOnFirstStepOnly)
    }

    /// Returns the device that names the noise streams of `device`.
    pub(super) const fn noise_device(self, device: u32) -> u32 {
        match self.compiled() {
            Self::DeviceNoiseShared => device % APART,
            _ => device,
        }
    }

    /// Returns the number of leading coordinates of an update of `length` that are clipped and
    /// checked.
    pub(super) fn bounded(self, length: usize) -> usize {
        match self.compiled() {
            Self::NoClipFrom(coordinate) => coordinate.min(length),
            _ => length,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    /// The table of each injected fault, with the tests and verdicts that detect it.
    const TABLE: &str = include_str!("../../../docs/wiring-faults.md");

    #[test]
    fn the_table_has_every_fault() {
        for fault in Fault::value_variants() {
            let row = format!("| `{}` |", fault.name());
            let is_there = *fault == Fault::None || TABLE.contains(&row);
            assert!(is_there, "{}", fault.name());
        }
    }

    #[test]
    fn nothing_is_planted_in_an_honest_release() {
        let none = Fault::None.placed(40, &[3, 4]);
        assert_eq!(none, Fault::None);
        assert_eq!((none.noise_number(7), none.bounded(650)), (7, 650));
        assert!(none.has_noise_at(DEVICE, 39));
        assert_eq!(
            (none.draw_number(39, 4), none.drawn(vec![3])),
            (39, vec![3])
        );
        assert_eq!((none.bit_block(9), none.bit(-4)), (9, -4));
        assert_eq!((none.noise_device(70), none.helper_number(7)), (70, 7));
        assert_eq!(none.part(&[1, 2, 3], &[2]), [2]);
        assert!(none.covers_each_step());
        assert_eq!(
            (none.answer_draw(7, 3), none.answer_number(8, 7, 3)),
            (7, 8)
        );
        assert_eq!((none.of_updates(), none.answers_of(DEVICE)), (none, 1));
        assert!(none.covers_absence() && none.mask_round(70_000) == 70_000);
        assert!(!Fault::NoNoiseAtOneDevice.has_noise_at(DEVICE, 39));
        assert!(!Fault::NoNoiseWithoutUpdate.covers_absence());
        assert!(!Fault::NoiseOnFirstStepOnly.covers_each_step());
        let mut sum = vec![0; 9_000];
        none.cover(&mut sum, 39, |sum| sum.fill(1));
        assert!(sum.iter().all(|q| *q == 1));
    }
}
