//! Secret random bytes from the operating system.

use zeroize::Zeroizing;

/// The operating system provides no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the operating system provides no random bytes: {0}")]
pub struct EntropyError(getrandom::Error);

/// Returns 32 secret bytes, which are overwritten when dropped.
///
/// # Errors
/// [`EntropyError`].
pub fn secret() -> Result<Zeroizing<[u8; 32]>, EntropyError> {
    let mut secret = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *secret).map_err(EntropyError)?;
    Ok(secret)
}
