//! The random generator of the firmware (`sf_random`) as a generator of the core.

use core::convert::Infallible;

use rand_core::TryRng;

use crate::callbacks::sf_random;

/// The generator of the hardware.
pub(crate) struct Random(pub(crate) sf_random);

impl TryRng for Random {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        rand_core::utils::next_word_via_fill(self)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        rand_core::utils::next_word_via_fill(self)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        if let Some(fill) = self.0.fill {
            // SAFETY: the firmware promises `sf_open` that this function writes as many bytes
            // there, and that it may be called with this context as long as the device is open.
            unsafe { fill(self.0.context, bytes.as_mut_ptr(), bytes.len()) };
        }
        Ok(())
    }
}
