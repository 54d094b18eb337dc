//! Questions: rounds that release a statistic of devices instead of an update.
//!
//! A question draws a separate cohort and has a separate number among the rounds, which names its
//! random streams. It takes the one release path: each device's vector, of norm at most 1, is
//! rounded onto the grid, checked in integers, summed exactly and covered by noise, under any trust
//! model ([`smolfed_core::question`] has the vectors). Processing the released sum is
//! post-processing: every answer is a ratio of released sums with an interval ([`ratio`]).
//!
//! | module | contents |
//! | --- | --- |
//! | [`asked`] | a question in a run: schedule, cohort and noise |
//! | [`answers`] | the vectors of simulated devices, and their sum |
//! | [`ratio`] | ratios of released sums, with their intervals |
//! | [`answer`] | the released answer, for files and pages |
//! | [`scale`] | the scale of features, from the answers about their moments |
//! | `evaluate`, `confusion`, `shares`, `moments`, `presence`, `count` | estimates of each kind |

pub mod answer;
pub mod answers;
pub mod asked;
mod confusion;
mod count;
mod evaluate;
mod moments;
mod presence;
pub mod ratio;
pub mod scale;
mod shares;

pub use answer::{Answer, Estimate};
pub use asked::{AskedQuestion, Inquiry};

#[cfg(test)]
mod tests;
