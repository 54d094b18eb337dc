//! `client` with an encoder trained without labels, by FedSC with correlation matrices and by
//! federated averaging of encoders.
//!
//! The encoder is a linear map to 16 numbers, or to 8 on a board with less than 32 KiB of RAM. It
//! trains on batches of ten samples with two views each.
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

/// H, the width of a representation.
const WIDTH: usize = if cfg!(small_ram) { 8 } else { 16 };

/// Samples per batch, with two views each.
const BATCH: usize = 10;

const PARAMETERS: usize = FEATURES * WIDTH;
const MATRIX: usize = packed_length(WIDTH);
/// Values received: the encoder, the variations of its views, and the other devices' matrix.
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
