//! How long a message waits for its answer before it is repeated: SRTT + 4 RTTVAR as in RFC 6298,
//! in integer milliseconds. It has no clock: the sender measures the times.
//!
//! Differences from RFC 6298. The lower bound is chosen per link, as one second is too long on a
//! serial line. A message of several frames waits longer, by the time that as many bytes took
//! before. On a measured link pauses grow up to 16 times, so that a busy peer is not left alone for
//! a minute.

use super::FRAME_BYTES;

/// The longest round trip that counts: an hour. Longer ones count as an hour.
const LONGEST_MS: u32 = 3_600_000;

/// Maximum growth of a pause, as a multiple of the first one.
const GROWTH: u32 = 16;

/// Before the first measurement, pauses grow at least up to this: RFC 6298, section 2.5, requires a
/// minute.
const UNMEASURED_MS: u32 = 64_000;

/// Doublings after which every pause has reached its bound.
const MAX_DOUBLINGS: u8 = 12;

/// The estimate for one link, in one direction.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    floor_ms: u32,
    /// Eight times the smoothed round trip, in ms, once there is a sample.
    smoothed: Option<u32>,
    /// Four times the variation of the round trip, in ms.
    variation: u32,
    /// Doublings kept from earlier messages that were answered only after repetition.
    kept: u8,
    /// Number of repetitions of the current message.
    repeats: u8,
    /// Milliseconds of the current message beyond those of one frame.
    transfer_ms: u32,
    /// Milliseconds that 1024 bytes take.
    pace: u32,
}

impl RoundTrip {
    /// Creates an estimate without measurements. No message is repeated before `floor_ms`
    /// milliseconds.
    #[must_use]
    pub const fn new(floor_ms: u32) -> Self {
        let floor_ms = match floor_ms {
            0 => 1,
            LONGEST_MS.. => LONGEST_MS,
            floor_ms => floor_ms,
        };
        Self {
            floor_ms,
            smoothed: None,
            variation: 0,
            kept: 0,
            repeats: 0,
            transfer_ms: 0,
            pace: 0,
        }
    }

    /// Returns the milliseconds without an answer after which the current message is repeated.
    #[must_use]
    pub const fn timeout_ms(&self) -> u32 {
        let measured = match self.smoothed {
            Some(smoothed) => smoothed / 8 + self.variation,
            None => 0,
        };
        let first = max(self.floor_ms, measured);
        let longest = match self.smoothed {
            Some(_) => first * GROWTH,
            None => max(first * GROWTH, UNMEASURED_MS),
        };
        let doublings = self.doublings();
        let pause = first as u64 * (1 << doublings);
        let pause = match pause < longest as u64 {
            true => pause as u32,
            false => longest,
        };
        pause.saturating_add(self.transfer_ms)
    }

    /// Notes that a new message was sent, in frames of `bytes` bytes in total.
    pub const fn sent(&mut self, bytes: u32) {
        self.repeats = 0;
        // Samples include the time of the first frame.
        let beyond = bytes.saturating_sub(FRAME_BYTES as u32) as u64;
        let transfer = beyond * self.pace as u64 / 1024;
        self.transfer_ms = match transfer < LONGEST_MS as u64 {
            true => transfer as u32,
            false => LONGEST_MS,
        };
    }

    /// Notes that the current message was repeated.
    pub const fn repeated(&mut self) {
        self.repeats = self.repeats.saturating_add(1);
    }

    /// Whether the current message was repeated, so that its answer is no valid sample.
    #[must_use]
    pub const fn is_repeated(&self) -> bool {
        self.repeats > 0
    }

    /// Notes an answer, `elapsed_ms` milliseconds after the first transmission of the current
    /// message.
    ///
    /// A repeated message gives no sample, as the answer may be to either copy (Karn's rule). The
    /// longer pauses then apply to later messages, until one is answered without repetition.
    pub const fn answered(&mut self, elapsed_ms: u32) {
        if self.is_repeated() {
            self.kept = self.doublings();
        } else {
            self.sample(elapsed_ms.saturating_sub(self.transfer_ms));
        }
        self.repeats = 0;
    }

    /// Adds a round trip of `elapsed_ms` milliseconds, measured on a message without repetition.
    pub const fn sample(&mut self, elapsed_ms: u32) {
        let sample = min(elapsed_ms, LONGEST_MS);
        self.kept = 0;
        match self.smoothed {
            None => {
                self.smoothed = Some(8 * sample);
                self.variation = 2 * sample;
            }
            Some(smoothed) => {
                let distance = (smoothed / 8).abs_diff(sample);
                self.variation = self.variation - self.variation / 4 + distance;
                self.smoothed = Some(smoothed - smoothed / 8 + sample);
            }
        }
    }

    /// Notes that `bytes` bytes of an unrepeated message and its answer took `elapsed_ms`
    /// milliseconds. Later messages of several frames get as much time.
    pub const fn transferred(&mut self, bytes: u32, elapsed_ms: u32) {
        // With the longest time the product still fits in 32 bits, in which boards divide.
        let pace = (min(elapsed_ms, LONGEST_MS) * 1024).checked_div(bytes);
        if let Some(pace) = pace {
            self.pace = min(pace, LONGEST_MS);
        }
    }

    const fn doublings(&self) -> u8 {
        match self.kept.saturating_add(self.repeats) {
            MAX_DOUBLINGS.. => MAX_DOUBLINGS,
            doublings => doublings,
        }
    }
}

const _: () = assert!(LONGEST_MS <= u32::MAX / 1024);

const fn min(one: u32, other: u32) -> u32 {
    match one < other {
        true => one,
        false => other,
    }
}

const fn max(one: u32, other: u32) -> u32 {
    match one > other {
        true => one,
        false => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(samples: impl IntoIterator<Item = u32>) -> RoundTrip {
        let mut trip = RoundTrip::new(500);
        for sample in samples {
            trip.sent(100);
            trip.answered(sample);
        }
        trip
    }

    #[test]
    fn a_timeout_is_never_below_the_floor() {
        for sample in [0, 1, 30, 100, 166] {
            assert_eq!(measured([sample; 20]).timeout_ms(), 500, "{sample}");
        }
        assert_eq!(RoundTrip::new(0).timeout_ms(), 1);
        assert!(measured([400; 1]).timeout_ms() > 500);
    }

    /// RFC 6298, section 2: SRTT = R and RTTVAR = R/2 after the first sample. On a steady link the
    /// timeout approaches the round trip, and is never below it.
    #[test]
    fn a_timeout_follows_the_round_trip() {
        assert_eq!(measured([12_000]).timeout_ms(), 36_000);
        let steady = measured([12_000; 40]).timeout_ms();
        assert!((12_000..12_100).contains(&steady), "{steady}");
        let mut trip = measured([12_000; 40]);
        trip.sent(100);
        trip.answered(20_000);
        assert!(trip.timeout_ms() > 20_000);
    }

    #[test]
    fn each_repeat_doubles_the_pause_up_to_a_bound() {
        let mut trip = RoundTrip::new(500);
        trip.sent(100);
        let pauses = [(); 20].map(|()| {
            let pause = trip.timeout_ms();
            trip.repeated();
            pause
        });
        assert_eq!(pauses[..4], [500, 1_000, 2_000, 4_000]);
        assert!(pauses.is_sorted() && pauses[19] == UNMEASURED_MS);
        // With a measurement, the normal bound applies.
        let mut trip = measured([2]);
        (0..20).for_each(|_| trip.repeated());
        assert_eq!(trip.timeout_ms(), 8_000);
        // Nothing overflows.
        let mut trip = RoundTrip::new(u32::MAX);
        trip.transferred(1, u32::MAX);
        (0..100).for_each(|_| trip.sample(u32::MAX));
        trip.sent(u32::MAX);
        (0..300).for_each(|_| trip.repeated());
        assert!(trip.timeout_ms() >= LONGEST_MS);
    }

    /// Karn's rule: an answer to a repeated message gives no sample, and the longer pause stays
    /// until a message is answered without repetition.
    #[test]
    fn a_repeated_message_gives_no_sample() {
        let mut trip = RoundTrip::new(500);
        trip.sent(100);
        trip.repeated();
        trip.repeated();
        trip.answered(90_000);
        trip.sent(100);
        assert_eq!(trip.timeout_ms(), 2_000);
        trip.answered(1_000);
        trip.sent(100);
        assert_eq!(trip.timeout_ms(), 3_000);
        // An unanswered message reveals nothing about the next one.
        trip.repeated();
        assert_eq!(trip.timeout_ms(), 6_000);
        trip.sent(100);
        assert_eq!(trip.timeout_ms(), 3_000);
    }

    /// 8,000 bytes at 500 bytes per second take 16 s, which no sample of one frame contains.
    #[test]
    fn a_message_of_many_frames_waits_for_its_bytes() {
        let mut trip = measured([100; 20]);
        trip.transferred(1_000, 2_000);
        trip.sent(8_256);
        assert_eq!(trip.timeout_ms(), 500 + 8_000 * 2_048 / 1_024);
        // This time does not count as a round trip.
        trip.answered(16_100);
        trip.sent(100);
        assert_eq!(trip.timeout_ms(), 500);
    }
}
