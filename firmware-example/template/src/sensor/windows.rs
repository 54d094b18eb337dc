//! The sensor: a ring of its last rows, with features of its windows. Put yours in [`sample`].

use embassy_time::{Duration, Ticker};

use crate::{
    recipe::{CHANNELS, CLASSES, EVERY, FEATURES, LENGTH, STEP, Value, features_into},
    samples,
};

/// Your sensor: read a row of counts here, and set the class. Call `ring.clear()` at the end of a
/// recording. This one is simulated: a sawtooth for each class, in turn.
#[embassy_executor::task]
pub async fn sample() {
    let mut ring = Ring::new();
    let mut ticker = Ticker::every(Duration::from_millis(20));
    for number in 0.. {
        ticker.next().await;
        let class = (number / (4 * LENGTH) % CLASSES) as u16;
        let falls = number * (usize::from(class) + 1);
        let row = core::array::from_fn(|channel| ((falls + channel) * 64 % 4_096) as i16 - 2_048);
        ring.push(row, class);
    }
}

/// Last `LENGTH` rows, all of one class.
struct Ring {
    rows: [[i16; CHANNELS]; LENGTH],
    class: u16,
    /// Index of the next row, which replaces the oldest one.
    next: usize,
    /// Rows until a window is complete.
    missing: usize,
}

impl Ring {
    const fn new() -> Self {
        Self {
            rows: [[0; CHANNELS]; LENGTH],
            class: 0,
            next: 0,
            missing: LENGTH,
        }
    }

    /// Starts another recording with the next row.
    fn clear(&mut self) {
        self.missing = LENGTH;
    }

    /// Takes a row, and sends the features of a complete window.
    fn push(&mut self, row: [i16; CHANNELS], class: u16) {
        if class != self.class {
            self.clear();
            self.class = class;
        }
        self.rows[self.next] = row;
        self.next = (self.next + 1) % LENGTH;
        self.missing -= 1;
        if self.missing > 0 {
            return;
        }
        self.missing = STEP;
        let sample =
            |channel: usize, step: usize| self.rows[(self.next + step * EVERY) % LENGTH][channel];
        let mut features = [Value::default(); FEATURES];
        if features_into(sample, &mut features).is_ok() {
            samples::send(features, class);
        }
    }
}
