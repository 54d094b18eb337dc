//! `smolfed helper`: a party of a fleet that knows the masks of devices and sees no update.
//!
//! `release::masked` defines the checks and answers of a helper. This module is the process around
//! it with its files, and [`crate::helper_link`] is the link to its one coordinator.
//!
//! | module | contents |
//! | --- | --- |
//! | [`file`](mod@file) | the keys of a helper |
//! | [`ledger`] | its answers, on disk before they leave |
//! | [`store`] | both on disk |
//! | [`service`] | one answer per round, recorded before it leaves |
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

/// Serves the metrics of a helper, until its event loop ends.
pub async fn serve_figures(http: HttpServer, server: Arc<server::Server>) {
    #[cfg(feature = "page")]
    http.serve_routes(watch::routes(server)).await;
    #[cfg(not(feature = "page"))]
    match (http, server) {}
}
