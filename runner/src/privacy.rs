//! The exact price of privacy: events, accountants, calibration and the statement.

mod log_space;

pub mod event;
pub mod params;
pub mod rdp;
pub mod theorem;

#[cfg(test)]
mod golden;
