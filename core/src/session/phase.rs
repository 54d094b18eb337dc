//! Where a session stands.

use crate::wire::message::WhyRefused;

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Phase {
    /// Before the first message: [`Session::timeout`](super::Session::timeout) sends the hello.
    Silent,
    /// The hello was sent.
    Greeting,
    /// The session was opened, and the coordinator has not shown that it knows.
    Ready,
    /// Between two rounds: nothing to do until an invitation comes.
    Idle,
    /// The model is coming in.
    Receiving,
    /// The model is there: the firmware calls [`Session::train`](super::Session::train).
    Training,
    /// The update is going out.
    Sending,
    /// The coordinator refused this device: the session stays silent until it is called.
    Refused(WhyRefused),
}

impl Phase {
    /// Whether the device waits for an answer, and repeats what it has sent.
    #[must_use]
    pub const fn is_awaited(self) -> bool {
        !matches!(self, Self::Idle | Self::Refused(_))
    }

    /// Whether a session stands, in a round or before the first one. A greeting goes on anywhere.
    #[must_use]
    pub const fn is_in_round(self) -> bool {
        matches!(
            self,
            Self::Ready | Self::Receiving | Self::Training | Self::Sending
        )
    }
}
