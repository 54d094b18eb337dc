//! The sensor: an 8-bit camera with features of its images. Put yours in [`sample`].

use embassy_time::{Duration, Ticker};

use crate::{
    recipe::{CLASSES, COLUMNS, FEATURES, PLANES, ROWS, Value, features_into},
    samples,
};

/// Your camera: take an image here, in row order, and set its class. This one is simulated: a bar
/// for each class, in turn.
#[embassy_executor::task]
pub async fn sample() {
    let mut planes = [[0; ROWS * COLUMNS]; PLANES];
    let mut ticker = Ticker::every(Duration::from_millis(100));
    for number in 0.. {
        ticker.next().await;
        let class = number % CLASSES;
        for (index, pixel) in planes.as_flattened_mut().iter_mut().enumerate() {
            *pixel = if index / COLUMNS % ROWS == class {
                200
            } else {
                20
            };
        }
        let mut features = [Value::default(); FEATURES];
        if features_into(&planes, &mut features).is_ok() {
            samples::send(features, class as u16);
        }
    }
}
