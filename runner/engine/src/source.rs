//! Sources of devices for a round. A source is one file. [`crate::combinations`] lists its
//! limitations with methods.
//!
//! | module | contents |
//! | --- | --- |
//! | [`contract`] | the trait of a source |
//! | [`simulated`] | devices that train in this process |
//! | [`ranks`] | devices that train in several processes |
//! | [`replay`] | simulated devices that take part according to a record |
//! | [`participation`] | the record of who took part |

pub mod contract;
pub mod participation;
pub mod ranks;
pub mod replay;
pub mod simulated;

pub use contract::{CohortSum, Draw, Source, SourceError, Step};
pub use simulated::Simulated;
