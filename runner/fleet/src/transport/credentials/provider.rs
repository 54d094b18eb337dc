//! The cryptographic algorithms of TLS, from the crate `ring`.

use std::sync::Arc;

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};

/// Returns the algorithms of `ring`.
pub(in crate::transport) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
