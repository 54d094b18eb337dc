//! `smolfed.accounting`: the crate `smolfed-accounting`, and the statements and ledgers over it.

pub(crate) mod estimate;
pub(crate) mod event;
pub(crate) mod filter;
pub(crate) mod ledger;
pub(crate) mod plan;
mod release;
pub(crate) mod statement;
pub(crate) mod strategy;
pub(crate) mod trade_off;
