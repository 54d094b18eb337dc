//! A device's part of a round: train, clip, quantize, add noise, frame.
//!
//! `cargo run -p smolfed-core --example private_update`

use smolfed_core::wire::keys::SessionKey;
use smolfed_core::wire::link::{DeviceEnd, Link};
use smolfed_core::wire::message::{Message, Packed, UPDATE_CHUNK_BYTES, UpdateChunk};
use smolfed_core::wire::pack;
use smolfed_core::{
    Client, ClipNorm, Const, DiscreteGaussian, FixedModel, Grid, LearningRate, LocalTraining,
    Purpose, Root, SampleSlice, Softmax, StreamId,
};

type Model = Softmax<Const<4>, Const<2>>;
type Device = Client<Model, { Model::PARAMETERS }, 8, { Model::SCRATCH }>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let samples = SampleSlice::new(&[0.9, 0.1, 0.0, 0.2, 0.1, 0.8, 0.1, 0.3], &[0, 1], 4)?;

    // From the coordinator: round, model and settings; the noise std is twice the clip norm.
    let (round, global) = (7, [0.0; Model::PARAMETERS]);
    let clip_norm = ClipNorm::new(0.3)?;
    let settings = LocalTraining::new(LearningRate::new(0.5)?, clip_norm).with_epochs(5);
    let grid = Grid::new(clip_norm, 16)?;
    let noise = DiscreteGaussian::from_multiplier(2 << 32, grid.bits())?;

    // On a device both secrets are entropy of the hardware.
    let root = Root::from_seed(1);
    let mut link = Link::<DeviceEnd>::new(SessionKey::from_secret([3; 32]));
    let id = |purpose| StreamId {
        purpose,
        round,
        device: 42,
    };
    let mut device = Device::new(Softmax::new(Const, Const));
    let mut order = root.stream(id(Purpose::BatchShuffle));
    let report = device.train(&samples, &global, &settings, &mut order)?;
    println!(
        "private: loss {} -> {}",
        report.first_loss, report.last_loss
    );

    let quantizer = device.quantizer(&grid)?;
    let mut update = device.update().map(|x| i64::from(quantizer.get(x)));
    noise.add_to(&mut update, &mut root.stream(id(Purpose::DeviceNoise)));
    let mut bytes = [0; UPDATE_CHUNK_BYTES];
    let width = pack::width(grid.bits(), Some(&noise));
    let length = pack::pack(update.into_iter(), width, &mut bytes).ok_or("too long")?;
    let frame = link.seal(
        round,
        &Message::UpdateChunk(UpdateChunk {
            index: 0,
            negated: false,
            more: false,
            packed: Packed::Bytes(&bytes[..length]),
        }),
    );
    println!("released: {update:?} in {} bytes", frame.as_slice().len());
    Ok(())
}
