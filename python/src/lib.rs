//! The native part of the Python package `smolfed`, a thin layer over the Rust crates.
//!
//! Python imports it as `smolfed._native`. Names, documentation, defaults and conversions that
//! Python can do are in `package/smolfed/`. This crate has only the parts that must be Rust: types
//! of the accountants, samples, and runs.
//!
//! | file | bindings |
//! | --- | --- |
//! | `accounting/` | events, accountants, calibration, trade-off curves, strategies, ledgers |
//! | `samples.rs` | NumPy arrays as samples of devices |
//! | `frame.rs` | tables of pandas and polars as samples |
//! | `proposal.rs` | proposals of `smolfed init`, and experiments as text |
//! | `keys.rs` | keys of experiments, between dictionaries and TOML |
//! | `run/` | experiments, runs and their results |
//! | `model.rs` | trained models and their predictions |
//! | `aggregate.rs` | the integer path for coordinators in Python |
//! | `error.rs` | errors of the crates as Python exceptions, with the same messages |

mod accounting;
mod aggregate;
mod error;
mod frame;
mod keys;
mod model;
mod proposal;
mod run;
mod samples;

use pyo3::prelude::*;

/// The native part of `smolfed`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::accounting::estimate::{Estimate, estimate};
    #[pymodule_export]
    use crate::accounting::event::{Event, event, events_from_json};
    #[pymodule_export]
    use crate::accounting::filter::{Filter, odometer};
    #[pymodule_export]
    use crate::accounting::ledger::read_ledger;
    #[pymodule_export]
    use crate::accounting::plan::{cohort_size, noise_multiplier, rounds};
    #[pymodule_export]
    use crate::accounting::statement::statement;
    #[pymodule_export]
    use crate::accounting::strategy::Strategy;
    #[pymodule_export]
    use crate::accounting::trade_off::TradeOff;
    #[pymodule_export]
    use crate::aggregate::{Aggregator, quantize};
    #[pymodule_export]
    use crate::frame::{FrameTable, read_frame};
    #[pymodule_export]
    use crate::model::Model;
    #[pymodule_export]
    use crate::proposal::{propose, propose_frame, read_toml};
    #[pymodule_export]
    use crate::run::{Outcome, complete, load, run_job, suggested};

    use super::{Bound, PyModule, PyResult};
    use pyo3::types::PyModuleMethods;
    use smolfed_accounting::Accountant;
    use smolfed_accounting::correlated::Family;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
        module.add("ACCOUNTANTS", Accountant::ALL.map(Accountant::name))?;
        module.add("FAMILIES", Family::ALL.map(Family::name))
    }
}
