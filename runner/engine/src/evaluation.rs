//! Evaluation of models. Everything here reads private data without noise, so only simulations use
//! it.
//!
//! | module | contents |
//! | --- | --- |
//! | [`samples`] | loss and accuracy of a model on samples |
//! | [`assessment`] | the figures of a final model, next to constant predictions |
//! | [`devices`] | figures of each device, and their spread across devices |
//! | [`quantiles`] | quantiles over devices |

pub mod assessment;
pub mod devices;
pub mod quantiles;
pub mod samples;
