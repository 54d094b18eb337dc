//! `client` that learns an encoder without labels: FedSC, with correlation matrices, and federated
//! averaging of encoders.
//!
//! A linear map to 16 numbers, and to 8 on a board of less than 32 KiB of RAM, from batches of ten
//! samples of two views.
#![no_std]
#![no_main]

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;
use smolfed_core::{
    contrast::{Projection, RECIPE_LENGTH, Windows, correlation::packed_length},
    model::Const,
    personal::store::NoStore,
};
use smolfed_firmware::{
    client::{self, FEATURES},
    host,
};

/// H.
const WIDTH: usize = if cfg!(small_ram) { 8 } else { 16 };

/// Samples of a batch, of two views each.
const BATCH: usize = 10;

const PARAMETERS: usize = FEATURES * WIDTH;
const MATRIX: usize = packed_length(WIDTH);
/// What comes down: the encoder, how its views vary, and the matrix of the other devices.
const RECEIVED: usize = PARAMETERS + RECIPE_LENGTH + MATRIX;
/// Representations of a batch, a view, a representation with its derivative, and two matrices.
const SCRATCH: usize = 2 * BATCH * WIDTH + FEATURES + 2 * WIDTH + 2 * MATRIX;

#[entry]
fn main() -> ! {
    let Ok(storage) = host::storage(NoStore) else {
        host::give_up(host::NO_FILE);
    };
    let encoder: Projection<Const<FEATURES>, Const<WIDTH>> = Projection::new(Const, Const);
    let Err(why) = client::run_unlabelled::<_, Windows, RECEIVED, PARAMETERS, SCRATCH, FEATURES, _>(
        encoder, storage,
    );
    host::give_up(why.text())
}
