//! What an operator needs: what a coordinator tells, and what it shows.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`log`] | what happens, as lines of text or of JSON |
//! | [`limit`] | how often the same is written |
//! | [`http`] | the live page, its events, metrics and health |
//! | [`metrics`] | the figures as Prometheus reads them |
//! | [`hosts`] | which requests are answered |
//! | [`token`] | who may see which devices take part |
//! | `doorway`, `events` | connections to the page, and what is sent to it |
//! | `visits` | figures that many ask for |

mod doorway;
mod events;
pub mod hosts;
pub mod http;
pub mod limit;
pub mod log;
pub mod metrics;
pub mod token;
mod visits;
