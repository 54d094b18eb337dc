//! After a run: its report, many runs in a sweep, comparisons and exports, and the use of models.
//!
//! | module | contents |
//! | --- | --- |
//! | [`answers`] | the answers to the questions of a run, in words |
//! | [`inference`] | predictions, and exports of models to other programs |
//! | [`report`] | the HTML page about a run and its plots |
//! | [`sweep`] | grids of experiments, and private selection among them |
//! | [`runs`] | finished runs: listed, compared, exported |
//! | [`windows`] | updates by age, and wasted participations, of windows of time |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::float_cmp, reason = "tests compare exact results"))]

pub mod answers;
pub mod inference;
pub mod report;
pub mod runs;
pub mod sweep;
pub mod windows;
