//! A digest of everything that a round released.
//!
//! A run is identified by its configuration, its data and the version of smolfed. Whether a
//! repetition releases the same bits also depends on the machine code, and the digest shows it. It
//! is a function of the release, so it costs no privacy.

use blake2::{Blake2b256, Digest};

use super::message::Message;
use super::sum::Released;

/// Separates these digests, and their versions, from other uses of the hash.
const LABEL: &[u8] = b"smolfed release 1";

/// BLAKE2b-256 of the messages of the devices and of the sum of their updates. Every item is
/// written with its kind and its length, so that different rounds have different encodings.
pub struct ReleaseDigest(Blake2b256);

impl Default for ReleaseDigest {
    fn default() -> Self {
        Self(Blake2b256::new_with_prefix(LABEL))
    }
}

impl ReleaseDigest {
    /// Adds the message that a device sent alongside its update. `None` if it was rejected.
    pub fn message(&mut self, device: u32, message: Option<&Message>) {
        self.0.update([1]);
        self.0.update(device.to_le_bytes());
        self.integers(message.map_or(&[], Message::integers));
    }

    /// Adds the moments released for the scale of the features, if there are any.
    pub fn moments(&mut self, moments: &[f32]) {
        if !moments.is_empty() {
            self.0.update([4]);
            self.0.update((moments.len() as u64).to_le_bytes());
            for moment in moments {
                self.0.update(moment.to_le_bytes());
            }
        }
    }

    /// Adds the score of a trial, if the round released one.
    pub fn score(&mut self, score: Option<f64>) {
        if let Some(score) = score {
            self.0.update([5]);
            self.0.update(score.to_le_bytes());
        }
    }

    /// Adds the released answers to a question.
    pub fn answer(&mut self, question: u8, released: &Released) {
        self.0.update([6, question]);
        self.0.update(released.step().to_le_bytes());
        self.integers(released.integers());
    }

    /// Returns the digest including the noisy sum, in 64 hexadecimal digits. The number of devices
    /// is left out, because it is not released under Poisson sampling.
    #[must_use]
    pub fn with_sum(mut self, released: &Released) -> String {
        self.0.update([2]);
        self.0.update(released.step().to_le_bytes());
        self.integers(released.integers());
        if let Some(excess) = released.unclipped_excess() {
            self.0.update([3]);
            self.0.update(excess.to_le_bytes());
        }
        hex::encode(self.0.finalize())
    }

    fn integers(&mut self, integers: &[i64]) {
        self.0.update((integers.len() as u64).to_le_bytes());
        for piece in integers.chunks(128) {
            let mut bytes = [0; 1024];
            for (place, integer) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(piece) {
                *place = integer.to_le_bytes();
            }
            self.0
                .update(bytes.get(..8 * piece.len()).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(messages: &[(u32, Option<Vec<i64>>)], sum: &[i64], step: f64) -> String {
        let mut digest = ReleaseDigest::default();
        for (device, message) in messages {
            let message = message.clone().map(Message::received);
            digest.message(*device, message.as_ref());
        }
        digest.with_sum(&Released::for_test(sum, step, 7))
    }

    #[test]
    fn every_part_of_a_release_changes_its_digest_but_the_cohort_size() {
        let sent = |integers: &[i64]| Some(integers.to_vec());
        let long: Vec<i64> = (0..300).collect();
        let with_excess = |excess| {
            let released = Released::for_test(&[1, 2], 0.5, 7).with_unclipped_excess(excess);
            ReleaseDigest::default().with_sum(&released)
        };
        let mut changed = long.clone();
        changed[299] += 1;
        let digests = [
            digest(&[], &[1, 2], 0.5),
            digest(&[], &[1, 3], 0.5),
            digest(&[], &[1, 2], 0.25),
            digest(&[], &[1, 2, 0], 0.5),
            digest(&[(0, sent(&[1, 2]))], &[], 0.5),
            digest(&[(1, sent(&[1, 2]))], &[], 0.5),
            digest(&[(0, sent(&[1])), (0, sent(&[2]))], &[], 0.5),
            digest(&[], &long, 0.5),
            digest(&[], &changed, 0.5),
            with_excess(0.5),
            with_excess(1.0),
        ];
        let with_moments = |moments: &[f32]| {
            let mut digest = ReleaseDigest::default();
            digest.moments(moments);
            digest.with_sum(&Released::for_test(&[1, 2], 0.5, 7))
        };
        assert_eq!(with_moments(&[]), digests[0]);
        assert!(!digests.contains(&with_moments(&[0.5])));
        assert_ne!(with_moments(&[0.5]), with_moments(&[0.25]));
        let with_score = |score| {
            let mut digest = ReleaseDigest::default();
            digest.score(score);
            digest.with_sum(&Released::for_test(&[1, 2], 0.5, 7))
        };
        assert_eq!(with_score(None), digests[0]);
        assert!(!digests.contains(&with_score(Some(0.5))));
        assert_ne!(with_score(Some(0.5)), with_score(Some(0.25)));
        let distinct: std::collections::BTreeSet<&String> = digests.iter().collect();
        assert_eq!(distinct.len(), digests.len());
        assert_eq!(digests[0].len(), 64);
        let other_cohort = Released::for_test(&[1, 2], 0.5, 9);
        assert_eq!(ReleaseDigest::default().with_sum(&other_cohort), digests[0]);
    }
}
