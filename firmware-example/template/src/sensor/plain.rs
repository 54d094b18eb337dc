//! The sensor (a simulated one) and its class labels: put yours in [`sample`].

use embassy_time::{Duration, Ticker};

use crate::{
    recipe::{CLASSES, FEATURES, ONE, Value},
    samples,
};

/// Your sensor: read it here, scale the values by public constants as the experiment does, and set
/// the class. This one is simulated: it sees the classes in turn.
#[embassy_executor::task]
pub async fn sample() {
    let mut ticker = Ticker::every(Duration::from_millis(100));
    for number in 0.. {
        ticker.next().await;
        let class = number % CLASSES;
        let features: [Value; FEATURES] = core::array::from_fn(|index| {
            let is_one = index % CLASSES == class;
            if is_one { ONE } else { Value::default() }
        });
        samples::send(features, class as u16);
    }
}
