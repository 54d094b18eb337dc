//! A device that only infers: it fetches signed models over its serial line, asks for newer ones
//! from time to time, and prints the class of each new sensor window.
//!
//! It has no ledger. The key of the publisher is in the firmware, from `SMOLFED_PUBLISHER` at build
//! time: the digits in `publisher.pub`, which `smolfed models publish` writes.

use core::convert::Infallible;

use embedded_storage::nor_flash::NorFlash;
use semihosting::println;
use smolfed_core::{
    delivery::{Accepted, ModelSlots, PublisherKey, Receiver},
    model::{FixedModel, Model},
    predict::{CurrentModel, Predictor},
    provision::Recipient,
    session::Phase,
    wire::message::ModelShape,
};

use crate::{
    board,
    link::Serial,
    nonces::{Nonces, of_this_start},
    refused::Refused,
    sensor::Sense,
};

/// Ticks of silence before the last message is repeated.
const PATIENCE_TICKS: u32 = board::TICKS_PER_SECOND / 2;

/// Ticks after which an idle device asks for a newer version.
const ASK_TICKS: u32 = 600 * board::TICKS_PER_SECOND;

/// Returns the public key of the publisher.
fn publisher() -> Option<PublisherKey> {
    const DIGITS: &[u8] = match option_env!("SMOLFED_PUBLISHER") {
        Some(digits) => digits.as_bytes(),
        None => &[],
    };
    const {
        assert!(
            DIGITS.len() == 64,
            "SMOLFED_PUBLISHER must have the 64 digits of publisher.pub"
        );
    }
    let value = |digit: u8| (digit as char).to_digit(16).map(|value| value as u8);
    let mut key = [0; 32];
    for (byte, [high, low]) in key.iter_mut().zip(DIGITS.as_chunks().0) {
        *byte = value(*high)? << 4 | value(*low)?;
    }
    PublisherKey::new(&key)
}

/// Infers forever, with a model of `P` parameters on the `D` features of the sensor `S`.
///
/// # Errors
/// Returns the reason if anything is missing or wrong at the start.
#[expect(unsafe_code, reason = "the serial line has one owner")]
pub fn run<M, S, F, const P: usize, const D: usize, const C: usize>(
    model: &M,
    starts: F,
    models: F,
) -> Result<Infallible, Refused>
where
    M: FixedModel<Target = u16> + Model,
    S: Sense<Value = f32>,
    F: NorFlash,
{
    let recipient = Recipient::read(board::provisioning()).map_err(|_| Refused::Record)?;
    let accepted = Accepted {
        publisher: publisher().ok_or(Refused::Model)?,
        shape: ModelShape::of(model).ok_or(Refused::Model)?,
        recipe: S::RECIPE,
    };
    let nonces = of_this_start(starts).map_err(|_| Refused::Starts)?;
    let slots = ModelSlots::open(models, accepted).map_err(|_| Refused::Model)?;
    let mut sensor = S::new(C as u16, 0);
    let mut receiver = Receiver::new(recipient.device, recipient.chain, nonces, slots);
    let (mut parameters, mut loaded) = ([0.0; P], None);
    board::start();
    // SAFETY: this function never returns, so it takes the line only once.
    let mut line = unsafe { Serial::new() };
    let (mut sent_at, mut measured_at, mut windows) = (0, 0, 0);
    receiver.reconnect();
    loop {
        let now = board::ticks();
        // A board's line does not fail.
        if receiver.exchange(&mut line).unwrap_or(false) {
            sent_at = now;
        }
        if loaded != Some(receiver.version()) {
            loaded = load(&mut receiver, &mut parameters);
        }
        let (is_idle, silence) = (receiver.phase() == Phase::Idle, now.wrapping_sub(sent_at));
        if !is_idle && silence >= PATIENCE_TICKS {
            receiver.timeout();
            sent_at = now;
            continue;
        }
        if is_idle && silence >= ASK_TICKS {
            // An offer may have been lost, or the flash may have failed.
            receiver.ask();
            sent_at = now;
            continue;
        }
        if now != measured_at {
            let mut window = [0.0; D];
            if sensor.measure(&mut window).is_some() {
                // Without a version, the parameters may be those of no model.
                let version = loaded.filter(|version| *version > 0);
                let current =
                    version.and_then(|version| CurrentModel::new(version, model, &parameters).ok());
                current.and_then(|current| classify::<M, C>(&current, &window, windows));
                windows += 1;
            }
            measured_at = now;
        }
        board::sleep_unless(|| line.has_received());
    }
}

/// Loads the model, prints its version, and returns it: 0 without a model, `None` if the flash
/// fails.
fn load<F: NorFlash>(receiver: &mut Receiver<F, Nonces>, parameters: &mut [f32]) -> Option<u32> {
    match receiver.load(parameters) {
        Ok(Some(version)) => {
            println!("loaded version {version}");
            Some(version)
        }
        Ok(None) => {
            println!("no model is installed");
            Some(0)
        }
        Err(_) => {
            println!("the flash of the models fails");
            None
        }
    }
}

/// Prints the class of a window, and its probability.
fn classify<M, const C: usize>(
    model: &CurrentModel<'_, M>,
    window: &[f32],
    number: u32,
) -> Option<()>
where
    M: Predictor<Feature = f32, Score = f32, Prediction = u16>,
{
    let mut scores = [0.0; C];
    let class = model.predict(window, &mut [], &mut scores).ok()?;
    model.probabilities_in_place(&mut scores);
    let confidence = scores.get(usize::from(class)).copied()?;
    let (percent, bits) = ((100.0 * confidence) as u32, confidence.to_bits());
    let version = model.round();
    println!("window {number}: class {class}, {percent} % ({bits:08x}), version {version}");
    Some(())
}
