//! Sessions with an X25519 handshake: the feature `x25519`.
//!
//! Its keys need an unpredictable generator, and a counter of starts is predictable. A board needs
//! a hardware generator, seeded as its manual describes. Emulated boards without one borrow the
//! generator of their host. `client` may do so, and `bare` should not.

use core::convert::Infallible;

use embedded_storage::nor_flash::NorFlash;
use rand_core::{TryCryptoRng, TryRng};
use smolfed_core::session::X25519;

/// Source of session nonces and keys.
pub type Nonces = X25519<Entropy>;

/// Returns the nonces and keys of this board, which need no counter.
///
/// # Errors
/// None.
pub fn of_this_start<F: NorFlash>(_: F) -> Result<Nonces, Infallible> {
    Ok(X25519::new(Entropy))
}

/// The hardware generator, or the host's.
pub struct Entropy;

impl TryRng for Entropy {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        rand_core::utils::next_word_via_fill(self)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        rand_core::utils::next_word_via_fill(self)
    }

    #[cfg(has_random_numbers)]
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        bytes.fill_with(crate::board::random_byte);
        Ok(())
    }

    #[cfg(not(has_random_numbers))]
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        if borrow(bytes).is_none() {
            semihosting::process::ExitCode::FAILURE.exit_process()
        }
        Ok(())
    }
}

impl TryCryptoRng for Entropy {}

/// Reads random bytes from the host of an emulated board.
#[cfg(not(has_random_numbers))]
fn borrow(bytes: &mut [u8]) -> Option<()> {
    use semihosting::{fs::File, io::Read};

    let mut file = File::open(c"/dev/urandom").ok()?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let count = file.read(rest).ok().filter(|count| *count > 0)?;
        rest = rest.get_mut(count..).unwrap_or_default();
    }
    Some(())
}
