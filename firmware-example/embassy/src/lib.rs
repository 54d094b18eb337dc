//! The client on Embassy: one task samples a sensor, another communicates and trains. This file
//! holds the code common to all boards, and `bin/` has a program for each board.
#![no_std]

use core::convert::Infallible;

use embassy_futures::yield_now;
use embassy_time::{Instant, Timer};
use embedded_io_async::{Read, Write};
use embedded_storage_async::nor_flash::{MultiwriteNorFlash, NorFlash};
use smolfed_core::{
    Const, FixedModel, Identity, Progress, Softmax,
    ledger::{Ledger, LedgerNonce},
    provision::{HEADER_BYTES, KEY, Record},
    session::{Clock, Greeter, Memory, Pace, Policy, Session},
    train::Workspace,
    wire::round_trip::RoundTrip,
};
use smolfed_memory as _;
use zeroize::Zeroizing;

pub mod sensor;

use sensor::{CLASSES, FEATURES, QUEUE, WINDOWS, Windows};

type Model = Softmax<Const<FEATURES>, Const<CLASSES>>;

/// Bytes of a provisioning record without samples: this device trains on its own measurements.
const RECORD_BYTES: usize = HEADER_BYTES + size_of::<u32>();

/// Samples per piece of training, or a few entries of the noise. For the duration of a piece, see
/// "Pieces" in `docs/firmware.md`.
const SAMPLES_AT_ONCE: usize = 1;

/// Milliseconds of silence before a message is repeated. Longer round trips are measured.
const PATIENCE_MS: u32 = 500;

/// Embassy's clock.
struct EmbassyClock;

impl Clock for EmbassyClock {
    fn now_ms(&self) -> u32 {
        Instant::now().as_millis() as u32
    }

    async fn wait(&self, ms: u32) {
        Timer::after_millis(ms.into()).await;
    }
}

/// Takes part forever, with the provisioning record in `page` and the ledger in two separate pages.
/// A blank ledger is created with the nonce `fresh`, and refused without one.
///
/// Training and noise run in pieces so that other tasks can run in between, and flash operations
/// are awaited: "With Embassy" in `docs/own-firmware.md`.
///
/// # Errors
/// Returns the reason if anything is missing or wrong at the start. The device must not take part.
pub async fn take_part<F: NorFlash>(
    page: impl MultiwriteNorFlash,
    ledger: F,
    fresh: Option<LedgerNonce>,
    nonces: impl Greeter,
    mut line: impl Read + Write,
) -> Result<Infallible, &'static str> {
    let (identity, policy, ledger) = open(page, ledger, fresh).await?;
    let mut windows = Windows::default();
    let mut global = [0.0; Model::PARAMETERS];
    let (mut local, mut update) = (global, global);
    let memory = Memory {
        global: &mut global,
        work: Workspace {
            local: &mut local,
            update: &mut update,
            order: &mut [0; WINDOWS],
            scratch: &mut [0.0; Model::SCRATCH],
        },
    };
    let model: Model = Softmax::new(Const, Const);
    let session = Session::new(identity, policy, model, memory, ledger, nonces);
    let mut session = session.map_err(|_| "the model is too large for the protocol")?;
    let mut pace = Pace::new(RoundTrip::new(PATIENCE_MS));
    loop {
        let driven = session.drive(&mut line, &mut pace, &EmbassyClock);
        if driven.await.is_err() {
            // A serial line has lost bytes and needs no new connection, so the session continues.
            EmbassyClock.wait(PATIENCE_MS).await;
            continue;
        }
        while let Ok(window) = QUEUE.try_receive() {
            windows.keep(window);
        }
        while session.train_some_async(&windows, SAMPLES_AT_ONCE).await == Progress::More {
            // Feed a watchdog here.
            yield_now().await;
        }
    }
}

/// Opens the device's identity, its policy and its ledger.
async fn open<F: NorFlash>(
    mut page: impl MultiwriteNorFlash,
    flash: F,
    fresh: Option<LedgerNonce>,
) -> Result<(Identity, Policy, Ledger<F>), &'static str> {
    let mut bytes = Zeroizing::new([0; RECORD_BYTES]);
    page.read(0, &mut *bytes)
        .await
        .map_err(|_| "the record cannot be read")?;
    let record = Record::read(&*bytes).map_err(|_| "no valid record without samples")?;
    let ledger = match fresh {
        Some(nonce) => Ledger::open_or_create_async(flash, nonce, record.key).await,
        None => Ledger::open_async(flash).await,
    };
    let ledger = ledger.map_err(|_| "no valid ledger")?;
    let forgotten = forget_first_key(&mut page).await;
    forgotten.map_err(|_| "the first key cannot be overwritten")?;
    Ok((record.identity, record.policy, ledger))
}

/// Overwrites the first chain key in the record, which is not needed once the ledger exists
/// (`docs/provisioning.md`). Goes word by word, so that a start after a power failure continues.
async fn forget_first_key<P: MultiwriteNorFlash>(page: &mut P) -> Result<(), P::Error> {
    let mut word = Zeroizing::new([0; size_of::<u32>()]);
    for offset in KEY.step_by(size_of::<u32>()).map(|offset| offset as u32) {
        page.read(offset, &mut *word).await?;
        if *word != [0; 4] {
            page.write(offset, &[0; 4]).await?;
        }
    }
    Ok(())
}
