//! Who a side of a TLS connection is, and whom it believes.

pub(super) mod authorities;
pub(super) mod certificate;
pub(super) mod provider;
