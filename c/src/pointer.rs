//! Pointers of the caller as slices and references, after checks for null, alignment and length.

use crate::status::sf_status;

/// Values of the caller to read. No values may be at null.
///
/// # Safety
/// At `pointer` are `count` values, which nobody writes as long as the slice is in use.
pub(crate) unsafe fn slice<'a, T>(pointer: *const T, count: usize) -> Result<&'a [T], sf_status> {
    if count == 0 {
        return Ok(&[]);
    }
    is_valid(pointer, count)?;
    // SAFETY: not null, aligned, not longer than memory can be, and the caller's for reading.
    Ok(unsafe { core::slice::from_raw_parts(pointer, count) })
}

/// Values of the caller to write. No values may be at null.
///
/// # Safety
/// At `pointer` are `count` values, which nobody else uses as long as the slice is in use.
pub(crate) unsafe fn slice_mut<'a, T>(
    pointer: *mut T,
    count: usize,
) -> Result<&'a mut [T], sf_status> {
    if count == 0 {
        return Ok(&mut []);
    }
    is_valid(pointer, count)?;
    // SAFETY: not null, aligned, not longer than memory can be, and the caller's for writing.
    Ok(unsafe { core::slice::from_raw_parts_mut(pointer, count) })
}

/// Writes an answer to where the caller wants it, if it does.
///
/// # Safety
/// `pointer` is null, or place for a value that nobody else uses.
pub(crate) unsafe fn answer<T>(pointer: *mut T, value: T) {
    if !pointer.is_null() {
        // SAFETY: not null, and the caller's for writing. It may not be aligned.
        unsafe { pointer.write_unaligned(value) };
    }
}

/// Words as twice as many counts of 16 bits.
pub(crate) const fn as_counts(words: &mut [u32]) -> &mut [i16] {
    let (pointer, count) = (words.as_mut_ptr(), words.len());
    // SAFETY: the same bytes, which all are counts, of a type with less alignment.
    unsafe { core::slice::from_raw_parts_mut(pointer.cast(), 2 * count) }
}

/// Words as as many numbers.
pub(crate) const fn as_numbers(words: &mut [u32]) -> &mut [f32] {
    let (pointer, count) = (words.as_mut_ptr(), words.len());
    // SAFETY: the same bytes, which all are numbers, of a type with the same alignment.
    unsafe { core::slice::from_raw_parts_mut(pointer.cast(), count) }
}

/// Whether there can be so many values.
fn is_valid<T>(pointer: *const T, count: usize) -> Result<(), sf_status> {
    let fits = count
        .checked_mul(size_of::<T>())
        .is_some_and(|bytes| isize::try_from(bytes).is_ok());
    match !pointer.is_null() && pointer.is_aligned() && fits {
        true => Ok(()),
        false => Err(sf_status::SF_POINTER),
    }
}
