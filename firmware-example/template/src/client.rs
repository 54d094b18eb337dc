//! What is the same on every board: who the device is, in what it took part, and its session.

use core::convert::Infallible;

use embassy_futures::yield_now;
use embassy_time::{Duration, Timer};
use embedded_io_async::{Read, Write};
use embedded_storage::nor_flash::{MultiwriteNorFlash, NorFlash};
use smolfed_core::{
    Const, FixedModel, Progress, Softmax,
    ledger::{Ledger, LedgerNonce},
    provision::{HEADER_BYTES, KEY, Record},
    session::{Greeter, Memory, Session},
    train::Workspace,
};
use zeroize::Zeroizing;

use crate::sensor::{CLASSES, FEATURES, QUEUE, WINDOWS, Windows};

/// As in the experiment.
type Model = Softmax<Const<FEATURES>, Const<CLASSES>>;

/// Bytes of a provisioning record without samples.
const RECORD_BYTES: usize = HEADER_BYTES + size_of::<u32>();

/// Silence after which the last message is repeated.
const PATIENCE: Duration = Duration::from_millis(500);

/// Takes part forever. A blank ledger is created with the nonce, which comes from hardware.
///
/// # Errors
/// What is missing or wrong at the start.
pub async fn take_part(
    mut page: impl MultiwriteNorFlash,
    flash: impl NorFlash,
    ledger_nonce: LedgerNonce,
    nonces: impl Greeter,
    mut line: impl Read + Write,
) -> Result<Infallible, &'static str> {
    let mut bytes = Zeroizing::new([0; RECORD_BYTES]);
    page.read(0, &mut *bytes)
        .map_err(|_| "the record cannot be read")?;
    let record = Record::read(&*bytes).map_err(|_| "no valid record without samples")?;
    let ledger = Ledger::open_or_create(flash, ledger_nonce, record.key);
    let ledger = ledger.map_err(|_| "no valid ledger")?;
    forget_first_key(&mut page).map_err(|_| "the first key cannot be overwritten")?;

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
    let session = Session::new(
        record.identity,
        record.policy,
        model,
        memory,
        ledger,
        nonces,
    );
    let mut session = session.map_err(|_| "the model is too large for the protocol")?;
    loop {
        let patience = || Timer::after(PATIENCE);
        if session.drive(&mut line, patience).await.is_err() {
            patience().await;
            continue;
        }
        while let Ok(window) = QUEUE.try_receive() {
            windows.keep(window);
        }
        // A sample at a time, or as much noise.
        while session.train_some(&windows, 1) == Progress::More {
            // Here a watchdog is fed; other tasks run.
            yield_now().await;
        }
    }
}

/// Overwrites the first chain key in the record, which is of no use once the ledger is there: word
/// after word, so that a start after a power failure goes on.
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
