//! The client: its model, its data, and its loop.

use core::convert::Infallible;
use core::ffi::CStr;

use embedded_storage::nor_flash::NorFlash;
use smolfed_core::{
    ledger::Ledger,
    model::{Const, FixedModel, Softmax},
    provision::{Record, Stored, StoredSamples},
    samples::Samples,
    session::{Memory, Phase, Session},
    train::Workspace,
};

use crate::{
    board,
    link::{RECEIVED, Serial},
    nonces,
    sensor::{Sensor, Windows},
};

/// Features of the model: `SMOLFED_FEATURES` when the firmware is built.
pub const FEATURES: usize = number(env!("SMOLFED_FEATURES"));

/// Classes of the model: `SMOLFED_CLASSES` when the firmware is built.
pub const CLASSES: usize = number(env!("SMOLFED_CLASSES"));

/// Samples of the record that are used at most, four bytes of RAM each.
pub const MOST_SAMPLES: usize = 64;

/// Windows of the sensor that are kept.
pub const WINDOWS: usize = if cfg!(board = "microbit") { 6 } else { 32 };

type Model = Softmax<Const<FEATURES>, Const<CLASSES>>;
const PARAMETERS: usize = Model::PARAMETERS;

/// Silence after which the last message is repeated.
const PATIENCE_TICKS: u32 = board::TICKS_PER_SECOND / 2;

/// Takes part for ever, with the ledger and the count of starts on these pieces of flash.
///
/// # Errors
/// What is missing or wrong at the start; the device then must not take part.
pub fn run<F: NorFlash>(ledger: F, starts: F) -> Result<Infallible, &'static CStr> {
    let record = Record::read(board::provisioning())
        .map_err(|_| c"refused: there is no valid provisioning record")?;
    let ledger = Ledger::open_or_create(ledger).map_err(|_| c"refused: the ledger")?;
    let nonces = nonces::of_this_start(starts, &record.identity)
        .map_err(|_| c"refused: the count of starts")?;

    let mut sensor = Sensor::new(CLASSES as u16, record.identity.device);
    let mut windows = Windows::new();
    let mut data = LocalData::new(&record.samples, &mut windows)
        .ok_or(c"refused: samples for another model")?;
    let memory = Memory {
        global: &mut [0.0; PARAMETERS],
        work: Workspace {
            local: &mut [0.0; PARAMETERS],
            update: &mut [0.0; PARAMETERS],
            order: &mut [0; MOST_SAMPLES],
            scratch: &mut [0.0; CLASSES],
        },
    };
    let model = Softmax::new(Const, Const);
    let mut session: Option<Session<'_, Model, _, _>> = Session::new(
        record.identity,
        record.policy,
        model,
        memory,
        ledger,
        nonces,
    );
    // Where it is: moved out of the option, it would be in RAM twice.
    let session = session
        .as_mut()
        .ok_or(c"refused: the model is too large for the protocol")?;

    board::start();
    session.timeout();
    let (mut spoke_at, mut measured_at) = (0, 0);
    loop {
        let now = board::ticks();
        // The line of a board does not fail.
        if session.exchange(&mut Serial).unwrap_or(false) {
            spoke_at = now;
        }
        if session.phase() == Phase::Training {
            session.train(&data);
            continue;
        }
        if now.wrapping_sub(spoke_at) >= PATIENCE_TICKS {
            session.timeout();
            spoke_at = now;
            continue;
        }
        if now != measured_at {
            data.measure(&mut sensor);
            measured_at = now;
        }
        board::sleep_unless(|| !RECEIVED.is_empty());
    }
}

/// A number in the environment of the build; anything else does not compile.
#[expect(clippy::panic, reason = "while compiling only")]
const fn number(text: &str) -> usize {
    match usize::from_str_radix(text, 10) {
        Ok(number) if number > 0 => number,
        _ => panic!("SMOLFED_FEATURES and SMOLFED_CLASSES must be positive numbers"),
    }
}

/// What the device trains on. One type for both, so that the training is in the flash once.
pub enum LocalData<'a> {
    /// The samples of the provisioning record.
    Stored(StoredSamples<'a, u16>),
    /// The last windows of the sensor.
    Measured(&'a mut Windows<FEATURES, WINDOWS>),
}

impl<'a> LocalData<'a> {
    /// The record's samples, or windows where it has none; `None` if the samples do not fit the model.
    pub fn new(stored: &Stored<'a>, windows: &'a mut Windows<FEATURES, WINDOWS>) -> Option<Self> {
        if stored.is_empty() {
            return Some(Self::Measured(windows));
        }
        if stored.feature_count() != FEATURES || stored.len() > MOST_SAMPLES {
            return None;
        }
        stored.in_place().ok().map(Self::Stored)
    }

    /// Takes the next window of the sensor, if that is what is trained on.
    pub fn measure(&mut self, sensor: &mut Sensor) {
        if let Self::Measured(windows) = self {
            windows.measure(sensor);
        }
    }
}

impl Samples for LocalData<'_> {
    type Target = u16;

    fn len(&self) -> usize {
        match self {
            Self::Stored(samples) => samples.len(),
            Self::Measured(windows) => windows.len(),
        }
    }

    fn features(&self, index: usize) -> &[f32] {
        match self {
            Self::Stored(samples) => samples.features(index),
            Self::Measured(windows) => windows.features(index),
        }
    }

    fn target(&self, index: usize) -> u16 {
        match self {
            Self::Stored(samples) => samples.target(index),
            Self::Measured(windows) => windows.target(index),
        }
    }
}
