//! Training in integers: the `integer` arithmetic, for processors without a floating-point unit.
//!
//! It supports linear, logistic and softmax models of `i8` or `i16` features. `docs/integer.md`
//! derives the formats and their errors. Every number is an integer times a public power of two:
//!
//! | number | type | value |
//! | --- | --- | --- |
//! | feature x | `i8`, `i16` | X · 2^−F, F a public constant of the data ([`FeatureScale`]) |
//! | weight, bias w | `i32` | W · 2⁻¹⁸, of magnitude below 8 ([`MAX_WEIGHT`]) |
//! | score s | `i64`, then `i32` | S · 2^−(18+F), exact, then rounded to 2⁻¹⁶ |
//! | residual r, the derivative by a score | `i32` | R · 2^−16 for classes, R · 2⁻¹² for values |
//! | gradient, summed over a batch | `i32` | exact sums of rounded residuals times features |
//!
//! A value outside its format **saturates** and is counted ([`Saturations`]). Nothing wraps, and a
//! comment at each sum explains why. So the result does not depend on the order of sums: any
//! processor, and any width of vectors, computes the same bits.
//!
//! An update is the difference of two vectors of weights, below 2²² in magnitude, so it is exact in
//! `f32`. From quantisation on, the release is the same as in all arithmetics, and its exact check
//! of `Σq² ≤ 4^b` is the same code.
//!
//! | module | contents |
//! | --- | --- |
//! | `samples` | the samples of a device |
//! | `dot` | scores, without overflow |
//! | `gradient` | the gradient of a batch, in 32 bits |
//! | `exponential` | e^−x and ln by tables |
//! | `loss` | residuals and losses of the models, predictions and probabilities |
//! | `scores` | scores of a new sample |
//! | `judge` | the result for a sample, for questions |
//! | `multiplier` | products with a step size |
//! | `step` | a step, its norm, and the projection |
//! | `train` | local training |

mod dot;
mod exponential;
mod gradient;
mod judge;
mod loss;
mod multiplier;
mod samples;
mod scores;
mod step;
mod train;

pub use crate::format::{
    Feature, FeatureFormat, FeatureScale, MAX_WEIGHT, SCORE_FRACTION, TARGET_FRACTION,
    WEIGHT_FRACTION, round_feature, round_target, round_weight, value_of_weight,
};
pub(crate) use crate::format::{is_weight, value_in_place};
pub use gradient::{Saturations, Scratch, loss_and_gradient};
pub use judge::{FixedPointJudge, IntegerTarget};
pub use loss::FixedPointModel;
pub use samples::{FixedPointSamples, FixedPointSlice};
pub(crate) use scores::FixedPointScores;
#[cfg(any(test, feature = "hazmat"))]
pub use train::local_update;
pub(crate) use train::{FixedPointDescent, FixedPointLocal, FixedPointTally};
pub use train::{FixedPointReport, FixedPointWork};

#[cfg(test)]
mod tests;
