//! Privacy claims and costs: figures, statements, ledgers, mechanisms and audits.

mod accounting;
mod audit;
mod categories;
mod claims;
mod clip_norm;
mod correlated;
mod ledger;
mod masked;
mod preprocessing;
mod selection;
mod statements;
