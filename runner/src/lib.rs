//! Simulator, coordinator and privacy accountant of smolfed: differentially private federated
//! learning with the code that microcontrollers run ([`smolfed_core`]).
//!
//! The command `smolfed` is thin over this library, which gives programs the API of the crates
//! below it under one name. A run in a few lines:
//!
//! ```
//! use std::{sync::atomic::AtomicBool, time::Duration};
//! use smolfed::{config::{Config, DEFAULT}, data::DataFolders, run::{self, Control}};
//!
//! let overrides = ["rounds=5".parse()?, "privacy.epsilon=2".parse()?];
//! let config = Config::parse(DEFAULT, "the built-in experiment", &overrides)?;
//! let (experiment, federation) = run::prepare(config, &DataFolders::of_experiment(None))?;
//! let control = Control {
//!     stop: &AtomicBool::new(false),
//!     checkpoint_every: Duration::MAX,
//!     on_round: &mut |record| println!("round {}", record.round),
//! };
//! let result = run::execute(&experiment, &federation, None, control)?;
//! println!("{}", result.statements[0].in_words());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | crate | what it holds |
//! | --- | --- | --- |
//! | [`data`] | [`smolfed_data`] | sources, splits, partitions |
//! | [`release`] | [`smolfed_release`] | the privacy path, plans, statements, the ledger |
//! | [`config`], [`experiment`] | [`smolfed_engine`] | the experiment file, and its validation |
//! | [`method`], [`task`] | [`smolfed_engine`] | what devices train, and the model |
//! | [`arithmetic`] | [`smolfed_engine`] | how simulated devices calculate |
//! | [`source`], [`server`] | [`smolfed_engine`] | where devices are, and the server's step |
//! | [`round`], [`run`] | [`smolfed_engine`] | a round, and a run |
//! | [`evaluation`], [`representation`] | [`smolfed_engine`] | how good models and encoders are |
//! | [`audit`] | [`smolfed_engine`] | attacks on the real round |
//! | [`fleet`] | [`smolfed_fleet`] | real devices: coordinator, helper, transports |
//! | [`report`], [`runs`], [`sweep`] | [`smolfed_report`] | pages about runs, and many runs |
//! | [`inference`] | [`smolfed_report`] | models in use |
//! | [`subject`] | | the object at a name or a path |
//! | [`starter`], [`proposal`] | | an experiment file for some data |
//! | [`cost`] | | the cost of a round to one device |
//! | [`device_recipe`] | | the features of an experiment, for firmware |
//! | [`cli`] | | the command line |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::float_cmp, reason = "tests compare exact results"))]

pub use smolfed_data as data;
pub use smolfed_engine::{
    arithmetic, attendance, audit, config, denoise, evaluation, experiment, layout, method,
    of_linear_scores, of_task, on_samples, preprocessing, ranks, representation, round, run,
    run_files, server, source, suggested, tables, task,
};
pub use smolfed_fleet as fleet;
pub use smolfed_fleet::{device, helper};
pub use smolfed_release as release;
pub use smolfed_release::{durable, entropy, number};
pub use smolfed_report::{inference, report, runs, sweep};

/// Plans, the ledger and statements of [`smolfed_release`].
pub mod privacy {
    pub use smolfed_release::{Charge, Ledger, LedgerError, PrivacyStatement};
    pub use smolfed_release::{ledger, origin, plan, schedule, split, statement};
}

pub mod cli;
mod connect;
pub mod cost;
pub mod device_recipe;
pub mod divergence;
mod launch;
#[cfg(feature = "mpi")]
mod mpi;
pub mod proposal;
pub mod starter;
pub mod subject;
