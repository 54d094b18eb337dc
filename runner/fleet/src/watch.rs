//! What an operator needs: what a coordinator tells, and what it shows.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`log`] | what happens, as lines of text or of JSON |
//! | [`limit`] | how often the same is written |
//! | `http`, [`settings`] | the live page, its events, metrics and health |
//! | `metrics` | the figures as Prometheus reads them |
//! | `hosts` | which requests are answered |
//! | [`token`] | who may see which devices take part |
//! | `limited_listener`, `events` | connections to the page, and what is sent to it |
//! | `figures_cache` | figures that many ask for |
//! | `without_page` | the page in a program without it |

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
pub use settings::{HttpError, HttpSettings};
#[cfg(not(feature = "page"))]
pub use without_page::HttpServer;
