//! Encoders trained jointly without labels, in a simulation (FedSC: Jing et al. 2024,
//! arXiv:2405.03949, Algorithm 1).
//!
//! | module | contents |
//! | --- | --- |
//! | `build`, `settings` | from the configuration to the settings of an experiment |
//! | `augmentation`, `variations`, `images` | views of a sample |
//! | `learner`, `device` | a cohort's round, and one device's part of it |
//! | `matrices` | the server's correlation matrices |
//! | `privacy` | the cost of matrices for a device and for one of its examples |
//! | `evaluate` | quality of representations |
//!
//! **What is protected.** A device adds noise to its correlation matrix itself, so the ε of the
//! matrices holds against everybody else, including the server. It bounds what they learn about one
//! example of the device, over all matrices that the device sends. The devices' numbers of samples
//! are public. `[privacy]` protects the encoder like any other model, or not at all, as in the
//! paper (docs/papers.md, F4). Everything computed from noisy matrices, including the projection
//! onto positive semi-definite ones, is post-processing.

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
