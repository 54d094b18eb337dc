//! Users' experiments: methods, models and sources, and how well each learns.

mod answers;
mod combinations;
mod contrast;
mod fast;
mod features;
mod mnist;
pub(crate) mod networks;
mod own_data;
mod personal;
