//! Same bits: emulated microcontrollers compute the same updates as the simulator.
//!
//! The board runs `firmware-example/src/bin/selftest.rs` with models of compile-time size. The
//! tests use run-time sizes and vectors, as in the simulator, on the same data.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use smolfed_core::clip::clip_l2;
use smolfed_core::contrast::correlation::{self, SumMemory, sum_into};
use smolfed_core::contrast::{self, Augmented, BatchMemory, Objective, Projection, TrainingMemory};
use smolfed_core::features::{Cells, Gradients, Pool};
use smolfed_core::fixed_point::FeatureScale;
use smolfed_core::model::{
    Activation, Encoder, Linear, Logistic, Model, Parametric, Sequential, Softmax,
};
use smolfed_core::personal::{
    Anchor, NoisySteps, StepMemory, descend, descend_released, difference,
};
use smolfed_core::samples::SampleSlice;
use smolfed_core::stream::Purpose;
use smolfed_core::train::{Workspace, local_update};
use smolfed_core::wire::crc32::crc32;

mod backbone;
mod c;
mod fleet;
mod integers;
mod panics;
mod predictions;
mod quantised;
mod rounds;
mod shapes;
mod targets;

#[path = "../firmware-example/src/data.rs"]
mod data;

use data::{
    CLASSES, DATA, EVERY, FEATURES, HIDDEN, IMAGES, LARGE_SETTINGS, PAIRS, ROUNDS, SAMPLES,
    SENSOR_DATA, SEQUENCES, SETTINGS, STEPS, Setting, WIDTH,
};
use windows::{Network, SmallNetwork};

#[path = "../firmware-example/src/network.rs"]
mod windows;

#[path = "../firmware-example/src/features.rs"]
mod features;

#[path = "../firmware-example/boards.rs"]
mod table;

pub(crate) use table::{Board, Qemu};

/// Board for tests that need only one.
pub(crate) const CORTEX_M4F: &str = "mps2-an386";

/// Returns the board with this name.
pub(crate) fn named(name: &str) -> &'static Board {
    let board = table::BOARDS.iter().find(|board| board.name == name);
    board.expect("a board of firmware-example/boards.rs")
}

/// Runs a test on all boards, some in parallel.
pub(crate) fn on_every_board(test: fn(&Board)) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for boards in table::BOARDS.chunks(threads) {
        std::thread::scope(|scope| {
            for board in boards {
                scope.spawn(move || test(board));
            }
        });
    }
}

fn same_bits(board: &Board) {
    let Some((program, qemu)) = firmware(board, "selftest") else {
        return;
    };
    let printed = run(&qemu, &program, &[]);
    assert_eq!(printed, simulated(board), "{}", board.target);
}

/// Runs a program until it ends. Returns its semihosting output.
pub(crate) fn run(qemu: &Qemu, program: &Path, options: &[&str]) -> String {
    let output = Command::new(qemu.program)
        .arg("-machine")
        .args(qemu.machine)
        .args(["-nographic", "-monitor", "none", "-serial", "none"])
        .args(["-semihosting-config", "enable=on,target=native"])
        .args(options)
        .arg("-kernel")
        .arg(program)
        .stdin(Stdio::null())
        .output()
        .expect("QEMU starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{errors}");
    printed.into_owned()
}

/// Builds a program for an emulated board, or prints why not. In CI this is a failure.
pub(crate) fn firmware(board: &Board, name: &str) -> Option<(PathBuf, Qemu)> {
    firmware_with(None, board, name)
}

/// Builds without the default features: a client for central trust only.
pub(crate) const CENTRAL: &str = "central";

/// As [`firmware`], with a feature of the firmware, or [`CENTRAL`].
pub(crate) fn firmware_with(
    feature: Option<&str>,
    board: &Board,
    name: &str,
) -> Option<(PathBuf, Qemu)> {
    // Each has a separate folder, since the programs have the same names.
    let suffix = feature.map(|feature| format!("-{feature}"));
    let suffix = suffix.unwrap_or_default();
    let qemu = board.qemu?;
    let skipped = |why: String| {
        assert!(std::env::var_os("CI").is_none(), "{why}");
        eprintln!("SKIPPED on {}: {why}; ./test installs it", board.target);
        None
    };
    if Command::new(qemu.program)
        .arg("--version")
        .output()
        .is_err()
    {
        return skipped(format!("{} is not installed", qemu.program));
    }
    // Set by `./test` once it has built all programs, possibly with another toolchain.
    if let Some(dir) = std::env::var_os("SMOLFED_FIRMWARE") {
        let mut dir = dir;
        dir.push(&suffix);
        let program = Path::new(&dir)
            .join(board.target)
            .join("release")
            .join(name);
        return if program.exists() {
            Some((program, qemu))
        } else {
            skipped(format!("there is no {}", program.display()))
        };
    }
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = String::from_utf8(sysroot.expect("rustc starts").stdout).expect("UTF-8");
    let library = Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(board.target);
    if !library.exists() {
        return skipped(format!("the library for {} is not installed", board.target));
    }
    // One build at a time: cargo would block anyway, and print this on each line.
    static BUILD: Mutex<()> = Mutex::new(());
    let guard = BUILD.lock();
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../firmware-example");
    let built = feature.map_or("target".to_owned(), |feature| format!("target/{feature}"));
    let output = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--target", board.target])
        .args(match feature {
            Some(CENTRAL) => ["--no-default-features", "--quiet"],
            _ => ["--features", feature.unwrap_or_default()],
        })
        .args(["--target-dir", &built])
        .current_dir(dir)
        // Host flags do not apply to the board.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .expect("cargo starts");
    drop(guard);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let program = Path::new(dir).join(built).join(board.target);
    Some((program.join("release").join(name), qemu))
}

/// Bytes of RAM below which a board cannot hold the larger of the two networks for windows.
const SMALL_RAM: u32 = 32 << 10;

/// Returns the expected output of the board.
fn simulated(board: &Board) -> String {
    let classes = |count| {
        (0..SAMPLES)
            .map(|i| data::class(i, count))
            .collect::<Vec<_>>()
    };
    let values: Vec<f32> = (0..SAMPLES).map(data::value).collect();
    let mut lines = String::new();
    for setting in &SETTINGS {
        lines += &line("linear", &Linear::new(FEATURES), &DATA, &values, setting);
        let logistic = Logistic::new(FEATURES);
        lines += &line("logistic", &logistic, &DATA, &classes(2), setting);
        let softmax = Softmax::new(FEATURES, CLASSES);
        lines += &line("softmax", &softmax, &DATA, &classes(CLASSES), setting);
    }
    lines += &of_windows("windows-small", SmallNetwork::NETWORK, &SETTINGS);
    if board.ram.length >= SMALL_RAM {
        lines += &of_windows("windows", Network::NETWORK, &LARGE_SETTINGS);
    }
    lines += &predictions::lines(scale());
    let classes = classes(CLASSES);
    lines += &(computed_features(&classes) + &every_feature());
    lines += &(image_features() + &steps() + &frozen_backbone(&classes));
    lines += &quantised::line();
    lines += &(pmtl(&classes) + &shared_encoder(&classes) + &contrast(&classes));
    for (name, model) in [("images", &IMAGES), ("sequences", &SEQUENCES)] {
        lines += &network(name, model, &classes);
    }
    lines
}

/// Computes features of the windows of a recording with consecutive rows, as in the simulator.
fn computed_features(classes: &[u16]) -> String {
    let (mut lines, mut all) = (String::new(), Vec::new());
    let mut work = vec![0.0; features::RECIPE.work_count()];
    let mut counts_work = vec![0; features::RECIPE.work_count()];
    for window in 0..SAMPLES {
        let start = window * features::STEP;
        let sample = |channel, step| data::raw_sample(channel, start + step);
        let mut values = vec![0.0; features::COUNT];
        let float = |channel, step| f32::from(sample(channel, step));
        let computed = features::RECIPE.features_into(float, &mut work, &mut values);
        computed.unwrap();
        // As `data.scale` with a deviation: computed in 64 bits, then rounded.
        let scaled = |x: f32| (f64::from(x) / f64::from(features::UNIT)) as f32;
        let values: Vec<f32> = values.into_iter().map(scaled).collect();
        let mut counts = vec![0; features::COUNT];
        let computed = features::RECIPE.counts_into(sample, &mut counts_work, &mut counts);
        computed.unwrap();
        let counts: Vec<i64> = counts.into_iter().map(i64::from).collect();
        lines += &state_line("features", window, &values, &counts);
        all.extend(values);
    }
    let model = Softmax::new(features::COUNT, CLASSES);
    lines + &line("features-softmax", &model, &all, classes, &SETTINGS[0])
}

fn every_feature() -> String {
    let count = features::CHANNELS * EVERY.feature_count();
    let (mut values, mut counts) = (vec![0.0; count], vec![0; count]);
    let float = |channel, step| f32::from(data::raw_sample(channel, step));
    let computed = EVERY.features_into(float, &mut vec![0.0; EVERY.work_count()], &mut values);
    computed.unwrap();
    let work = &mut vec![0; EVERY.work_count()];
    EVERY
        .counts_into(data::raw_sample, work, &mut counts)
        .unwrap();
    let counts: Vec<i64> = counts.into_iter().map(i64::from).collect();
    state_line("features-every", 0, &values, &counts)
}

/// Returns the scale of the firmware's integer features (`client::SCALE`).
fn scale() -> FeatureScale {
    FeatureScale::new::<i8>(6).unwrap()
}

fn image_features() -> String {
    let bits = |features: &[f32]| features.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let signed = |features: &[i8]| {
        let words = features.iter().map(|x| i32::from(*x).cast_unsigned());
        words.collect::<Vec<_>>()
    };
    let both = |first: Vec<u32>, second: Vec<u32>| {
        let first = data::checksum(first.into_iter());
        data::checksum(std::iter::once(first).chain(second))
    };
    let image = |(number, cells): (usize, &Cells)| {
        let pixels = (0..cells.rows() * cells.columns()).map(|at| data::pixel(number, at));
        let pixels: Vec<u8> = pixels.collect();
        let (gradients, pool) = (Gradients::new(*cells), Pool::new(*cells));
        let mut floats = [gradients.feature_count(), pool.feature_count()].map(|n| vec![0.0; n]);
        gradients.features_into([&pixels], &mut floats[0]).unwrap();
        pool.features_into(&pixels, &mut floats[1]).unwrap();
        let mut integers = floats.each_ref().map(|floats| vec![0_i8; floats.len()]);
        let [of_gradients, of_pool] = &mut integers;
        let work = &mut vec![0; of_gradients.len()];
        gradients
            .quantised_into([&pixels], scale(), work, of_gradients)
            .unwrap();
        let work = &mut vec![0; of_pool.len()];
        pool.quantised_into(&pixels, scale(), work, of_pool)
            .unwrap();
        format!(
            "image {number} {:08x} {:08x}\n",
            both(bits(&floats[0]), bits(&floats[1])),
            both(signed(&integers[0]), signed(&integers[1]))
        )
    };
    data::CELLS.iter().enumerate().map(image).collect()
}

fn steps() -> String {
    let (mut floats, mut integers) = (Vec::new(), Vec::new());
    for number in data::NUMBERS {
        let (mut values, mut counts) = (vec![0.0; STEPS.count()], vec![0_i8; STEPS.count()]);
        let value = number as f32 / 1_000.0;
        STEPS
            .features_into(value, &data::BOUNDS, &mut values)
            .unwrap();
        STEPS
            .quantised_into(number, &data::COUNTS, scale(), &mut counts)
            .unwrap();
        floats.extend(values.into_iter().map(f32::to_bits));
        integers.extend(counts.into_iter().map(|x| i32::from(x).cast_unsigned()));
    }
    let (floats, integers) = [floats, integers]
        .map(|x| data::checksum(x.into_iter()))
        .into();
    format!("steps 0 {floats:08x} {integers:08x}\n")
}

fn frozen_backbone(classes: &[u16]) -> String {
    let images = (0..SAMPLES).map(data::image).collect::<Vec<_>>();
    let model = Softmax::new(backbone::frozen::FEATURES, CLASSES);
    let global: Vec<i32> = (0..model.parameter_count()).map(data::weight).collect();
    let training = SETTINGS[0].training().unwrap();
    let order = &mut data::stream(Purpose::BatchShuffle);
    backbone::checksums(&images, classes, (&model, &global), &training, order)
}

/// Memory of local steps with batches too large for a board.
struct Buffers {
    gradient: Vec<f32>,
    order: Vec<u32>,
    scratch: Vec<f32>,
}

impl Buffers {
    fn of(model: &impl Model) -> Self {
        Self {
            gradient: vec![0.0; model.parameter_count()],
            order: vec![0; SAMPLES],
            scratch: vec![0.0; model.scratch_count(8)],
        }
    }

    fn steps(&mut self) -> StepMemory<'_> {
        StepMemory {
            gradient: &mut self.gradient,
            order: &mut self.order,
            scratch: &mut self.scratch,
        }
    }
}

fn pmtl(classes: &[u16]) -> String {
    let model = Softmax::new(FEATURES, CLASSES);
    let samples = SampleSlice::new(&DATA, classes, FEATURES).unwrap();
    let shared: Vec<f32> = (0..model.parameter_count()).map(data::parameter).collect();
    let mut own = shared.clone();
    let mut buffers = Buffers::of(&model);
    let rounds = (0..ROUNDS).map(|round| {
        let anchor = Anchor {
            at: &shared,
            strength: data::pull().unwrap(),
            importance: None,
        };
        let settings = data::personal().unwrap();
        let order = &mut data::stream(Purpose::BatchShuffle);
        let memory = buffers.steps();
        descend(
            &model,
            &samples,
            &mut own,
            Some(&anchor),
            &settings,
            order,
            memory,
        )
        .unwrap();
        let mut update = vec![0.0; own.len()];
        difference(&own, &shared, &mut update);
        let grid = data::grid().unwrap();
        clip_l2(&mut update, grid.clip_norm().get()).unwrap();
        let mut sent = vec![0; own.len()];
        grid.quantize_into(&update, &mut sent).unwrap();
        let sent: Vec<i64> = sent.into_iter().map(i64::from).collect();
        state_line("pmtl", round, &own, &sent)
    });
    rounds.collect()
}

fn shared_encoder(classes: &[u16]) -> String {
    let model = Encoder::new(FEATURES, HIDDEN, CLASSES, Activation::Tanh);
    let samples = SampleSlice::new(&DATA, classes, FEATURES).unwrap();
    let mut own: Vec<f32> = (0..model.parameter_count()).map(data::parameter).collect();
    let mut buffers = Buffers::of(&model);
    let noise = data::step_noise().unwrap();
    let rounds = (0..ROUNDS).map(|round| {
        let mut sent = vec![0; model.encoder_count()];
        let mut steps = NoisySteps {
            grid: data::grid().unwrap(),
            noise: Some(&noise),
            stream: data::stream(Purpose::DeviceNoise),
            sent: &mut sent,
            clipped: 0,
            releases: 0,
        };
        let settings = data::personal().unwrap();
        let order = &mut data::stream(Purpose::BatchShuffle);
        let release = |gradient: &mut [f32]| steps.release(gradient);
        let memory = buffers.steps();
        descend_released(
            &model, &samples, &mut own, &settings, order, memory, release,
        )
        .unwrap();
        state_line("encoder", round, &own, &sent)
    });
    rounds.collect()
}

fn contrast(classes: &[u16]) -> String {
    let encoder = Projection::new(FEATURES, WIDTH);
    let samples = SampleSlice::new(&DATA, classes, FEATURES).unwrap();
    let stream = data::stream(Purpose::Augmentation);
    let mut views = Augmented::new(&samples, data::variations(), PAIRS, stream);
    let mut own: Vec<f32> = (0..FEATURES * WIDTH).map(data::parameter).collect();
    let length = correlation::packed_length(WIDTH);
    let (mut view, mut pair, mut matrix) =
        (vec![0.0; FEATURES], vec![0.0; 2 * WIDTH], vec![0.0; length]);

    let mut sent = vec![0; length];
    let mut memory = SumMemory {
        view: &mut view,
        hidden: &mut [],
        representation: &mut pair[..WIDTH],
        matrix: &mut matrix,
    };
    let noise = data::step_noise().unwrap();
    let mut stream = data::stream(Purpose::CorrelationNoise);
    let noise = Some((&noise, &mut stream));
    let grid = data::grid().unwrap();
    sum_into(&encoder, &own, &views, &grid, noise, &mut memory, &mut sent).unwrap();

    let others: Vec<f32> = (0..length).map(data::parameter).collect();
    let objective = Objective {
        alpha: 0.7,
        others: &others,
        norm_bound: Some(2.0),
    };
    let batch = BatchMemory {
        representations: &mut [0.0; 2 * PAIRS * SAMPLES * WIDTH],
        view: &mut view,
        hidden: &mut [],
        pair: &mut pair,
        matrix: &mut matrix,
        gradient: &mut [0.0; FEATURES * WIDTH],
    };
    let order = &mut data::stream(Purpose::BatchShuffle);
    let settings = data::contrast().unwrap();
    let memory = &mut TrainingMemory {
        order: &mut [0; SAMPLES],
        batch,
    };
    contrast::descend(
        &encoder, &mut own, &mut views, &objective, &settings, order, memory,
    )
    .unwrap();
    state_line("contrast", 0, &own, &sent)
}

fn network(name: &str, network: &Sequential, classes: &[u16]) -> String {
    let samples = SampleSlice::new(&DATA, classes, FEATURES).unwrap();
    let count = network.parameter_count();
    let global: Vec<f32> = (0..count).map(data::parameter).collect();
    let mut update = vec![0.0; count];
    let work = Workspace {
        local: &mut vec![0.0; count],
        update: &mut update,
        order: &mut [0; SAMPLES],
        scratch: &mut vec![0.0; network.scratch_count(8)],
    };
    let order = &mut data::stream(Purpose::BatchShuffle);
    let training = SETTINGS[0].training().unwrap();
    local_update(network, &samples, &global, &training, order, work).unwrap();
    let mut sent = vec![0; count];
    data::grid()
        .unwrap()
        .quantize_into(&update, &mut sent)
        .unwrap();
    let sent: Vec<i64> = sent.into_iter().map(i64::from).collect();
    state_line(name, 0, &update, &sent)
}

/// Trains a network with run-time sizes on sensor windows.
fn of_windows(name: &str, network: &Sequential, settings: &[Setting]) -> String {
    let class = |i| data::class(i, windows::CLASSES.into());
    let classes: Vec<u16> = (0..SAMPLES).map(class).collect();
    let features = &SENSOR_DATA[..network.feature_count() * SAMPLES];
    let lines = settings
        .iter()
        .map(|setting| line(name, network, features, &classes, setting));
    lines.collect()
}

fn state_line(method: &str, round: usize, own: &[f32], sent: &[i64]) -> String {
    let own: Vec<u8> = own.iter().flat_map(|x| x.to_le_bytes()).collect();
    let sent: Vec<u8> = sent.iter().flat_map(|x| x.to_le_bytes()).collect();
    format!(
        "{method} {round} {:08x} {:08x}\n",
        crc32(&own),
        crc32(&sent)
    )
}

fn line<M: Model>(
    name: &str,
    model: &M,
    features: &[f32],
    targets: &[M::Target],
    setting: &Setting,
) -> String
where
    M::Target: Default,
{
    let samples = SampleSlice::new(features, targets, model.feature_count()).unwrap();
    let count = model.parameter_count();
    let global: Vec<f32> = (0..count).map(data::parameter).collect();
    let mut update = vec![0.0; count];
    let work = Workspace {
        local: &mut vec![0.0; count],
        update: &mut update,
        order: &mut [0; SAMPLES],
        // Scores several samples at a time, as on a desktop.
        scratch: &mut vec![0.0; model.scratch_count(8)],
    };
    let order = &mut data::stream(Purpose::BatchShuffle);
    let training = setting.training().unwrap();
    local_update(model, &samples, &global, &training, order, work).unwrap();
    let mut integers = vec![0; count];
    data::grid()
        .unwrap()
        .quantize_into(&update, &mut integers)
        .unwrap();
    let mut sent: Vec<i64> = integers.into_iter().map(i64::from).collect();
    if let Some(noise) = setting.noise().unwrap() {
        noise.add_to(&mut sent, &mut data::stream(Purpose::DeviceNoise));
    }
    let update: Vec<u8> = update.into_iter().flat_map(f32::to_le_bytes).collect();
    let sent: Vec<u8> = sent.into_iter().flat_map(i64::to_le_bytes).collect();
    format!(
        "{name} {} {:08x} {:08x}\n",
        setting.name,
        crc32(&update),
        crc32(&sent)
    )
}

#[test]
fn every_board_computes_the_bits_of_the_simulator() {
    on_every_board(same_bits);
}
