//! A product that prints the class of each new sensor window, with the device's trained model. It
//! keeps the newest model in flash to continue after a restart, and prints the results of rounds.
//!
//! All its output is for the person at the board and must not leave the board.

use embedded_storage::nor_flash::NorFlash;
use semihosting::println;
use smolfed_core::{
    personal::store::{PersonalStore, StoreError, flash::FlashStore},
    predict::Predictor,
    session::{Outcome, Phase, Trainable},
};

use crate::{
    product::{Device, Product},
    sensor::Sense,
};

/// A monitor of the sensor `S` with windows of `D` values and `C` classes, and flash for its model.
pub struct Monitor<S, G, const D: usize, const C: usize> {
    sensor: S,
    store: FlashStore<G>,
    windows: u32,
    /// Whether the model of the current round is saved.
    is_saved: bool,
    /// The last reported round.
    reported: Option<u32>,
    /// Whether a refusal has been reported.
    is_refused: bool,
}

impl<S: Sense<Value = f32>, G: NorFlash, const D: usize, const C: usize> Monitor<S, G, D, C> {
    /// Creates a monitor without measurements.
    ///
    /// # Errors
    /// [`StoreError`] if the words of the flash do not fit a model.
    pub fn new(flash: G, device: u32) -> Result<Self, StoreError> {
        Ok(Self {
            sensor: S::new(C as u16, device),
            store: FlashStore::new(flash)?,
            windows: 0,
            is_saved: false,
            reported: None,
            is_refused: false,
        })
    }

    /// Measures, and prints the class and its probability if a window is complete.
    fn classify<M, F, K>(&mut self, device: &Device<'_, M, F, K>) -> Option<()>
    where
        M: Trainable + Predictor<Feature = f32, Score = f32, Prediction = u16>,
        F: NorFlash,
        K: PersonalStore,
    {
        let mut window = [0.0; D];
        self.sensor.measure(&mut window)?;
        let number = self.windows;
        self.windows += 1;
        let (model, mut scores) = (device.model()?, [0.0; C]);
        let class = model.predict(&window, &mut [], &mut scores).ok()?;
        model.probabilities_in_place(&mut scores);
        let confidence = scores.get(usize::from(class)).copied()?;
        let (percent, bits) = ((100.0 * confidence) as u32, confidence.to_bits());
        let round = model.round();
        println!(
            "window {number}: class {class}, {percent} % ({bits:08x}), model of round {round}"
        );
        Some(())
    }

    /// Prints the reason for the coordinator's refusal, once.
    fn report_refusal<M: Trainable, F, K>(&mut self, device: &Device<'_, M, F, K>)
    where
        F: NorFlash,
        K: PersonalStore,
    {
        let before = self.is_refused;
        let Phase::Refused(why) = device.phase() else {
            self.is_refused = false;
            return;
        };
        self.is_refused = true;
        if before {
            return;
        }
        println!("refused by the coordinator: {why}");
        #[cfg(feature = "reports")]
        if let Some(experiment) = device.experiment() {
            println!("  the experiment has: {experiment}");
        }
    }

    /// Prints the result of the last round, once.
    fn report<M: Trainable, F, K>(&mut self, device: &Device<'_, M, F, K>) -> Option<()>
    where
        F: NorFlash,
        K: PersonalStore,
    {
        let last = device.last_round()?;
        let round = last.round;
        if self.reported.replace(round) == Some(round) {
            return None;
        }
        match last.outcome {
            Outcome::Updated => println!("round {round}: updated"),
            Outcome::Zero(why) => println!("round {round}: an update of zeros: {why:?}"),
            Outcome::Declined(why) => println!("round {round}: declined: {why:?}"),
        }
        #[cfg(feature = "reports")]
        {
            let training = &last.training;
            let thousandths = |value: f32| (1_000.0 * value) as u32;
            println!(
                "  loss {} and {}, norm {} (all in thousandths), {} of {} steps clipped",
                thousandths(training.first_loss),
                thousandths(training.last_loss),
                thousandths(training.norm),
                training.clipped_steps,
                training.clipping_chances,
            );
        }
        Some(())
    }
}

impl<M, F, K, S, G, const D: usize, const C: usize> Product<M, F, K> for Monitor<S, G, D, C>
where
    M: Trainable + Predictor<Feature = f32, Score = f32, Prediction = u16>,
    F: NorFlash,
    K: PersonalStore,
    S: Sense<Value = f32>,
    G: NorFlash,
{
    fn starts(&mut self, device: &mut Device<'_, M, F, K>) {
        match device.restore_model(&mut self.store) {
            Ok(Some(round)) => println!("restored the model of round {round}"),
            Ok(None) => println!("no model is saved"),
            Err(_) => println!("the flash of the model fails"),
        }
    }

    fn trains(&mut self, device: &Device<'_, M, F, K>) {
        if !self.is_saved && device.save_model(&mut self.store).is_err() {
            println!("the model is not saved");
        }
        self.is_saved = true;
    }

    fn rests(&mut self, _: &Device<'_, M, F, K>) {
        self.is_saved = false;
    }

    fn idle(&mut self, device: &Device<'_, M, F, K>) {
        self.report_refusal(device);
        self.report(device);
        self.classify(device);
    }
}
