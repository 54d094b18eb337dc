//! What is promised and paid for: figures, statements, ledgers, mechanisms and audits.

mod accounting;
mod audit;
mod claims;
mod correlated;
mod ledger;
mod masked;
mod preprocessing;
mod selection;
mod statements;
