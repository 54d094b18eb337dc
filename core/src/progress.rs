//! The progress of work in pieces (more or done), between which the firmware can do other things.

/// Progress after a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub enum Progress {
    /// There is more to do: call again.
    More,
    /// The work is done, or there was nothing to do.
    Done,
}
