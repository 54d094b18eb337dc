//! Finished models for devices that only infer: `docs/delivery.md`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`publisher`] | the key that signs model files |
//! | [`catalogue`] | the versions of a folder, and the shares of devices that get them |
//! | [`published`] | the files of the current versions, as the service sends them |
//! | [`conversation`] | one connection: frames in, frames out |
//! | [`service`] | the event loop, with one task per connection |
//! | [`error`] | errors of a folder |
//! | [`figures`] | how many devices have which version |
//! | `page` | the figures as a page, as JSON and for Prometheus |
//! | [`device`] | a device that only infers, as a process |

pub mod catalogue;
pub mod conversation;
pub mod device;
pub mod error;
pub mod figures;
#[cfg(feature = "page")]
mod page;
pub mod published;
pub mod publisher;
pub mod service;

use std::sync::Arc;

use crate::watch::HttpServer;

/// Serves the figures of a service, until its event loop ends.
pub async fn serve_figures(http: HttpServer, service: Arc<service::DeliveryService>) {
    #[cfg(feature = "page")]
    http.serve_routes(page::routes(service)).await;
    #[cfg(not(feature = "page"))]
    match (http, service) {}
}

#[cfg(test)]
mod tests;
