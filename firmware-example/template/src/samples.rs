//! Samples between the measuring task and the training task: the number that is kept, the queue,
//! and the oldest one that is replaced when the queue is full.

use embassy_sync::{blocking_mutex::raw::CriticalSectionRawMutex, channel::Channel};
use smolfed_core::samples::SampleBuffer;

use crate::recipe::{CLASSES, FEATURES, Value};

/// Maximum number of samples for training.
pub const SAMPLES: usize = 50;

/// Maximum number of waiting samples while the device trains.
const WAITING: usize = 16;

/// Last samples, for training.
pub type Buffer = SampleBuffer<Value, u16, FEATURES, SAMPLES>;

/// Newest samples, on their way from one task to the other.
static QUEUE: Channel<CriticalSectionRawMutex, Sample, WAITING> = Channel::new();

/// The features of a sample, and its class.
struct Sample {
    features: [Value; FEATURES],
    class: u16,
}

/// Returns an empty buffer.
pub fn buffer() -> Buffer {
    Buffer::of_classes(CLASSES as u16)
}

/// Sends a sample to the training task. If there is no room, it replaces the oldest one.
pub fn send(features: [Value; FEATURES], class: u16) {
    if QUEUE.is_full() {
        let _oldest = QUEUE.try_receive();
    }
    let _room = QUEUE.try_send(Sample { features, class });
}

/// Takes the sent samples. Samples that cannot be used in training are dropped.
pub fn receive(buffer: &mut Buffer) {
    while let Ok(sample) = QUEUE.try_receive() {
        let _left_out = buffer.push(&sample.features, sample.class);
    }
}
