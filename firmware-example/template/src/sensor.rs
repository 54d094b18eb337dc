//! The sensor: put yours in [`measure`].

use embassy_sync::{blocking_mutex::raw::CriticalSectionRawMutex, channel::Channel};
use embassy_time::{Duration, Ticker};
use heapless::HistoryBuf;
use smolfed_core::Samples;

/// Values of a window: as in the experiment.
pub const FEATURES: usize = {{features}};
/// Classes: as in the experiment.
pub const CLASSES: usize = {{classes}};
/// Windows that the device trains on, at most.
pub const WINDOWS: usize = 50;

/// The newest windows, on their way from one task to the other.
pub static QUEUE: Channel<CriticalSectionRawMutex, Window, WINDOWS> = Channel::new();

/// What the sensor has measured, and what it was.
pub struct Window {
    features: [f32; FEATURES],
    class: u16,
}

/// Your sensor: read it here, scale the values by public constants as the experiment does, and name
/// the class. This one is made up: it sees the classes in turn.
async fn measure(number: usize) -> Window {
    let class = number % CLASSES;
    let features = core::array::from_fn(|index| {
        let is_one = index % CLASSES == class;
        f32::from(u8::from(is_one))
    });
    Window {
        features,
        class: class as u16,
    }
}

/// Measures a window every tenth of a second.
#[embassy_executor::task]
pub async fn sample() {
    let mut ticker = Ticker::every(Duration::from_millis(100));
    for number in 0.. {
        ticker.next().await;
        if QUEUE.is_full() {
            let _oldest = QUEUE.try_receive();
        }
        let _room = QUEUE.try_send(measure(number).await);
    }
}

/// The last windows, to train on.
#[derive(Default)]
pub struct Windows(HistoryBuf<Window, WINDOWS>);

impl Windows {
    /// Takes a window, in the place of the oldest one.
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
        let window = self.0.as_slice().get(index);
        window.map_or(&[], |window| &window.features)
    }

    fn target(&self, index: usize) -> u16 {
        let window = self.0.as_slice().get(index);
        window.map_or(0, |window| window.class)
    }
}
