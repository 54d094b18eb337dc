//! Models of a device's own in a simulation: how they train, where they are kept between rounds, and
//! how good they are device by device.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`plan`] | what the method does on a device |
//! | [`states`] | the personal states of all devices that were ever selected, in a file |
//! | [`training`] | one device's round |
//! | [`updates`] | a cohort's round |
//! | [`evaluate`] | figures device by device: shared, own, fine-tuned, trained alone |
//!
//! Only what a device sends is protected. Its own model stays on it: the statement's ε is about what
//! *others* learn from all shared models together with their own models (billboard privacy, Hsu et al.
//! 2014, arXiv:1311.2828; Hu, Wu, Smith 2023, Section 4), and not about a personal model that is
//! published.

pub mod evaluate;
pub mod plan;
pub mod states;
pub mod training;
mod tuning;
pub mod updates;

pub use evaluate::{DeviceFigures, DeviceMeans, DeviceReport};
pub use plan::{FineTune, PersonalKind, PersonalPlan};
pub use states::{StateError, States};
pub use training::PersonalRound;
pub use updates::Personalised;

#[cfg(test)]
mod tests;
