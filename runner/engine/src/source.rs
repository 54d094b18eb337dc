//! Where the devices of a round are. A source is one file; what it cannot do with a method stands
//! in [`crate::combinations`].
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`contract`] | what a source is |
//! | [`simulated`] | devices that train in this process |
//! | [`ranks`] | devices that train in several processes |
//! | [`replay`] | simulated devices that take part as a record says |
//! | [`participation`] | the record of who took part |

pub mod contract;
pub mod participation;
pub mod ranks;
pub mod replay;
pub mod simulated;

pub use contract::{CohortSum, Draw, Source, SourceError, Step};
pub use simulated::Simulated;
