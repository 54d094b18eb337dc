//! Work that is done in pieces, between which the firmware has time for other things.

/// Whether a piece of work was the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
pub enum Progress {
    /// There is more to do: call again.
    More,
    /// It is done, or there was nothing to do.
    Done,
}
