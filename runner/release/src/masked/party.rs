//! A helper: it shares a mask key with each device, sees no update, and answers once per round with
//! the sum of the masks of the participating devices, minus its own noise.
//!
//! It is independent of clocks and transports. [`HelperParty::prepare`] checks a request and
//! computes the answer without changing anything. The caller makes the record durable, and
//! [`HelperParty::commit`] returns the answer. A helper that stops in between has recorded a round
//! without sending an answer, so that round is lost.
//!
//! **One answer per round.** Two answers for lists that differ by one device would reveal the mask
//! of that device, since both have the same noise. A repetition of the last request gets the same
//! answer from memory, and its noise is not drawn a second time.
//!
//! **Attendance.** The guarantee relies on the participation of each listed device in this very
//! round. Its tag shows it: a one-time authenticator over the request to the device. A party that
//! leaves a device out makes it absent, and the masked update of the device stays uniform to
//! everybody.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rayon::prelude::*;
use smolfed_core::mask::{MaskKey, RoundKey};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::stream::{Purpose, Root};
use smolfed_simd::MaskSum;
use zeroize::Zeroizing;

use super::combination::Combination;
use super::policy::{HelperPolicy, MAX_ENTRIES};
use super::record::{AnswerRecord, Answered};
use super::refusal::HelperRefusal;
use super::request::{HelperAnswer, HelperRequest, Listed};
use super::tags::Tagged;
use crate::Fault;
use crate::masking::ring::Ring;
use crate::mechanism::add_noise;

/// Devices whose masks are added up on one thread before the partial sums are combined.
const DEVICES: usize = 32;

/// The sums of the masks of earlier rounds, the latest first: as secret as the masks.
type Sums = VecDeque<(u32, Zeroizing<Vec<i64>>)>;

/// A helper.
pub struct HelperParty {
    number: u8,
    policy: HelperPolicy,
    keys: BTreeMap<u32, MaskKey>,
    revoked: BTreeSet<u32>,
    /// The root of its noise.
    root: Root,
    answered: Answered,
    combination: Combination,
    sums: Sums,
    /// The last request and its answer.
    last: Option<(HelperRequest, HelperAnswer)>,
    fault: Fault,
}

impl std::fmt::Debug for HelperParty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (number, devices) = (self.number, self.keys.len());
        write!(f, "HelperParty {number} of {devices} devices")
    }
}

/// An answer that has not been sent yet.
#[derive(Debug)]
pub struct Prepared(Step);

#[derive(Debug)]
enum Step {
    /// The answer to a repetition of the last request.
    Again(HelperAnswer),
    /// The first answer of a round.
    First(Box<First>),
}

struct First {
    request: HelperRequest,
    answer: HelperAnswer,
    record: AnswerRecord,
    /// The sum of the round's masks.
    sum: Zeroizing<Vec<i64>>,
}

impl std::fmt::Debug for First {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.answer)
    }
}

impl Prepared {
    /// Returns the record that must be durable before the answer is sent. `None` for an answer that
    /// was already sent.
    #[must_use]
    pub const fn record(&self) -> Option<&AnswerRecord> {
        match &self.0 {
            Step::Again(_) => None,
            Step::First(first) => Some(&first.record),
        }
    }
}

impl HelperParty {
    /// Creates the helper of this number, from 0, with the mask keys of its devices. Its noise has
    /// streams under `root`. No other party may have the same root, and it must change after a
    /// restart: the noise would otherwise be the same.
    #[must_use]
    pub fn new(number: u8, policy: HelperPolicy, keys: BTreeMap<u32, MaskKey>, root: Root) -> Self {
        Self {
            number,
            combination: policy.combination(),
            policy,
            keys,
            revoked: BTreeSet::new(),
            root,
            answered: Answered::default(),
            sums: Sums::new(),
            last: None,
            fault: Fault::None,
        }
    }

    /// Sets the devices that have left the federation.
    #[must_use]
    pub fn with_revoked(self, revoked: BTreeSet<u32>) -> Self {
        Self { revoked, ..self }
    }

    /// Restores the records of earlier answers. The sums of their masks are lost.
    #[must_use]
    pub fn with_records<'a>(mut self, records: impl IntoIterator<Item = &'a AnswerRecord>) -> Self {
        records
            .into_iter()
            .for_each(|record| self.answered.add(record));
        self
    }

    /// Replaces the keys of the devices. The answers for devices in `others` are forgotten: they
    /// were for other devices with the same numbers.
    pub fn replace_keys(
        &mut self,
        keys: BTreeMap<u32, MaskKey>,
        revoked: BTreeSet<u32>,
        others: &[u32],
    ) {
        (self.keys, self.revoked) = (keys, revoked);
        others
            .iter()
            .for_each(|device| self.answered.forget(*device));
    }

    /// Injects a fault, for audits.
    #[must_use]
    pub fn with_fault(self, fault: Fault) -> Self {
        Self { fault, ..self }
    }

    /// Returns its number, from 0.
    #[must_use]
    pub const fn number(&self) -> u8 {
        self.number
    }

    /// Returns its policy.
    #[must_use]
    pub const fn policy(&self) -> &HelperPolicy {
        &self.policy
    }

    /// Returns its answers so far.
    #[must_use]
    pub const fn answered(&self) -> &Answered {
        &self.answered
    }

    /// Checks a request, and computes its answer without changing anything.
    ///
    /// * Cost: the key stream of every device, w bits per entry, and Poly1305 of the model for
    ///   each.
    ///
    /// # Errors
    /// [`HelperRefusal`]: nothing was computed.
    pub fn prepare(&self, request: &HelperRequest) -> Result<Prepared, HelperRefusal> {
        if let Some((last, answer)) = &self.last
            && last == request
        {
            return Ok(Prepared(Step::Again(answer.clone())));
        }
        let (ring, noise) = self.accepts(request)?;
        let keys = self.admitted(request)?;
        let length = request.entries as usize;
        let sum = sum_of_masks(ring, length, &keys);
        let answer = HelperAnswer {
            round: request.round,
            integers: self.covered(request, ring, noise.as_ref(), &sum),
        };
        let devices = request.devices.iter();
        let record = AnswerRecord {
            round: request.round,
            devices: devices
                .map(|listed| (listed.device, listed.ledger))
                .collect(),
        };
        Ok(Prepared(Step::First(Box::new(First {
            request: request.clone(),
            answer,
            record,
            sum,
        }))))
    }

    /// Returns the answer, after its record was made durable.
    pub fn commit(&mut self, prepared: Prepared) -> HelperAnswer {
        let First {
            request,
            answer,
            record,
            sum,
        } = match prepared.0 {
            Step::Again(answer) => return answer,
            Step::First(first) => *first,
        };
        self.answered.add(&record);
        if request.earlier.is_empty() {
            self.sums.clear();
        }
        self.sums.push_front((request.round, sum));
        self.sums.truncate(self.combination.earlier());
        self.last = Some((request, answer.clone()));
        answer
    }

    /// Calls [`Self::prepare`] and [`Self::commit`] without a record: for simulations.
    ///
    /// # Errors
    /// The errors of [`Self::prepare`].
    pub fn answer(&mut self, request: &HelperRequest) -> Result<HelperAnswer, HelperRefusal> {
        let prepared = self.prepare(request)?;
        Ok(self.commit(prepared))
    }

    /// Checks the part of a request that is common to all devices.
    fn accepts(
        &self,
        request: &HelperRequest,
    ) -> Result<(Ring, Option<DiscreteGaussian>), HelperRefusal> {
        let (ring, noise) = self.policy.accepts(request.terms)?;
        let entries = request.entries;
        if !(1..=MAX_ENTRIES).contains(&entries) {
            let most = MAX_ENTRIES;
            return Err(HelperRefusal::Entries { entries, most });
        }
        if !self.fault.answers_again() {
            self.answered.admits_round(request.round, &self.policy)?;
        }
        if !self.combines(request) {
            return Err(HelperRefusal::History {
                asked: count(request.earlier.len()),
                kept: count(self.sums.len()),
            });
        }
        let (found, least) = (count(request.devices.len()), self.policy.min_cohort);
        match found < least {
            true => Err(HelperRefusal::SmallCohort { found, least }),
            false => Ok((ring, noise)),
        }
    }

    /// Returns whether the earlier rounds of the request are none, or those whose sums this helper
    /// stores.
    fn combines(&self, request: &HelperRequest) -> bool {
        let kept = self.sums.iter().map(|(round, _)| round);
        let is_whole = self
            .sums
            .iter()
            .all(|(_, sum)| sum.len() == request.entries as usize);
        request.earlier.is_empty() || (is_whole && kept.eq(&request.earlier))
    }

    /// Checks each device on the list, and returns their round keys.
    fn admitted(&self, request: &HelperRequest) -> Result<Vec<RoundKey>, HelperRefusal> {
        let mut before = None;
        let mut keys = Vec::with_capacity(request.devices.len());
        for listed in &request.devices {
            let device = listed.device;
            if before >= Some(device) {
                return Err(HelperRefusal::Repeated { device });
            }
            before = Some(device);
            keys.push(self.key_of(listed, request.round)?);
        }
        let tagged = Tagged::new(request);
        let listed = request.devices.par_iter().zip(&keys);
        let forged = listed
            .find_first(|(listed, key)| !tagged.has(key, &listed.tag) && !self.fault.trusts_tags());
        match forged {
            None => Ok(keys),
            Some((listed, _)) => Err(HelperRefusal::Tag {
                device: listed.device,
            }),
        }
    }

    fn key_of(&self, listed: &Listed, round: u32) -> Result<RoundKey, HelperRefusal> {
        let device = listed.device;
        if self.revoked.contains(&device) {
            return Err(HelperRefusal::Revoked { device });
        }
        let key = self.keys.get(&device);
        let key = key.ok_or(HelperRefusal::Unknown { device })?;
        if !self.fault.answers_again() {
            self.answered.admits(listed, round, &self.policy)?;
        }
        Ok(key.round(self.fault.mask_round(round), &listed.ledger))
    }

    /// Returns `Σ_j m_j M_{t-j} - Z_t mod 2^w`.
    fn covered(
        &self,
        request: &HelperRequest,
        ring: Ring,
        noise: Option<&DiscreteGaussian>,
        latest: &[i64],
    ) -> Vec<i64> {
        let earlier = self.sums.iter().take(request.earlier.len());
        let sums = std::iter::once(latest).chain(earlier.map(|(_, sum)| sum.as_slice()));
        let sums: Vec<&[i64]> = sums.collect();
        let mut integers = self.combination.of_sums(&sums, latest.len());
        let mut drawn = Zeroizing::new(vec![0; latest.len()]);
        if let Some(noise) = noise.filter(|_| !self.fault.is_helper_silent()) {
            let number = self.fault.helper_number(request.round);
            add_noise(&mut drawn, noise, &self.root, Purpose::HelperNoise, number);
        }
        for (sum, z) in integers.iter_mut().zip(drawn.iter()) {
            *sum = ring.reduce(sum.wrapping_sub(*z));
        }
        integers
    }

    /// Returns the sums of masks stored for the next round, the latest first. For simulations.
    pub(super) fn sums(&self) -> impl Iterator<Item = (u32, &[i64])> {
        self.sums
            .iter()
            .map(|(round, sum)| (*round, sum.as_slice()))
    }

    /// Restores the sums of a checkpoint. For simulations.
    pub(super) fn restore(&mut self, sums: Vec<(u32, Vec<i64>)>) {
        let sums = sums.into_iter();
        self.sums = sums
            .map(|(round, sum)| (round, Zeroizing::new(sum)))
            .collect();
    }
}

/// Returns the sum of the masks of a round, modulo 2^w.
fn sum_of_masks(ring: Ring, length: usize, keys: &[RoundKey]) -> Zeroizing<Vec<i64>> {
    let zero = || Zeroizing::new(vec![0_i64; length]);
    let parts = keys.par_chunks(DEVICES).map(|keys| {
        let mut sum = zero();
        let mut masks = MaskSum::new(ring.width().into(), length);
        keys.iter().for_each(|key| masks.add(key, &mut sum));
        sum
    });
    let mut sum = parts.reduce(zero, |mut sum, part| {
        let pairs = sum.iter_mut().zip(part.iter());
        pairs.for_each(|(entry, x)| *entry = entry.wrapping_add(*x));
        sum
    });
    sum.iter_mut().for_each(|x| *x = ring.reduce(*x));
    sum
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
