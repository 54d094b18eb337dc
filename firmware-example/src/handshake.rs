//! Sessions that begin with an X25519 handshake: the feature `x25519`.
//!
//! Its keys come from a generator that nobody can predict, and a count of starts is none. A board
//! needs one in hardware, seeded as its manual says. The emulated boards without one borrow that of
//! their host, which `client` may do and `bare` should not.

use core::convert::Infallible;

use embedded_storage::nor_flash::NorFlash;
use rand_core::{TryCryptoRng, TryRng};
use smolfed_core::session::X25519;

/// Where nonces and keys of sessions come from.
pub type Nonces = X25519<Entropy>;

/// The nonces and keys of this board: nothing needs to be counted.
///
/// # Errors
/// None.
pub fn of_this_start<F: NorFlash>(_: F) -> Result<Nonces, Infallible> {
    Ok(X25519::new(Entropy))
}

/// The generator of the hardware, or of the host.
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

/// Random bytes of the host of an emulated board.
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
