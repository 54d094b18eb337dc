//! The client on all boards: the device's identity, its ledger, its session, the silence before a
//! message is repeated, and the removal of the first key.

use core::convert::Infallible;

use embassy_futures::yield_now;
use embassy_time::{Instant, Timer};
use embedded_io_async::{Read, Write};
use embedded_storage::nor_flash::{MultiwriteNorFlash, NorFlash};
use smolfed_core::{
    FixedModel, Progress,
    ledger::{Ledger, LedgerNonce},
    provision::{HEADER_BYTES, KEY, Record},
    recipe::MAX_RECIPE_BYTES,
    session::{Clock, Greeter, Memory, Pace, Session},
    train::Workspace,
    wire::round_trip::RoundTrip,
};
use zeroize::Zeroizing;

use crate::{
    recipe::{Model, RECIPE, SCRATCH, model},
    samples::{self, SAMPLES},
};

/// Bytes of a provisioning record without samples.
const RECORD_BYTES: usize = HEADER_BYTES + size_of::<u32>();

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

/// Takes part forever. A blank ledger is created with the nonce, which comes from hardware, and
/// refused without one.
///
/// # Errors
/// Returns the reason if anything is missing or wrong at the start.
pub async fn take_part(
    mut page: impl MultiwriteNorFlash,
    flash: impl NorFlash,
    ledger_nonce: Option<LedgerNonce>,
    nonces: impl Greeter,
    mut line: impl Read + Write,
) -> Result<Infallible, &'static str> {
    let mut bytes = Zeroizing::new([0; RECORD_BYTES]);
    page.read(0, &mut *bytes)
        .map_err(|_| "the record cannot be read")?;
    let record = Record::read(&*bytes).map_err(|_| "no valid record without samples")?;
    let ledger = match ledger_nonce {
        Some(nonce) => Ledger::open_or_create(flash, nonce, record.key),
        None => Ledger::open(flash),
    };
    let ledger = ledger.map_err(|_| "no valid ledger")?;
    forget_first_key(&mut page).map_err(|_| "the first key cannot be overwritten")?;

    let mut samples = samples::buffer();
    let mut global = [0.0; Model::PARAMETERS];
    let (mut local, mut update) = (global, global);
    let memory = Memory {
        global: &mut global,
        work: Workspace {
            local: &mut local,
            update: &mut update,
            order: &mut [0; SAMPLES],
            scratch: &mut [0.0; SCRATCH],
        },
    };
    let session = Session::new(
        record.identity,
        record.policy,
        model(),
        memory,
        ledger,
        nonces,
    );
    let mut session = session.map_err(|_| "the model is too large for the protocol")?;
    // A coordinator with other features refuses the device.
    let mut recipe = [0; MAX_RECIPE_BYTES];
    if let Some(own) = RECIPE {
        session.set_recipe(own.write(&mut recipe));
    }
    let mut pace = Pace::new(RoundTrip::new(PATIENCE_MS));
    loop {
        let driven = session.drive(&mut line, &mut pace, &EmbassyClock);
        if driven.await.is_err() {
            EmbassyClock.wait(PATIENCE_MS).await;
            continue;
        }
        samples::receive(&mut samples);
        // One sample at a time, or the same amount of noise.
        while session.train_some(&samples, 1) == Progress::More {
            // Feed a watchdog here. Other tasks run.
            yield_now().await;
        }
    }
}

/// Overwrites the first chain key in the record, which is not needed once the ledger exists. Goes
/// word by word, so that a start after a power failure continues.
fn forget_first_key<P: MultiwriteNorFlash>(page: &mut P) -> Result<(), P::Error> {
    let mut word = Zeroizing::new([0; size_of::<u32>()]);
    for offset in KEY.step_by(size_of::<u32>()).map(|offset| offset as u32) {
        page.read(offset, &mut *word)?;
        if *word != [0; 4] {
            page.write(offset, &[0; 4])?;
        }
    }
    Ok(())
}
