//! The client: its model, its data, and its loop.

use core::convert::Infallible;
use core::ffi::CStr;

use embedded_storage::nor_flash::NorFlash;
use smolfed_core::{
    model::{Const, FixedModel, Softmax},
    provision::{Record, Stored, StoredSamples},
    samples::Samples,
    session::{Memory, Phase, Session},
    train::Workspace,
};

use crate::{
    board,
    link::{RECEIVED, Serial},
    nonces::{self, Nonces},
    sensor::{Sensor, Windows},
};

/// Features of the model: `SMOLFED_FEATURES` when the firmware is built.
pub const FEATURES: usize = number(env!("SMOLFED_FEATURES"));

/// Classes of the model: `SMOLFED_CLASSES` when the firmware is built.
pub const CLASSES: usize = number(env!("SMOLFED_CLASSES"));

/// Samples of the record that are used, at most: four bytes of RAM each.
pub const MAX_SAMPLES: usize = 64;

/// Windows of the sensor that are kept: `boards.rs`.
pub const WINDOWS: usize = number(env!("SMOLFED_WINDOWS"));

type Model = Softmax<Const<FEATURES>, Const<CLASSES>>;
const PARAMETERS: usize = Model::PARAMETERS;

/// Silence after which the last message is repeated.
const PATIENCE_TICKS: u32 = board::TICKS_PER_SECOND / 2;

/// Takes part forever, with the ledger and the count of starts on these pieces of flash.
///
/// # Errors
/// What is missing or wrong at the start; the device then must not take part.
pub fn run<F: NorFlash>(ledger: F, starts: F) -> Result<Infallible, &'static CStr> {
    let mut windows = Windows::new();
    let mut local = local_data(&mut windows);
    let (data, sensor) = local.as_mut().map_err(|why| *why)?;
    let mut vectors = Vectors::new();
    let mut session = open(ledger, starts, &mut vectors);
    // Both where they are: moved out, they would be in RAM twice.
    let session = session.as_mut().map_err(|why| *why)?;

    board::start();
    session.timeout();
    let (mut sent_at, mut measured_at) = (0, 0);
    loop {
        let now = board::ticks();
        // The line of a board does not fail.
        if session.exchange(&mut Serial).unwrap_or(false) {
            sent_at = now;
        }
        if session.phase() == Phase::Training {
            session.train(data);
            continue;
        }
        if now.wrapping_sub(sent_at) >= PATIENCE_TICKS {
            session.timeout();
            sent_at = now;
            continue;
        }
        if now != measured_at {
            data.measure(sensor);
            measured_at = now;
        }
        board::sleep_unless(|| !RECEIVED.is_empty());
    }
}

/// What training needs: three vectors, the order of the samples, and scores.
struct Vectors {
    global: [f32; PARAMETERS],
    local: [f32; PARAMETERS],
    update: [f32; PARAMETERS],
    order: [u32; MAX_SAMPLES],
    scratch: [f32; CLASSES],
}

impl Vectors {
    const fn new() -> Self {
        Self {
            global: [0.0; PARAMETERS],
            local: [0.0; PARAMETERS],
            update: [0.0; PARAMETERS],
            order: [0; MAX_SAMPLES],
            scratch: [0.0; CLASSES],
        }
    }

    const fn memory(&mut self) -> Memory<'_> {
        Memory {
            global: &mut self.global,
            work: Workspace {
                local: &mut self.local,
                update: &mut self.update,
                order: &mut self.order,
                scratch: &mut self.scratch,
            },
        }
    }
}

/// What is wrong with a provisioning page.
const NO_RECORD: &CStr = c"refused: there is no valid provisioning record";

/// What is wrong with the flash of the ledger.
const NO_LEDGER: &CStr = c"refused: there is no valid ledger";

/// The data to train on, and the sensor that adds to it.
#[inline(never)]
fn local_data(
    windows: &mut Windows<FEATURES, WINDOWS>,
) -> Result<(LocalData<'_>, Sensor), &'static CStr> {
    let record = Record::read(board::provisioning()).map_err(|_| NO_RECORD)?;
    let data =
        LocalData::new(&record.samples, windows).ok_or(c"refused: samples for another model")?;
    Ok((data, Sensor::new(CLASSES as u16, record.identity.device)))
}

/// A session of the device that the provisioning record names, or what is missing for one.
///
/// A separate function, so that what only the start needs leaves the stack.
#[inline(never)]
fn open<F: NorFlash>(
    ledger: F,
    starts: F,
    vectors: &mut Vectors,
) -> Result<Session<'_, Model, F, Nonces>, &'static CStr> {
    let record = Record::read(board::provisioning()).map_err(|_| NO_RECORD)?;
    let ledger = nonces::ledger(ledger).map_err(|_| NO_LEDGER)?;
    let nonces = nonces::of_this_start(starts).map_err(|_| c"refused: the count of starts")?;
    Session::new(
        record.identity,
        record.policy,
        Softmax::new(Const, Const),
        vectors.memory(),
        ledger,
        nonces,
    )
    .map_err(|_| c"refused: the model is too large for the protocol")
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
    /// The record's samples, or windows where it has none; `None` if the samples do not fit the
    /// model.
    pub fn new(stored: &Stored<'a>, windows: &'a mut Windows<FEATURES, WINDOWS>) -> Option<Self> {
        if stored.is_empty() {
            return Some(Self::Measured(windows));
        }
        if stored.feature_count() != FEATURES || stored.len() > MAX_SAMPLES {
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
