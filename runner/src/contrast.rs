//! Encoders that devices learn together without labels, in a simulation (FedSC: Jing et al. 2024,
//! arXiv:2405.03949, Algorithm 1).
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`plan`] | what an experiment does, settled |
//! | [`variations`], [`images`] | what makes views of a sample |
//! | [`device`] | one device's part of a round |
//! | [`matrices`] | the server's correlation matrices |
//! | [`updates`] | a cohort's round |
//! | [`evaluate`] | how good representations are |
//!
//! **What is protected.** A device adds noise to its correlation matrix by itself, so that the ε of the
//! matrices holds against everybody else, the server included. It bounds what they learn of one example of the
//! device, over all matrices that the device sends; the devices' numbers of samples are public. The encoder is
//! protected by what `[privacy]` says, as any other model, or not at all, as in the paper (papers.md F4). What
//! is made of noisy matrices, the projection onto positive semi-definite ones included, is post-processing.

pub mod device;
pub mod evaluate;
pub mod images;
mod kept;
pub mod matrices;
pub mod plan;
pub mod updates;
pub mod variations;

pub use matrices::Matrices;
pub use plan::{ContrastPlan, Sharing};
pub use updates::Contrasting;
pub use variations::Variations;

#[cfg(test)]
mod tests;
