//! Placeholder until the branch `smooth` is merged.
/// Placeholder.
#[derive(Clone, Copy, Debug)]
pub struct LaplacianSmoothing;
impl LaplacianSmoothing {
    /// Placeholder.
    pub fn new(_s: f32) -> Result<Self, ()> {
        Ok(Self)
    }
    /// Placeholder.
    pub fn apply(&self, _v: &mut [f32]) {}
}
