//! When a device repeats its last message: once nothing was heard for a measured round trip.

use super::Phase;
use crate::wire::round_trip::RoundTrip;

/// What a device hears in bytes that it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// No authentic frame ended in them: they postpone nothing, as they may belong to none.
    Nothing,
    /// An authentic frame that was refused, such as a second answer to a message that was repeated.
    /// The coordinator is there, but the frame says nothing about time.
    Frame,
    /// A frame that was accepted, or that the device answers.
    Answer,
}

/// The pace of one device.
///
/// Each authentic frame restarts the wait, so that nothing is repeated while an answer of many
/// frames arrives. Pauses grow, so that a coordinator that is behind is not asked ever more often.
/// It has no clock: times are milliseconds since any moment, and may begin anew after 2³².
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    round_trip: RoundTrip,
    /// When the last message was sent first.
    sent: u32,
    /// Whether it waits for an answer.
    is_awaited: bool,
    /// Bytes of the last message, and all that were received since.
    bytes: u32,
    /// When a frame was heard last since then.
    heard: Option<u32>,
    /// Whether a session goes on from another connection, and its coordinator may have restarted.
    is_in_doubt: bool,
    /// Whether the connection is that of before.
    #[cfg(feature = "async")]
    pub(super) is_connected: bool,
}

impl Pace {
    /// That of a device on a link for which this is known, and which has sent nothing yet.
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

    /// The session, in this phase, goes on over another connection, or greets anew.
    pub const fn connected(&mut self, phase: Phase) {
        self.is_in_doubt = phase.is_in_round();
    }

    /// Milliseconds of silence after which the last message is repeated.
    #[must_use]
    pub const fn timeout_ms(&self) -> u32 {
        self.round_trip.timeout_ms()
    }

    /// A message of so many bytes was sent, and the session is in this phase now.
    pub fn sent(&mut self, bytes: u32, phase: Phase, now: u32) {
        if let Some(heard) = self.heard.take() {
            let elapsed = heard.wrapping_sub(self.sent);
            self.round_trip.transferred(self.bytes, elapsed);
        }
        self.round_trip.sent(bytes);
        (self.bytes, self.sent) = (bytes, now);
        self.is_awaited = phase.is_awaited();
    }

    /// The last message was sent once more. Before the first answer over a connection the pause
    /// stays, as a coordinator that has restarted answers nothing: after a few repetitions, which
    /// the session counts, the device greets again.
    pub const fn repeated(&mut self) {
        if self.is_in_doubt {
            // Its answer says nothing about time.
            (self.is_awaited, self.heard) = (false, None);
        } else {
            self.round_trip.repeated();
        }
    }

    /// So many bytes were received, and this was heard in them. Returns whether the wait begins
    /// again.
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
        // Whatever the clock says, and when it begins anew.
        pace.sent(60, Phase::Receiving, u32::MAX - 999);
        assert!(!pace.received(20, Heard::Nothing, u32::MAX - 400));
        assert!(pace.received(20, Heard::Frame, u32::MAX - 300));
        assert_eq!(pace.timeout_ms(), 500, "bytes of no frame are no answer");
        assert!(pace.received(200, Heard::Answer, 5_000));
        // SRTT + 4 RTTVAR of the first sample: three times it.
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
        // Until one is answered at once.
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
