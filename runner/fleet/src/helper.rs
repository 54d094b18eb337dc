//! `smolfed helper`: a party of a fleet that knows the masks of devices and sees no update.
//!
//! What a helper checks and answers is `release::masked`; here is the process around it: its files,
//! and [`crate::helper_link`] is the link over which one coordinator asks.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`file`](mod@file) | the keys of a helper |
//! | [`ledger`] | what it has answered, on disk before the answer leaves |
//! | [`store`] | both on disk |
//! | [`service`] | one answer a round, which is recorded before it leaves |
//! | [`slot`] | one coordinator at a time |
//! | [`server`] | connections |
//! | `watch` | metrics and health |

pub mod file;
pub mod ledger;
pub mod server;
pub mod service;
pub mod slot;
pub mod store;
#[cfg(feature = "page")]
pub(crate) mod watch;

use std::sync::Arc;

use crate::watch::HttpServer;

/// Serves the figures of a helper, until its event loop ends.
pub async fn serve_figures(http: HttpServer, server: Arc<server::Server>) {
    #[cfg(feature = "page")]
    http.serve_routes(watch::routes(server)).await;
    #[cfg(not(feature = "page"))]
    match (http, server) {}
}
