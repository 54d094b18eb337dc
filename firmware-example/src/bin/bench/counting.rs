//! What all measurements share: the counter, the model, and the streams.

use semihosting::println;
use smolfed_core::{
    model::{Const, FixedModel, Softmax},
    stream::{Purpose, Root, Stream, StreamId},
};
use smolfed_firmware::board;

/// The model of `docs/targets.md`.
pub type Client = Softmax<Const<64>, Const<10>>;
/// Its parameters.
pub const PARAMETERS: usize = Client::PARAMETERS;
/// Samples of the device.
pub const SAMPLES: usize = 50;

/// Instructions of `work`, without those of counting.
pub fn count(work: impl FnOnce()) -> u32 {
    let start = board::counter();
    let empty = board::counter().wrapping_sub(start);
    let start = board::counter();
    work();
    let counts = board::counter().wrapping_sub(start).wrapping_sub(empty);
    (u64::from(counts) * 1_000 / u64::from(board::COUNTS_PER_1000)) as u32
}

/// A line of the output.
pub fn print(name: &str, instructions: u32) {
    println!("{name} {instructions}");
}

/// The device's stream for this purpose.
pub fn stream(purpose: Purpose) -> Stream {
    Root::from_seed(1).stream(StreamId {
        purpose,
        round: 0,
        device: 0,
    })
}
