//! The memory of the caller, from which a device takes its parts one by one: its alignment, and the
//! error if it is too small.

use core::{mem::MaybeUninit, ptr::NonNull};

use crate::status::sf_status;

/// The alignment of the memory.
pub(crate) const ALIGN: usize = 8;

/// Numbers for which zero bytes are a value.
///
/// # Safety
/// All bit patterns of zeros are values of the type, which needs no more alignment than [`ALIGN`].
pub(crate) unsafe trait Zeros: Copy + 'static {}

// SAFETY: zeros are 0.
unsafe impl Zeros for f32 {}
// SAFETY: zeros are 0.
unsafe impl Zeros for u32 {}
// SAFETY: zeros are 0.
unsafe impl Zeros for u16 {}
// SAFETY: zeros are 0.
unsafe impl Zeros for i16 {}
// SAFETY: zeros are 0.
unsafe impl Zeros for i8 {}

/// How many bytes pieces take, laid out one behind the other.
#[derive(Clone, Copy)]
pub(crate) struct Layout(Option<usize>);

impl Layout {
    pub(crate) const EMPTY: Self = Self(Some(0));

    /// With room for more values.
    pub(crate) fn with<T>(self, count: usize) -> Self {
        self.with_bytes(align_of::<T>(), size_of::<T>(), count)
    }

    #[inline(never)]
    fn with_bytes(self, align: usize, size: usize, count: usize) -> Self {
        let piece = || {
            let start = self.0?.checked_next_multiple_of(align)?;
            start.checked_add(count.checked_mul(size)?)
        };
        Self(piece())
    }

    /// The total bytes, or `None` if there cannot be that many.
    pub(crate) fn bytes(self) -> Option<usize> {
        self.0?.checked_next_multiple_of(ALIGN)
    }
}

/// The rest of the caller's memory.
pub(crate) struct Memory {
    next: NonNull<u8>,
    left: usize,
}

impl Memory {
    /// # Safety
    /// These bytes are nobody else's as long as anything that [`Self::place`] and [`Self::zeros`]
    /// give is in use.
    ///
    /// # Errors [`sf_status::SF_POINTER`] for null, [`sf_status::SF_MEMORY`] unless the address is
    /// a multiple of [`ALIGN`].
    pub(crate) unsafe fn new(start: *mut u8, bytes: usize) -> Result<Self, sf_status> {
        let next = NonNull::new(start).ok_or(sf_status::SF_POINTER)?;
        match next.addr().get().is_multiple_of(ALIGN) {
            true => Ok(Self { next, left: bytes }),
            false => Err(sf_status::SF_MEMORY),
        }
    }

    /// Where it begins.
    pub(crate) const fn start(&self) -> NonNull<u8> {
        self.next
    }

    /// Takes aligned room for values of a type.
    fn take<T>(&mut self, count: usize) -> Result<NonNull<T>, sf_status> {
        const { assert!(align_of::<T>() <= ALIGN, "the memory has no more alignment") };
        let place = self.take_bytes(align_of::<T>(), size_of::<T>(), count);
        Ok(place.ok_or(sf_status::SF_MEMORY)?.cast())
    }

    /// Zero bytes, aligned.
    #[inline(never)]
    fn take_bytes(&mut self, align: usize, size: usize, count: usize) -> Option<NonNull<u8>> {
        let padding = self.next.addr().get().wrapping_neg() & (align - 1);
        let bytes = count.checked_mul(size)?;
        self.left = self.left.checked_sub(bytes.checked_add(padding)?)?;
        // SAFETY: that many bytes were left of one piece of memory of the caller.
        unsafe {
            let place = self.next.add(padding);
            place.write_bytes(0, bytes);
            self.next = place.add(bytes);
            Some(place)
        }
    }

    /// A place for one value.
    pub(crate) fn place<T>(&mut self) -> Result<&'static mut MaybeUninit<T>, sf_status> {
        let mut place = self.take::<MaybeUninit<T>>(1)?;
        // SAFETY: aligned memory for one value, which nobody else has: `new` promises it, and what
        // was taken is not given again. It may be uninitialised. It lives until the device is
        // closed, which its users promise to outlive nothing.
        Ok(unsafe { place.as_mut() })
    }

    /// Zeros.
    pub(crate) fn zeros<T: Zeros>(&mut self, count: usize) -> Result<&'static mut [T], sf_status> {
        let place = self.take::<T>(count)?;
        // SAFETY: aligned memory for `count` values, which nobody else has, as in `place`. It has
        // zeros, which are values of `T`.
        Ok(unsafe { core::slice::from_raw_parts_mut(place.as_ptr(), count) })
    }
}
