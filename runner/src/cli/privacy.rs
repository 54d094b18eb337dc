//! `smolfed account` and `smolfed plan`: what rounds cost, and what an ε allows.

mod account;
mod document;
mod mechanism;
mod plan;

pub(super) use account::{Args as AccountArgs, run as account};
pub(super) use plan::{Args as PlanArgs, run as plan};
