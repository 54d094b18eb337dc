//! The algorithms of TLS.

use std::sync::Arc;

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};

/// Those of `ring`.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
