//! The round loop of smolfed: training methods, sources of devices, the server's step, runs with
//! their directories, and audits. It opens no socket.
//!
//! Each module uses only modules above it in this table:
//!
//! | module | contents |
//! | --- | --- |
//! | [`suggested`] | settings that suit the sizes of a federation |
//! | [`ranks`] | processes that share a run, and their messages |
//! | [`combinations`] | settings that exclude each other |
//! | [`layout`], [`denoise`] | the tensors of a model, and denoisers of the noisy average |
//! | [`tables`] | the tables of an experiment file, typed |
//! | [`task`] | the trained model |
//! | `data_conditions` | conditions of ε from the preparation of the data |
//! | [`check`] | reasons why an experiment cannot run |
//! | [`arithmetic`] | arithmetics of simulated devices |
//! | [`evaluation`], [`representation`] | quality of models and encoders |
//! | [`membership`] | membership inference on a model |
//! | [`method`] | training methods and their use of updates: one file per method |
//! | [`config`] | the experiment file |
//! | [`attendance`] | the devices of each round |
//! | [`server`] | the server's step on releases |
//! | [`question`] | questions to devices between rounds, and results of their answers |
//! | [`experiment`] | an experiment file, validated for a federation |
//! | [`run_files`] | files of a run: records, errors |
//! | [`preprocessing`] | the information that a model needs about its inputs |
//! | [`source`] | sources of devices: simulated, on other ranks, a recorded participation |
//! | [`round`] | a round (draw, train, release, apply, evaluate), and the state after it |
//! | [`run`] | a run with its directory |
//! | [`audit`] | attacks on the real round |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::float_cmp, reason = "tests compare exact results"))]

pub mod arithmetic;
pub mod attendance;
pub mod audit;
pub mod check;
pub mod combinations;
pub mod config;
pub(crate) mod data_conditions;
pub mod denoise;
pub mod evaluation;
pub mod experiment;
pub mod layout;
pub mod membership;
pub mod method;
pub mod preprocessing;
pub mod question;
pub mod ranks;
pub mod representation;
pub mod round;
pub mod run;
pub mod run_files;
pub mod server;
pub mod source;
pub mod suggested;
pub mod tables;
pub mod task;
