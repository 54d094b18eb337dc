//! The identity of a side of a TLS connection, and the authorities that it trusts.

pub(super) mod authorities;
pub(super) mod certificate;
pub(super) mod provider;
