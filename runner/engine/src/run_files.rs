//! Files of a run that other modules read as well: lines of records, checkpoints, and what can go
//! wrong with them.

pub mod checkpoint;
pub mod error;
pub mod records;
