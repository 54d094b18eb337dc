//! `smolfed account` and `smolfed plan`: the ε of a deployment, and a deployment for an ε.

mod account;
mod correlated;
mod document;
mod mechanism;
mod plan;
mod verify;

pub(super) use account::{Args as AccountArgs, run as account};
pub(super) use plan::{Args as PlanArgs, run as plan};
