//! A client on a board: takes part in a federation over its serial line, and sleeps in between.
//!
//! Who it is and what it agrees to stands in its provisioning record. It trains on the record's
//! samples, or on the last windows of its sensor.
#![no_std]
#![no_main]

use core::ffi::CStr;

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;
use smolfed_core::{
    ledger::Ledger,
    model::{Const, FixedModel, Softmax},
    provision::Record,
    session::{Memory, Phase, Session},
    train::Workspace,
};
use smolfed_firmware::{
    board,
    client::{CLASSES, FEATURES, LocalData, MOST_SAMPLES},
    host::{HostFlash, give_up},
    link::{RECEIVED, Serial},
    nonces,
    sensor::{Sensor, Windows},
};

type Model = Softmax<Const<FEATURES>, Const<CLASSES>>;
const PARAMETERS: usize = Model::PARAMETERS;

/// Silence after which the last message is repeated.
const PATIENCE_TICKS: u32 = board::TICKS_PER_SECOND / 2;

#[entry]
fn main() -> ! {
    match run() {
        Ok(never) => match never {},
        Err(why) => give_up(why),
    }
}

fn run() -> Result<core::convert::Infallible, &'static CStr> {
    let record = Record::read(board::provisioning())
        .map_err(|_| c"refused: there is no valid provisioning record")?;
    let flash = |part| HostFlash::open(part).map_err(|_| c"refused: the flash's file");
    let ledger = Ledger::open_or_create(flash(0)?).map_err(|_| c"refused: the ledger")?;
    #[cfg(board = "microbit")]
    let nonces = nonces::Hardware;
    #[cfg(not(board = "microbit"))]
    let nonces = nonces::of_this_start(flash(1)?, &record.identity)
        .map_err(|_| c"refused: the counter of starts")?;

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
