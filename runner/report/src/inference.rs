//! Models in use: from a run directory to predictions, and to other programs. The format of
//! `preprocessing.json` is in [`smolfed_engine::preprocessing`].
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`model`] | the trained model of a run, or of one of its devices |
//! | [`input`] | new rows, from tables, IDX and LEAF files |
//! | [`integers`] | predictions with the bits of boards that calculate in integers |
//! | [`quantised`] | networks in integers of 8 bits |
//! | [`rows`] | rows that a program has in memory |
//! | [`prediction`] | from rows to classes, values and representations |
//! | [`assessment`] | how good a model is on rows whose targets are known |
//! | [`export`] | models as C, Rust, ONNX and NPZ |
//! | [`error`] | what can go wrong |

pub mod assessment;
pub mod error;
pub mod export;
pub mod input;
pub mod integers;
pub mod model;
pub mod prediction;
pub mod quantised;
pub mod rows;
