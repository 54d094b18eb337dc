//! The phases of a session: silent, greeting, ready, idle, receiving, training, sending and
//! refused.

use crate::wire::message::WhyRefused;

/// The phase of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Phase {
    /// Before the first message: [`Session::timeout`](super::Session::timeout) sends the hello.
    Silent,
    /// The hello was sent.
    Greeting,
    /// The session is open, but the coordinator has not confirmed it yet.
    Ready,
    /// Between two rounds. The device waits for an invitation.
    Idle,
    /// The model is coming in.
    Receiving,
    /// The model is complete. The firmware calls [`Session::train`](super::Session::train).
    Training,
    /// The update is going out.
    Sending,
    /// The coordinator refused this device. The session stays silent until it is called.
    Refused(WhyRefused),
}

impl Phase {
    /// Whether the device waits for an answer, and repeats its last message.
    #[must_use]
    pub const fn is_awaited(self) -> bool {
        !matches!(self, Self::Idle | Self::Refused(_))
    }

    /// Whether a session is open, in a round or before the first one. A greeting can continue on
    /// any connection.
    #[must_use]
    pub const fn is_in_round(self) -> bool {
        matches!(
            self,
            Self::Ready | Self::Receiving | Self::Training | Self::Sending
        )
    }
}
