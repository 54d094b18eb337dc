//! The round loop of smolfed: what devices train, where they are, the server's step, runs with
//! their directories, and audits. It opens no socket.
//!
//! Each module uses those above it in this table alone:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`suggested`] | settings that suit the sizes of a federation |
//! | [`ranks`] | processes that share a run, and what they exchange |
//! | [`combinations`] | which settings exclude each other |
//! | [`layout`], [`denoise`] | the tensors of a model; denoisers of the noisy average |
//! | [`tables`] | the tables of an experiment file, typed |
//! | [`task`] | the model that is trained |
//! | `data_conditions` | what ε depends on because of the data's preparation |
//! | [`check`] | why an experiment cannot run |
//! | [`arithmetic`] | how simulated devices calculate |
//! | [`evaluation`], [`representation`] | how good models and encoders are |
//! | [`membership`] | membership inference on a model |
//! | [`method`] | what devices train, and how updates are used: one file per method |
//! | [`config`] | the experiment file |
//! | [`attendance`] | who takes part in a round |
//! | [`server`] | the server's step on what was released |
//! | [`question`] | what devices are asked between rounds, and what follows from their answers |
//! | [`experiment`] | an experiment file, validated for a federation |
//! | [`run_files`] | files of a run: records, errors |
//! | [`preprocessing`] | what a model needs to know of its inputs |
//! | [`source`] | where devices are: simulated, on other ranks, a recorded participation |
//! | [`round`] | a round: draw, train, release, apply, evaluate; the state that it leaves |
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
