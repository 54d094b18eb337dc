//! Tools for operators: the coordinator's log, and its live page.
//!
//! | module | contents |
//! | --- | --- |
//! | [`log`] | events as lines of text or of JSON |
//! | [`limit`] | limits on repeated lines |
//! | `http`, [`settings`] | the live page, its events, metrics and health |
//! | `metrics` | the figures in the format of Prometheus |
//! | `hosts` | the requests that are answered |
//! | [`token`] | access to the list of participating devices |
//! | `limited_listener`, `events` | connections to the page, and their events |
//! | `figures_cache` | figures shared by many clients |
//! | `without_page` | replacement in a program without the page |

#[cfg(feature = "page")]
mod events;
#[cfg(feature = "page")]
mod figures_cache;
#[cfg(feature = "page")]
mod hosts;
#[cfg(feature = "page")]
mod http;
pub mod limit;
#[cfg(feature = "page")]
mod limited_listener;
pub mod log;
#[cfg(feature = "page")]
pub mod metrics;
pub mod settings;
pub mod token;
#[cfg(not(feature = "page"))]
mod without_page;

#[cfg(feature = "page")]
pub use http::HttpServer;
#[cfg(feature = "page")]
pub(crate) use http::guarded;
pub use settings::{HttpError, HttpSettings};
#[cfg(not(feature = "page"))]
pub use without_page::HttpServer;
