//! How good models are. Everything here reads private data without noise, so that only simulations
//! have it.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`samples`] | loss and accuracy of a model on samples |
//! | [`assessment`] | the figures of a final model, beside those of predicting always the same |
//! | [`devices`] | figures of each device, and their spread over devices |
//! | [`quantiles`] | quantiles over devices |

pub mod assessment;
pub mod devices;
pub mod quantiles;
pub mod samples;
