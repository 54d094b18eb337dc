//! Updates on the integer grid, with the widest vectors of this machine.

use pulp::{Arch, NullaryFnOnce};
use smolfed_core::quantize::{Grid, QuantizeError};

/// [`Grid::quantize_into`], then [`Grid::check`]: the device's check of the bound and the server's.
///
/// # Errors
/// [`QuantizeError`], as there.
#[inline(never)]
pub fn quantize_and_check(
    grid: &Grid,
    update: &[f32],
    integers: &mut [i32],
) -> Result<(), QuantizeError> {
    Arch::new().dispatch(QuantizeAndCheck {
        grid,
        update,
        integers,
    })
}

/// The arguments of [`quantize_and_check`]. A closure would not be inlined into the code that is
/// compiled for wider vectors; a method marked to be inlined is.
pub(crate) struct QuantizeAndCheck<'a> {
    pub(crate) grid: &'a Grid,
    pub(crate) update: &'a [f32],
    pub(crate) integers: &'a mut [i32],
}

impl NullaryFnOnce for QuantizeAndCheck<'_> {
    type Output = Result<(), QuantizeError>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        self.grid.quantize_into(self.update, self.integers)?;
        self.grid.check(self.integers)
    }
}
