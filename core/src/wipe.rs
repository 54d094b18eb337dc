//! Overwriting (zeroing) of secrets in memory, in one place in the flash.

use bytemuck::Pod;
use zeroize::Zeroize;

/// Overwrites a secret with zeros. The compiler cannot remove the writes.
pub(crate) fn wipe<T: Pod, const N: usize>(secret: &mut [T; N]) {
    wipe_bytes(bytemuck::cast_slice_mut(secret));
}

#[inline(never)]
fn wipe_bytes(bytes: &mut [u8]) {
    bytes.zeroize();
}
