//! The live page in a program that was compiled without it: nothing can be served.

use std::net::SocketAddr;
use std::sync::Arc;

use smolfed_data::missing_feature::MissingFeature;

use super::settings::{HttpError, HttpSettings};
use crate::service::Service;

/// The live page, of which there is none.
#[derive(Debug)]
pub enum HttpServer {}

impl HttpServer {
    /// Refuses.
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

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        match *self {}
    }

    /// Serves the figures of a coordinator.
    pub async fn serve(self, _: Arc<Service>) {
        match self {}
    }
}
