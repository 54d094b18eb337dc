//! Files of a run that other modules also read: lines of records, and their errors.

pub mod error;
pub mod records;
