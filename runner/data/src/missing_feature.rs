//! The message about a part that this program was compiled without, with the cargo feature that
//! adds it.

/// A part excluded from the compiled program. Its message names the command that adds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this smolfed was built without {part}: `cargo build --release --features {feature}` adds it"
)]
pub struct MissingFeature {
    /// The part, after "without".
    pub part: &'static str,
    /// The cargo feature of the package `smolfed`.
    pub feature: &'static str,
}
