//! A message that a device sends alongside its update, with separate noise: a correlation matrix.
//!
//! Each message is a separate release on its own grid. It is public when [`Messages::send`]
//! returns. Noise is added before any sum, so the server need not be trusted.

use serde::{Deserialize, Serialize};
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::quantize::Grid;
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::train::TrainError;
use smolfed_simd::Words;

/// Range of honest entries, in noise standard deviations: an honest device exceeds it with a
/// probability below e^−2000 per entry.
const NOISE_REACH: f64 = 64.0;

/// How messages are released, configured before the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Messages {
    /// The grid of the entries.
    pub grid: Grid,
    /// The noise that a device adds to each entry, in steps of the grid. `None` for runs without a
    /// guarantee.
    pub noise: Option<DiscreteGaussian>,
    /// The standard deviation of the noise, in steps. 0 without noise.
    pub noise_std: f64,
}

/// A message with its noise, as sent: public.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    integers: Vec<i64>,
}

impl Messages {
    /// Lets a device write a message of `length` integers, and adds the noise of the stream
    /// (CorrelationNoise, number, device). Nothing else uses this stream: a device sends at most
    /// one message in the round that `number` names.
    ///
    /// `write` returns whether all samples are in the message. With noise, this stays secret:
    /// missing samples count as zero.
    ///
    /// # Errors
    /// The errors of `write`. [`TrainError::Diverged`] if samples are missing without noise.
    /// Nothing is sent then.
    pub fn send(
        &self,
        root: &Root,
        number: u32,
        device: u32,
        length: usize,
        write: impl FnOnce(&Grid, &mut [i64]) -> Result<bool, TrainError>,
    ) -> Result<Message, TrainError> {
        let mut integers = vec![0; length];
        let is_whole = write(&self.grid, &mut integers)?;
        let id = StreamId {
            purpose: Purpose::CorrelationNoise,
            round: number,
            device,
        };
        match &self.noise {
            Some(noise) => noise.add_to(&mut integers, &mut Words::new(root, id)),
            None if !is_whole => return Err(TrainError::Diverged),
            None => {}
        }
        Ok(Message { integers })
    }

    /// Returns whether `samples` samples of norm at most the grid's clip norm, with the agreed
    /// noise, can have given a message.
    #[must_use]
    pub fn is_plausible(&self, message: &Message, samples: u32) -> bool {
        let largest = f64::from(samples) * f64::from(self.grid.bits()).exp2();
        let reach = largest + NOISE_REACH * self.noise_std;
        let mut entries = message.integers.iter();
        entries.all(|entry| entry.unsigned_abs() as f64 <= reach)
    }
}

impl Message {
    /// Returns the integers, in steps of the grid.
    #[must_use]
    pub fn integers(&self) -> &[i64] {
        &self.integers
    }

    /// Creates a message that was received, or read from a checkpoint.
    #[must_use]
    pub const fn received(integers: Vec<i64>) -> Self {
        Self { integers }
    }
}

#[cfg(test)]
mod tests {
    use smolfed_core::params::ClipNorm;

    use super::*;

    /// Returns messages on a grid of 64 steps, with noise of std 100 steps or without noise.
    fn messages(has_noise: bool) -> Messages {
        Messages {
            grid: Grid::new(ClipNorm::new(0.5).unwrap(), 6).unwrap(),
            noise: has_noise.then(|| DiscreteGaussian::new(100, 1).unwrap()),
            noise_std: if has_noise { 100.0 } else { 0.0 },
        }
    }

    /// Returns the message of device 7 in round 3, whose samples give 5 and -6.
    fn sent(messages: &Messages, is_whole: bool) -> Result<Message, TrainError> {
        messages.send(&Root::from_seed(1), 3, 7, 2, |_, entries| {
            entries.copy_from_slice(&[5, -6]);
            Ok(is_whole)
        })
    }

    #[test]
    fn samples_that_are_missing_show_only_where_there_is_no_noise() {
        let exact = messages(false);
        assert_eq!(sent(&exact, true).unwrap().integers(), [5, -6]);
        assert_eq!(sent(&exact, false), Err(TrainError::Diverged));
        let noisy = messages(true);
        let message = sent(&noisy, true).unwrap();
        assert_ne!(message.integers(), [5, -6]);
        assert_eq!(sent(&noisy, false), Ok(message));
    }

    /// Three samples give at most 3 * 64 steps. Noise adds at most 64 stds of 100 steps.
    #[test]
    fn a_message_that_no_samples_can_give_is_not_plausible() {
        for (has_noise, largest) in [(false, 192), (true, 6_592)] {
            let messages = messages(has_noise);
            let is_plausible = |entry| {
                let message = Message::received(vec![0, entry]);
                messages.is_plausible(&message, 3)
            };
            assert!(is_plausible(largest) && is_plausible(-largest));
            assert!(!is_plausible(largest + 1) && !is_plausible(-largest - 1));
        }
    }
}
