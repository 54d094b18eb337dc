//! Settings of the live page (`--http`: address, host names, token, access without a token), and
//! the errors at its start.

use std::net::SocketAddr;

use smolfed_data::missing_feature::MissingFeature;

use super::token::{Token, TokenError};

/// Address of the page, and access to it.
#[derive(Debug)]
pub struct HttpSettings {
    /// The listening address.
    pub address: SocketAddr,
    /// Additional host names of the page, behind a proxy.
    pub names: Vec<String>,
    /// The operator's token.
    pub token: Option<Token>,
    /// Whether all figures may be read from other machines without a token.
    pub is_public: bool,
}

/// Error when starting the page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The token is unusable.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// Other machines could read the figures.
    #[error(
        "`--http {0}` can be reached from other machines: give `--http-token-file FILE`, or listen \
         at 127.0.0.1"
    )]
    Open(SocketAddr),
    /// This program was compiled without the page.
    #[error("`--http {address}`: {missing}")]
    Missing {
        /// The address.
        address: SocketAddr,
        /// The feature.
        missing: MissingFeature,
    },
    /// The address is not available.
    #[error("cannot listen at {address}: {source}; choose another address with `--http`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Cause.
        source: std::io::Error,
    },
}

impl HttpError {
    /// Returns whether the request is at fault, and not the machine.
    #[must_use]
    pub const fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Listen { .. })
    }
}
