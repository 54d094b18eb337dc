//! The samples between the task that measures and the one that trains.

use embassy_sync::{blocking_mutex::raw::CriticalSectionRawMutex, channel::Channel};
use smolfed_core::samples::SampleBuffer;

use crate::recipe::{CLASSES, FEATURES, Value};

/// Samples that the device trains on, at most.
pub const SAMPLES: usize = 50;

/// Samples that wait while the device trains, at most.
const WAITING: usize = 16;

/// The last samples, to train on.
pub type Buffer = SampleBuffer<Value, u16, FEATURES, SAMPLES>;

/// The newest samples, on their way from one task to the other.
static QUEUE: Channel<CriticalSectionRawMutex, Sample, WAITING> = Channel::new();

/// The features of a sample, and its class.
struct Sample {
    features: [Value; FEATURES],
    class: u16,
}

/// No samples yet.
pub fn buffer() -> Buffer {
    Buffer::of_classes(CLASSES as u16)
}

/// Sends a sample to the task that trains, in the place of the oldest one if there is no room.
pub fn send(features: [Value; FEATURES], class: u16) {
    if QUEUE.is_full() {
        let _oldest = QUEUE.try_receive();
    }
    let _room = QUEUE.try_send(Sample { features, class });
}

/// Takes the samples that were sent. What cannot be trained with is left out.
pub fn receive(buffer: &mut Buffer) {
    while let Ok(sample) = QUEUE.try_receive() {
        let _left_out = buffer.push(&sample.features, sample.class);
    }
}
