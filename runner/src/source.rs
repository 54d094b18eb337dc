//! Where the devices of a round are. A source is one file; what it cannot do with a method stands
//! in [`combinations`].
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`contract`] | what a source is |
//! | [`simulated`] | devices that train in this process |
//! | [`ranks`] | devices that train in several processes |
//! | [`fleet`] | real devices among simulated ones |
//! | [`replay`] | simulated devices that take part as a record says |
//! | [`participation`] | the record of who took part |
//! | [`attendance`] | who takes part: drawn, or by a timetable |
//! | [`sampling`] | the draw of a cohort |
//! | [`combinations`] | which methods go over which source |

pub mod attendance;
pub mod combinations;
pub mod contract;
pub mod fleet;
pub mod participation;
pub mod ranks;
pub mod replay;
pub mod sampling;
pub mod simulated;

pub use contract::{CohortSum, Draw, Source, SourceError};
pub use simulated::Simulated;
