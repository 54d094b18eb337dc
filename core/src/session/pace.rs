//! The pace of a device: it repeats its last message after a time-out, a silence that depends on
//! the measured round trip.

use super::Phase;
use crate::wire::round_trip::RoundTrip;

/// The meaning of received bytes for the pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// No authentic frame ended in them. They postpone nothing, as they may belong to no such
    /// frame.
    Nothing,
    /// An authentic but refused frame, such as a second answer to a repeated message. The
    /// coordinator is there, but the frame reveals nothing about the round trip.
    Frame,
    /// A frame that was accepted, or that the device answers.
    Answer,
}

/// The pace of one device.
///
/// Each authentic frame restarts the wait, so nothing is repeated while an answer of many frames
/// arrives. Pauses grow, so a busy coordinator does not get more and more requests. It has no
/// clock: times are milliseconds since an arbitrary moment, and may wrap at 2³².
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    round_trip: RoundTrip,
    /// Time of the first transmission of the last message.
    sent: u32,
    /// Whether the last message waits for an answer.
    is_awaited: bool,
    /// Bytes of the last message, and all bytes received since.
    bytes: u32,
    /// Time of the last frame heard since then.
    heard: Option<u32>,
    /// Whether a session continues on another connection, and its coordinator may have restarted.
    is_in_doubt: bool,
    /// Whether the connection is still the same.
    #[cfg(feature = "async")]
    pub(super) is_connected: bool,
}

impl Pace {
    /// Creates the pace of a device that has not sent anything yet, on a link with this estimate.
    #[must_use]
    pub const fn new(round_trip: RoundTrip) -> Self {
        Self {
            round_trip,
            sent: 0,
            is_awaited: false,
            bytes: 0,
            heard: None,
            is_in_doubt: false,
            #[cfg(feature = "async")]
            is_connected: false,
        }
    }

    /// Notes that the session, in this phase, continues on another connection or restarts its
    /// greeting.
    pub const fn connected(&mut self, phase: Phase) {
        self.is_in_doubt = phase.is_in_round();
    }

    /// Returns the milliseconds of silence after which the last message is repeated.
    #[must_use]
    pub const fn timeout_ms(&self) -> u32 {
        self.round_trip.timeout_ms()
    }

    /// Notes that a message of `bytes` bytes was sent, and that the session is now in `phase`.
    pub fn sent(&mut self, bytes: u32, phase: Phase, now: u32) {
        if let Some(heard) = self.heard.take() {
            let elapsed = heard.wrapping_sub(self.sent);
            self.round_trip.transferred(self.bytes, elapsed);
        }
        self.round_trip.sent(bytes);
        (self.bytes, self.sent) = (bytes, now);
        self.is_awaited = phase.is_awaited();
    }

    /// Notes that the last message was repeated. Before the first answer on a connection the pause
    /// stays the same, because a restarted coordinator does not answer: after a few repetitions,
    /// which the session counts, the device greets again.
    pub const fn repeated(&mut self) {
        if self.is_in_doubt {
            // Its answer reveals nothing about the round trip.
            (self.is_awaited, self.heard) = (false, None);
        } else {
            self.round_trip.repeated();
        }
    }

    /// Notes that `bytes` bytes were received with this meaning. Returns whether the wait restarts.
    pub const fn received(&mut self, bytes: u32, heard: Heard, now: u32) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        match heard {
            Heard::Nothing => return false,
            Heard::Frame => return true,
            Heard::Answer => {}
        }
        self.is_in_doubt = false;
        if self.is_awaited {
            self.is_awaited = false;
            if !self.round_trip.is_repeated() {
                self.heard = Some(now);
            }
            self.round_trip.answered(now.wrapping_sub(self.sent));
        } else if self.heard.is_some() {
            self.heard = Some(now);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> Pace {
        Pace::new(RoundTrip::new(500))
    }

    #[test]
    fn an_answer_to_what_was_sent_once_is_a_round_trip() {
        let mut pace = pace();
        // At any clock value, also across the wrap.
        pace.sent(60, Phase::Receiving, u32::MAX - 999);
        assert!(!pace.received(20, Heard::Nothing, u32::MAX - 400));
        assert!(pace.received(20, Heard::Frame, u32::MAX - 300));
        assert_eq!(pace.timeout_ms(), 500, "bytes of no frame are no answer");
        assert!(pace.received(200, Heard::Answer, 5_000));
        // SRTT + 4 RTTVAR after the first sample: three times the sample.
        assert_eq!(pace.timeout_ms(), 18_000);
    }

    #[test]
    fn repetitions_wait_longer_and_are_no_sample() {
        let mut pace = pace();
        pace.sent(60, Phase::Receiving, 0);
        pace.repeated();
        assert_eq!(pace.timeout_ms(), 1_000);
        pace.received(200, Heard::Answer, 100_000);
        pace.sent(60, Phase::Receiving, 100_000);
        // Until a message is answered without repetition.
        assert_eq!(pace.timeout_ms(), 1_000);
        pace.received(200, Heard::Answer, 100_010);
        assert_eq!(pace.timeout_ms(), 500);
    }

    #[test]
    fn where_the_coordinator_may_be_gone_pauses_stay() {
        let mut pace = pace();
        pace.connected(Phase::Receiving);
        pace.sent(60, Phase::Receiving, 0);
        pace.repeated();
        assert_eq!(pace.timeout_ms(), 500);
        pace.received(200, Heard::Answer, 100_000);
        assert_eq!(pace.timeout_ms(), 500);
        pace.sent(60, Phase::Receiving, 100_000);
        pace.repeated();
        assert_eq!(pace.timeout_ms(), 1_000, "it has answered");
    }
}
