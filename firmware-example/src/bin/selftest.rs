//! Computes local updates on the board and prints checksums of their bits, to be compared with the
//! simulator's on the host (`tests/boards.rs`).
//!
//! A line each: model, setting, CRC-32 of the update's `f32`, CRC-32 of what would be sent, `i64`.
#![no_std]
#![no_main]

use semihosting::{eprintln, println, process::ExitCode};
use smolfed_core::{
    client::Client,
    model::{Const, FixedModel, Linear, Logistic, Softmax},
    samples::SampleSlice,
    stream::Purpose,
    wire::crc32::crc32,
};

use smolfed_firmware::data::{self, CLASSES, DATA, FEATURES, SAMPLES, SETTINGS, Setting};

#[cfg(target_arch = "arm")]
use cortex_m_rt::entry;
#[cfg(target_arch = "riscv32")]
use riscv_rt::entry;

#[entry]
fn main() -> ! {
    let code = match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("refused: {what}");
            ExitCode::FAILURE
        }
    };
    code.exit_process()
}

fn run() -> Result<(), &'static str> {
    let classes = |count| core::array::from_fn(|i| data::class(i, count));
    for setting in &SETTINGS {
        let linear = Linear::new(Const::<FEATURES>);
        print::<_, { FEATURES + 1 }, 1>(
            "linear",
            linear,
            &core::array::from_fn(data::value),
            setting,
        )?;
        let logistic = Logistic::new(Const::<FEATURES>);
        print::<_, { FEATURES + 1 }, 1>("logistic", logistic, &classes(2), setting)?;
        let softmax = Softmax::new(Const::<FEATURES>, Const::<CLASSES>);
        print::<_, { (FEATURES + 1) * CLASSES }, CLASSES>(
            "softmax",
            softmax,
            &classes(CLASSES),
            setting,
        )?;
    }
    Ok(())
}

fn print<M: FixedModel, const P: usize, const B: usize>(
    name: &str,
    model: M,
    targets: &[M::Target; SAMPLES],
    setting: &Setting,
) -> Result<(), &'static str>
where
    M::Target: Default,
{
    let mut client: Client<M, P, SAMPLES, B> = Client::new(model);
    let samples = SampleSlice::new(&DATA, targets, FEATURES).map_err(|_| "the samples")?;
    let global = core::array::from_fn(data::parameter);
    let order = &mut data::stream(Purpose::BatchShuffle);
    client
        .train(&samples, &global, &setting.training()?, order)
        .map_err(|_| "training")?;
    let quantizer = client.quantizer(&data::grid()?).map_err(|_| "the update")?;
    let mut integers = client.update().map(|x| i64::from(quantizer.get(x)));
    if let Some(noise) = setting.noise()? {
        noise.add_to(&mut integers, &mut data::stream(Purpose::DeviceNoise));
    }
    let update = client.update().map(f32::to_le_bytes);
    let sent = integers.map(i64::to_le_bytes);
    let (update, sent) = (crc32(update.as_flattened()), crc32(sent.as_flattened()));
    println!("{name} {} {update:08x} {sent:08x}", setting.name);
    Ok(())
}
