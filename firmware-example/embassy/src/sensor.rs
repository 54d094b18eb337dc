//! The task that samples a sensor, the queue of its windows, and the windows kept for training. A
//! new window replaces the oldest one when either is full.
//!
//! The sensor is simulated: a window shows one of the classes, with noise. A real sensor awaits an
//! ADC or an accelerometer, and takes its classes from a button, a schedule or a rule.

use embassy_sync::{blocking_mutex::raw::CriticalSectionRawMutex, channel::Channel};
use embassy_time::{Duration, Ticker};
use heapless::HistoryBuf;
use smolfed_core::Samples;

/// Values per window, as in the experiment.
pub const FEATURES: usize = 64;
/// Number of classes, as in the experiment.
pub const CLASSES: usize = 10;
/// Maximum number of windows for training.
pub const WINDOWS: usize = 50;

/// Newest windows, on their way from one task to the other.
pub static QUEUE: Channel<CriticalSectionRawMutex, Window, WINDOWS> = Channel::new();

/// A window measured by the sensor.
pub struct Window {
    features: [f32; FEATURES],
    class: u16,
}

/// Measures a window every 100 ms.
#[embassy_executor::task]
pub async fn sample(mut noise: u32) {
    let mut ticker = Ticker::every(Duration::from_millis(100));
    loop {
        ticker.next().await;
        if QUEUE.is_full() {
            let _oldest = QUEUE.try_receive();
        }
        let _room = QUEUE.try_send(measure(&mut noise));
    }
}

/// Returns 1 in the class's section of the window and 0 elsewhere, with noise from −1/4 to 1/4.
fn measure(noise: &mut u32) -> Window {
    let mut word = || {
        // Linear congruential generator (Numerical Recipes): good enough for a sensor.
        *noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *noise >> 8
    };
    let class = (word() >> 8) as usize % CLASSES;
    let features = core::array::from_fn(|index| {
        let is_one = index / (FEATURES / CLASSES) == class;
        // 24 bits are exact in f32.
        f32::from(u8::from(is_one)) + word() as f32 / 33_554_432.0 - 0.25
    });
    Window {
        features,
        class: class as u16,
    }
}

/// Most recent windows for training.
#[derive(Default)]
pub struct Windows(HistoryBuf<Window, WINDOWS>);

impl Windows {
    /// Stores a window, replacing the oldest one.
    pub fn keep(&mut self, window: Window) {
        self.0.write(window);
    }
}

impl Samples for Windows {
    type Target = u16;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn features(&self, index: usize) -> &[f32] {
        self.0
            .as_slice()
            .get(index)
            .map_or(&[], |window| &window.features)
    }

    fn target(&self, index: usize) -> u16 {
        self.0
            .as_slice()
            .get(index)
            .map_or(0, |window| window.class)
    }
}
