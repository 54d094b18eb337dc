//! Settings of the live page, and why there is none.

use std::net::SocketAddr;

use smolfed_data::missing_feature::MissingFeature;

use super::token::{Token, TokenError};

/// Where the page is, and who may see what.
#[derive(Debug)]
pub struct HttpSettings {
    /// The address to listen at.
    pub address: SocketAddr,
    /// Names under which the page may be asked for besides, behind a proxy.
    pub names: Vec<String>,
    /// The operator's token.
    pub token: Option<Token>,
    /// Whether all figures may be read from other machines without a token.
    pub is_public: bool,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The token.
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
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {source}; choose another address with `--http`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}

impl HttpError {
    /// Whether what was asked for is wrong, and not the machine.
    #[must_use]
    pub const fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Listen { .. })
    }
}
