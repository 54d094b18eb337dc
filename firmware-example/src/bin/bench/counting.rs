//! Counter, model and streams shared by all measurements.

use core::num::NonZeroU32;

use semihosting::{experimental::env, println};
use smolfed_core::{
    model::{Const, FixedModel, Softmax},
    params::{ClipNorm, LearningRate, Penalty},
    stream::{Purpose, Root, Stream, StreamId},
    train::{Clipping, LocalTraining},
};
use smolfed_firmware::board;

/// The model of `docs/targets.md`.
pub type Client = Softmax<Const<64>, Const<10>>;
/// Bits of the grid.
pub const BITS: u32 = 20;
/// Number of its parameters.
pub const PARAMETERS: usize = Client::PARAMETERS;

/// Maximum length of the command line, including the terminating zero.
const COMMAND_LINE: usize = 256;

/// Returns the instructions of `work`, without the overhead of counting.
///
/// A trace has the same intervals, in the order of the counts: from each entry of [`begin`] to the
/// next entry of [`end`]. Every second interval is that of `work`.
pub fn count(work: impl FnOnce()) -> u32 {
    let empty = end(begin());
    let start = begin();
    work();
    let counts = end(start).wrapping_sub(empty);
    (u64::from(counts) * 1_000 / u64::from(board::COUNTS_PER_1000)) as u32
}

#[inline(never)]
fn begin() -> u32 {
    board::counter()
}

#[inline(never)]
fn end(start: u32) -> u32 {
    board::counter().wrapping_sub(start)
}

/// Prints a line of the output. Each count has its own line, in the order of counting.
pub fn print(name: &str, instructions: u32) {
    println!("{name} {instructions}");
}

/// Returns whether the emulator writes a trace, in which a billion instructions would take an hour.
/// A word after the program on the command line says so.
pub fn is_traced() -> bool {
    let arguments = env::args::<COMMAND_LINE>();
    arguments.is_ok_and(|arguments| (&arguments).any(|word| word == Ok("traced")))
}

/// Returns the device's stream for this purpose.
pub fn stream(purpose: Purpose) -> Stream {
    Root::from_seed(1).stream(StreamId {
        purpose,
        round: 0,
        device: 0,
    })
}

/// Returns training in batches of ten.
pub fn training(epochs: u32) -> Option<LocalTraining> {
    Some(LocalTraining {
        epochs,
        batch_size: NonZeroU32::new(10)?,
        learning_rate: LearningRate::new(0.1).ok()?,
        weight_decay: Penalty::NONE,
        proximal: Penalty::NONE,
        clip_norm: ClipNorm::new(0.3).ok(),
        clipping: Clipping::EveryStep,
        gradient_smoothing: None,
    })
}
