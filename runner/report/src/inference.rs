//! Models in use: from a run directory to predictions, and to other programs. The format of
//! `preprocessing.json` is in [`smolfed_engine::preprocessing`].
//!
//! | module | contents |
//! | --- | --- |
//! | [`model`] | the trained model of a run, or of one of its devices |
//! | [`input`] | new rows, from tables, IDX and LEAF files |
//! | [`integers`] | predictions with the bits of boards that calculate in integers |
//! | [`quantised`] | networks in integers of 8 bits |
//! | [`rows`] | rows in a program's memory |
//! | [`prediction`] | from rows to classes, values and representations |
//! | [`assessment`] | the quality of a model on rows with known targets |
//! | [`export`] | models as C, Rust, ONNX and NPZ |
//! | [`error`] | errors |

pub mod assessment;
pub mod error;
pub mod export;
pub mod input;
pub mod integers;
pub mod model;
pub mod prediction;
pub mod quantised;
pub mod rows;
