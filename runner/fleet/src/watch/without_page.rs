//! Replacement for the live page in a program compiled without it.

use std::net::SocketAddr;
use std::sync::Arc;

use smolfed_data::missing_feature::MissingFeature;

use super::settings::{HttpError, HttpSettings};
use crate::service::Service;

/// The live page, which does not exist here.
#[derive(Debug)]
pub enum HttpServer {}

impl HttpServer {
    /// Refuses to bind.
    ///
    /// # Errors
    /// [`HttpError::Missing`].
    pub fn bind(settings: HttpSettings) -> Result<Self, HttpError> {
        Err(HttpError::Missing {
            address: settings.address,
            missing: MissingFeature {
                part: "the live page",
                feature: "page",
            },
        })
    }

    /// Returns the address on which it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        match *self {}
    }

    /// Serves the figures of a coordinator.
    pub async fn serve(self, _: Arc<Service>) {
        match self {}
    }
}
