//! Parts that a program was compiled without.

/// A part that this program was compiled without. Its sentence has the command that adds it.
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
