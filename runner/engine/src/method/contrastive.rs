//! Encoders that devices learn together without labels, in a simulation (FedSC: Jing et al. 2024,
//! arXiv:2405.03949, Algorithm 1).
//!
//! | module | what it holds |
//! | --- | --- |
//! | `build`, `settings` | from the configuration to what an experiment does |
//! | `augmentation`, `variations`, `images` | what makes views of a sample |
//! | `learner`, `device` | a cohort's round, and one device's part of it |
//! | `matrices` | the server's correlation matrices |
//! | `privacy` | what matrices cost a device and one example of it |
//! | `evaluate` | how good representations are |
//!
//! **What is protected.** A device adds noise to its correlation matrix by itself, so that the ε of
//! the matrices holds against everybody else, the server included. It bounds what they learn of one
//! example of the device, over all matrices that the device sends; the devices' numbers of samples
//! are public. The encoder is protected by what `[privacy]` says, as any other model, or not at
//! all, as in the paper (docs/papers.md, F4). What is made of noisy matrices, the projection onto
//! positive semi-definite ones included, is post-processing.

mod augmentation;
pub(super) mod build;
mod device;
mod evaluate;
mod images;
mod learner;
mod matrices;
mod privacy;
mod settings;
mod variations;
mod view_cache;

pub use variations::Variations;

#[cfg(test)]
mod tests;
