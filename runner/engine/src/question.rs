//! Questions: rounds that release a statistic of devices in the place of an update.
//!
//! A question draws its own cohort, has a number of its own among those of the rounds, which names
//! its random streams, and takes the one release path: each device's vector, of norm at most 1, is
//! rounded onto the grid, checked in integers, summed exactly and covered by noise, under any trust
//! model ([`smolfed_core::question`] has the vectors). What is made of the released sum is
//! post-processing: every answer is a ratio of released sums with an interval ([`ratio`]).
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`asked`] | a question as it is asked in a run: when, whom, with which noise |
//! | [`answers`] | the vectors of simulated devices, and their sum |
//! | [`ratio`] | ratios of released sums, with their intervals |
//! | [`answer`] | what was released, as files and pages have it |
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
mod shares;

pub use answer::{Answer, Estimate};
pub use asked::{AskedQuestion, Inquiry};

#[cfg(test)]
mod tests;
