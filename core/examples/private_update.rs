//! A device's part of a round: train, clip, quantise, add noise, frame. Then the same round again.
//!
//! `cargo run -p smolfed-core --example private_update`

use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};
use smolfed_core::crypto::Key;
use smolfed_core::ledger::{Budget, Limits, MaxJump, Separation};
use smolfed_core::wire::keys::SessionKey;
use smolfed_core::wire::link::{DeviceEnd, Link};
use smolfed_core::wire::message::Message;
use smolfed_core::{
    Client, ClipNorm, Const, FixedModel, Grid, Identity, LearningRate, Ledger, LocalTraining,
    NoiseMultiplier, Release, Root, SampleSlice, Softmax,
};

type Model = Softmax<Const<4>, Const<2>>;
type Device = Client<Model, { Model::PARAMETERS }, 8, { Model::SCRATCH }>;

const LIMITS: Limits = Limits {
    budget: Budget(100),
    separation: Separation::NONE,
    max_jump: MaxJump::DEFAULT,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let samples = SampleSlice::new(&[0.9, 0.1, 0.0, 0.2, 0.1, 0.8, 0.1, 0.3], &[0, 1], 4)?;

    // From the coordinator: round, model and settings. The noise std is twice the clip norm.
    let (round, global) = (7, [0.0; Model::PARAMETERS]);
    let clip_norm = ClipNorm::new(0.3)?;
    let settings = LocalTraining::new(LearningRate::new(0.5)?, clip_norm).with_epochs(5);
    let grid = Grid::new(clip_norm, 16)?;

    // On a device all three secrets are entropy of the hardware, and the flash is flash.
    let mut identity = Identity {
        device: 42,
        root: Root::from_secret([1; 32]),
    };
    let mut ledger = Ledger::create(Flash::erased(), [2; 8], Key::from_secret([3; 32]))?;
    let mut link = Link::<DeviceEnd>::new(SessionKey::from_secret([4; 32]));

    let mut device = Device::new(Softmax::new(Const, Const));
    let participation = ledger.begin(round, &mut identity, &LIMITS)?;
    let trained = device.train(participation, &samples, &global, &settings);
    let noised = trained.noise(&grid, NoiseMultiplier::new(2.0)?)?;
    let values: Vec<i64> = noised.values().collect();
    for chunk in noised.chunks() {
        let frame = link.seal(round, &Message::UpdateChunk(chunk));
        println!("released: {values:?} in {} bytes", frame.as_slice().len());
    }

    let again = ledger.begin(round, &mut identity, &LIMITS);
    println!("again: {}", again.err().ok_or("the round came twice")?);
    Ok(())
}

/// Two pages of flash, in memory: erasing sets bits and writing clears them.
struct Flash([u8; 256]);

impl Flash {
    const fn erased() -> Self {
        Self([0xff; 256])
    }

    fn part(&mut self, from: u32, length: usize) -> Result<&mut [u8], OutOfRange> {
        let from = from as usize;
        self.0.get_mut(from..from + length).ok_or(OutOfRange)
    }
}

#[derive(Debug)]
struct OutOfRange;

impl NorFlashError for OutOfRange {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::OutOfBounds
    }
}

impl ErrorType for Flash {
    type Error = OutOfRange;
}

impl ReadNorFlash for Flash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), OutOfRange> {
        bytes.copy_from_slice(self.part(offset, bytes.len())?);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }
}

impl NorFlash for Flash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 128;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), OutOfRange> {
        self.part(from, (to - from) as usize)?.fill(0xff);
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), OutOfRange> {
        for (cell, byte) in self.part(offset, bytes.len())?.iter_mut().zip(bytes) {
            *cell &= byte;
        }
        Ok(())
    }
}
