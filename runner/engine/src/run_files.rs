//! Files of a run that other modules read as well: lines of records, and what can go wrong with
//! them.

pub mod error;
pub mod records;
