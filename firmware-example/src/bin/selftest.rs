//! Computes local updates on the board and prints checksums of their bits, for comparison with the
//! simulator on the host (`tests/boards.rs`).
//!
//! Each line has: model, setting, CRC-32 of the update's `f32`, CRC-32 of the `i64` to be sent.
//! For window features: name, window, CRC-32 of the `f32`, CRC-32 of the integers as `i64`.
//! For fixed features of images and numbers: name, number, checksum of the `f32`, checksum of the
//! integers.
//! For the frozen backbone: name, number, CRC-32 of the features of all images, CRC-32 of the `i32`
//! of the update of a head in integers.
//! For a network in 8 bits: name, number, checksum of the scores of all images, checksum of their
//! classes and probabilities.
//! For predictions: model, checksum of the scores of all samples, checksum of their predictions and
//! probabilities.
//! For personal models: method, round, CRC-32 of the kept parameters, CRC-32 of the update.
#![no_std]
#![no_main]

use semihosting::{eprintln, println, process::ExitCode};
use smolfed_core::{
    client::Client,
    clip::clip_l2,
    contrast::{
        self, Augmented, BatchMemory, Objective, Projection, TrainingMemory,
        correlation::{self, SumMemory, sum_into},
    },
    features::{Cells, DIRECTIONS, Gradients, Pool},
    fixed_point::{self, FixedPointSlice, FixedPointWork, round_feature},
    model::{Activation, Const, Encoder, Fixed, FixedModel, Linear, Logistic, Sequential, Softmax},
    personal::{Anchor, NoisySteps, StepMemory, descend, descend_released, difference},
    predict::{CurrentModel, Predictor},
    quantised::probabilities_in_place,
    samples::SampleSlice,
    session::FixedPoint,
    stream::Purpose,
    train::{Workspace, local_update},
    wire::crc32::crc32,
};

use smolfed_firmware::{
    backbone, client,
    data::{
        self, BOUNDS, CELLS, CLASSES, COUNTS, DATA, EVERY, FEATURES, HIDDEN, IMAGES, LARGEST_IMAGE,
        NUMBERS, PAIRS, ROUNDS, SAMPLES, SENSOR_DATA, SEQUENCES, SETTINGS, STEPS, Setting, WIDTH,
    },
    features::{CHANNELS, COUNT, LENGTH, STEP},
    network::{self, SmallNetwork},
    quantised::{CLASSES as DIGITS, INPUT, NETWORK, SCRATCH},
    ring::Ring,
};
#[cfg(not(small_ram))]
use smolfed_firmware::{data::LARGE_SETTINGS, network::Network};

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
        let values = core::array::from_fn(data::value);
        print::<_, { FEATURES + 1 }, 1>("linear", linear, &DATA, &values, setting)?;
        let logistic = Logistic::new(Const::<FEATURES>);
        print::<_, { FEATURES + 1 }, 1>("logistic", logistic, &DATA, &classes(2), setting)?;
        let softmax = Softmax::new(Const::<FEATURES>, Const::<CLASSES>);
        print::<_, { (FEATURES + 1) * CLASSES }, CLASSES>(
            "softmax",
            softmax,
            &DATA,
            &classes(CLASSES),
            setting,
        )?;
    }
    windows::<SmallNetwork, { SmallNetwork::PARAMETERS }, { SmallNetwork::SCRATCH }>(
        "windows-small",
        Fixed::new(),
        &SETTINGS,
    )?;
    #[cfg(not(small_ram))]
    windows::<Network, { Network::PARAMETERS }, { Network::SCRATCH }>(
        "windows",
        Fixed::new(),
        &LARGE_SETTINGS,
    )?;
    predictions()?;
    features()?;
    every_feature()?;
    for number in 0..CELLS.len() {
        image(number)?;
    }
    steps()?;
    backbone()?;
    quantised()?;
    pmtl()?;
    shared_encoder()?;
    contrast()?;
    const CONVOLUTIONS: [usize; 2] = [IMAGES.parameter_count(), IMAGES.sample_scratch_count()];
    network::<{ CONVOLUTIONS[0] }, { CONVOLUTIONS[1] }>("images", &IMAGES)?;
    const RECURRENT: [usize; 2] = [
        SEQUENCES.parameter_count(),
        SEQUENCES.sample_scratch_count(),
    ];
    network::<{ RECURRENT[0] }, { RECURRENT[1] }>("sequences", &SEQUENCES)
}

/// Predicts the samples with models in `f32` and in integers.
#[inline(never)]
fn predictions() -> Result<(), &'static str> {
    const COUNT: usize = (FEATURES + 1) * CLASSES;
    let numbers: [f32; COUNT] = core::array::from_fn(data::parameter);
    let words: [f32; COUNT] =
        core::array::from_fn(|i| f32::from_bits(data::weight(i).cast_unsigned()));
    let integers = DATA.map(|x| round_feature::<i8>(x, client::SCALE).0);
    const ONE: usize = FEATURES + 1;
    predict::<_, 1>(
        "linear",
        &Linear::new(Const::<FEATURES>),
        &numbers[..ONE],
        &DATA,
    )?;
    predict::<_, 1>(
        "logistic",
        &Logistic::new(Const::<FEATURES>),
        &numbers[..ONE],
        &DATA,
    )?;
    let softmax = Softmax::new(Const::<FEATURES>, Const::<CLASSES>);
    predict::<_, CLASSES>("softmax", &softmax, &numbers, &DATA)?;
    let fixed = FixedPoint::<_, i8>::new(Linear::new(Const::<FEATURES>), client::SCALE);
    predict::<_, 1>("linear-integer", &fixed, &words[..ONE], &integers)?;
    let fixed = FixedPoint::<_, i8>::new(Logistic::new(Const::<FEATURES>), client::SCALE);
    predict::<_, 1>("logistic-integer", &fixed, &words[..ONE], &integers)?;
    let fixed = FixedPoint::<_, i8>::new(softmax, client::SCALE);
    predict::<_, CLASSES>("softmax-integer", &fixed, &words, &integers)
}

/// Prints the scores, predictions and probabilities of a model.
#[inline(never)]
fn predict<M, const C: usize>(
    name: &str,
    model: &M,
    parameters: &[f32],
    features: &[M::Feature],
) -> Result<(), &'static str>
where
    M: Predictor<Score: data::Word, Prediction: data::Word>,
{
    use data::Word;
    let current = CurrentModel::new(7, model, parameters).map_err(|_| "the parameters")?;
    let (mut scored, mut said) = (0, 0);
    for features in features.chunks_exact(FEATURES) {
        let mut scores = [M::Score::default(); C];
        let predicted = current.predict(features, &mut [], &mut scores);
        let predicted = predicted.map_err(|_| "a prediction")?;
        scored = data::checksum([scored].into_iter().chain(scores.map(Word::word)));
        current.probabilities_in_place(&mut scores);
        let words = [said, predicted.word()].into_iter();
        said = data::checksum(words.chain(scores.map(Word::word)));
    }
    println!("predicted {name} {scored:08x} {said:08x}");
    Ok(())
}

/// Computes window features from a ring buffer, and trains a model on them.
#[inline(never)]
fn features() -> Result<(), &'static str> {
    let (mut ring, mut windows) = (Ring::new(), [[0.0; COUNT]; SAMPLES]);
    let mut rest = windows.iter_mut().enumerate();
    for time in 0..LENGTH + STEP * (SAMPLES - 1) {
        if ring.push(core::array::from_fn(|channel| {
            data::raw_sample(channel, time)
        })) {
            let (number, features) = rest.next().ok_or("too many windows")?;
            let mut counts = [0; COUNT];
            ring.features_into(features).map_err(|_| "the features")?;
            ring.counts_into(&mut counts).map_err(|_| "the counts")?;
            print_state("features", number, features, &counts.map(i64::from));
        }
    }
    let softmax = Softmax::new(Const::<COUNT>, Const::<CLASSES>);
    let targets = core::array::from_fn(|i| data::class(i, CLASSES));
    let [plain, ..] = &SETTINGS;
    print::<_, { (COUNT + 1) * CLASSES }, CLASSES>(
        "features-softmax",
        softmax,
        windows.as_flattened(),
        &targets,
        plain,
    )
}

/// Computes all features of a window whose length is not a power of two.
#[inline(never)]
fn every_feature() -> Result<(), &'static str> {
    const COUNT: usize = CHANNELS * EVERY.feature_count();
    const WORK: usize = EVERY.work_count();
    let (mut features, mut counts) = ([0.0; COUNT], [0; COUNT]);
    let float = |channel, time| f32::from(data::raw_sample(channel, time));
    let computed = EVERY.features_into(float, &mut [0.0; WORK], &mut features);
    computed.map_err(|_| "every feature")?;
    let computed = EVERY.counts_into(data::raw_sample, &mut [0; WORK], &mut counts);
    computed.map_err(|_| "every count")?;
    print_state("features-every", 0, &features, &counts.map(i64::from));
    Ok(())
}

/// Computes fixed image features: checksums of gradients and brightness, in `f32` and integers.
#[inline(never)]
fn image(number: usize) -> Result<(), &'static str> {
    let cells = CELLS[number];
    let pixels: [u8; LARGEST_IMAGE] = core::array::from_fn(|at| data::pixel(number, at));
    let pixels = pixels
        .get(..cells.rows() * cells.columns())
        .ok_or("the image")?;
    let float = float_features(cells, pixels).ok_or("the features of an image")?;
    let integer = integer_features(cells, pixels).ok_or("the integers of an image")?;
    println!("image {number} {float:08x} {integer:08x}");
    Ok(())
}

// Not inlined, because the memory of both would be on the stack at the same time.
#[inline(never)]
fn float_features(cells: Cells, pixels: &[u8]) -> Option<u32> {
    let mut features = [0.0_f32; LARGEST_IMAGE * DIRECTIONS];
    let gradients = Gradients::new(cells);
    let own = features.get_mut(..gradients.feature_count())?;
    gradients.features_into([pixels], own).ok()?;
    let first = data::checksum(own.iter().map(|x| x.to_bits()));
    let own = features.get_mut(..cells.count())?;
    Pool::new(cells).features_into(pixels, own).ok()?;
    let both = own.iter().map(|x| x.to_bits());
    Some(data::checksum([first].into_iter().chain(both)))
}

#[inline(never)]
fn integer_features(cells: Cells, pixels: &[u8]) -> Option<u32> {
    let (mut sums, mut features) = (
        [0; LARGEST_IMAGE * DIRECTIONS],
        [0_i8; LARGEST_IMAGE * DIRECTIONS],
    );
    let gradients = Gradients::new(cells);
    let count = gradients.feature_count();
    let (work, own) = (sums.get_mut(..count)?, features.get_mut(..count)?);
    gradients
        .quantised_into([pixels], client::SCALE, work, own)
        .ok()?;
    let first = data::checksum(own.iter().map(|x| i32::from(*x).cast_unsigned()));
    let (work, own) = (
        sums.get_mut(..cells.count())?,
        features.get_mut(..cells.count())?,
    );
    Pool::new(cells)
        .quantised_into(pixels, client::SCALE, work, own)
        .ok()?;
    let both = own.iter().map(|x| i32::from(*x).cast_unsigned());
    Some(data::checksum([first].into_iter().chain(both)))
}

/// Computes steps of numbers, as `f32` and as integers.
#[inline(never)]
fn steps() -> Result<(), &'static str> {
    const COUNT: usize = STEPS.count();
    let (mut floats, mut integers) = (
        [[0.0; COUNT]; NUMBERS.len()],
        [[0_i8; COUNT]; NUMBERS.len()],
    );
    for ((number, floats), integers) in NUMBERS.iter().zip(&mut floats).zip(&mut integers) {
        let value = *number as f32 / 1_000.0;
        STEPS
            .features_into(value, &BOUNDS, floats)
            .map_err(|_| "the steps")?;
        STEPS
            .quantised_into(*number, &COUNTS, client::SCALE, integers)
            .map_err(|_| "the steps in integers")?;
    }
    let floats = data::checksum(floats.as_flattened().iter().map(|x| x.to_bits()));
    let integers = integers.as_flattened().iter();
    let integers = data::checksum(integers.map(|x| i32::from(*x).cast_unsigned()));
    println!("steps 0 {floats:08x} {integers:08x}");
    Ok(())
}

/// Computes image features with the frozen backbone, and trains a head on them in integers.
#[inline(never)]
fn backbone() -> Result<(), &'static str> {
    type Head = Softmax<Const<{ backbone::FEATURES }>, Const<CLASSES>>;
    const PARAMETERS: usize = Head::PARAMETERS;
    let mut features = [[0; backbone::FEATURES]; SAMPLES];
    for (number, features) in features.iter_mut().enumerate() {
        let image: [i8; backbone::PIXELS] = data::image(number);
        backbone::features_into(&image, features);
    }
    let targets: [u16; SAMPLES] = core::array::from_fn(|i| data::class(i, CLASSES));
    let samples = FixedPointSlice::new(features.as_flattened(), &targets, backbone::FEATURES);
    let samples = samples.map_err(|_| "the samples")?;
    let global: [i32; PARAMETERS] = core::array::from_fn(data::weight);
    let mut update = [0; PARAMETERS];
    let work = FixedPointWork {
        local: &mut [0; PARAMETERS],
        update: &mut update,
        order: &mut [0; SAMPLES],
        scores: &mut [0; CLASSES],
        row: &mut [0; backbone::FEATURES],
    };
    let [plain, ..] = &SETTINGS;
    let (training, order) = (plain.training()?, &mut data::stream(Purpose::BatchShuffle));
    let head = Head::new(Const, Const);
    fixed_point::local_update(
        &head,
        &samples,
        client::SCALE,
        &global,
        &training,
        order,
        work,
    )
    .map_err(|_| "training in integers")?;
    let features = features.map(|features| features.map(i8::cast_unsigned));
    let (features, update) = (
        crc32(features.as_flattened()),
        crc32(update.map(i32::to_le_bytes).as_flattened()),
    );
    println!("backbone 0 {features:08x} {update:08x}");
    Ok(())
}

/// Predicts images of arbitrary pixels with a trained network in 8 bits.
#[inline(never)]
fn quantised() -> Result<(), &'static str> {
    const PIXELS: usize = INPUT.count();
    let (mut scored, mut said) = (0, 0);
    for number in 0..SAMPLES {
        let image: [i8; PIXELS] = data::image(number);
        let mut scores = [0; DIGITS.len()];
        let class = NETWORK.predict(&image, &mut [0; SCRATCH], &mut scores);
        let class = class.map_err(|_| "a prediction in 8 bits")?;
        let words = |scores: [i32; DIGITS.len()]| scores.map(i32::cast_unsigned).into_iter();
        scored = data::checksum([scored].into_iter().chain(words(scores)));
        probabilities_in_place(&mut scores);
        let before = [said, u32::from(class)].into_iter();
        said = data::checksum(before.chain(words(scores)));
    }
    println!("quantised 0 {scored:08x} {said:08x}");
    Ok(())
}

/// Trains an encoder without labels, and computes the device's correlation matrix with noise.
#[inline(never)]
fn contrast() -> Result<(), &'static str> {
    const PARAMETERS: usize = FEATURES * WIDTH;
    const MATRIX: usize = correlation::packed_length(WIDTH);
    let encoder = Projection::new(Const::<FEATURES>, Const::<WIDTH>);
    let targets: [u16; SAMPLES] = core::array::from_fn(|i| data::class(i, CLASSES));
    let samples = SampleSlice::new(&DATA, &targets, FEATURES).map_err(|_| "the samples")?;
    let stream = data::stream(Purpose::Augmentation);
    let mut views = Augmented::new(&samples, data::variations(), PAIRS, stream);
    let mut own: [f32; PARAMETERS] = core::array::from_fn(data::parameter);
    let (mut view, mut pair, mut matrix) = ([0.0; FEATURES], [0.0; 2 * WIDTH], [0.0; MATRIX]);

    let mut sent = [0; MATRIX];
    let mut memory = SumMemory {
        view: &mut view,
        hidden: &mut [],
        representation: &mut pair[..WIDTH],
        matrix: &mut matrix,
    };
    let (noise, mut stream) = (data::step_noise()?, data::stream(Purpose::CorrelationNoise));
    let noise = Some((&noise, &mut stream));
    sum_into(
        &encoder,
        &own,
        &views,
        &data::grid()?,
        noise,
        &mut memory,
        &mut sent,
    )
    .map_err(|_| "the correlation matrix")?;

    let objective = Objective {
        alpha: 0.7,
        others: &core::array::from_fn::<_, MATRIX, _>(data::parameter),
        norm_bound: Some(2.0),
    };
    let batch = BatchMemory {
        representations: &mut [0.0; 2 * PAIRS * 5 * WIDTH],
        view: &mut view,
        hidden: &mut [],
        pair: &mut pair,
        matrix: &mut matrix,
        gradient: &mut [0.0; PARAMETERS],
    };
    let order = &mut data::stream(Purpose::BatchShuffle);
    let memory = &mut TrainingMemory {
        order: &mut [0; SAMPLES],
        batch,
    };
    contrast::descend(
        &encoder,
        &mut own,
        &mut views,
        &objective,
        &data::contrast()?,
        order,
        memory,
    )
    .map_err(|_| "training without labels")?;
    print_state("contrast", 0, &own, &sent);
    Ok(())
}

/// Trains a personal model pulled to the shared model, in place, with three vectors in all.
#[inline(never)]
fn pmtl() -> Result<(), &'static str> {
    const PARAMETERS: usize = (FEATURES + 1) * CLASSES;
    let model = Softmax::new(Const::<FEATURES>, Const::<CLASSES>);
    let targets: [u16; SAMPLES] = core::array::from_fn(|i| data::class(i, CLASSES));
    let samples = SampleSlice::new(&DATA, &targets, FEATURES).map_err(|_| "the samples")?;
    let shared: [f32; PARAMETERS] = core::array::from_fn(data::parameter);
    // Initially, the personal model is the shared one.
    let mut own = shared;
    let (mut update, mut order) = ([0.0; PARAMETERS], [0; SAMPLES]);
    let grid = data::grid()?;
    for round in 0..ROUNDS {
        let anchor = Anchor {
            at: &shared,
            strength: data::pull()?,
            importance: None,
        };
        let memory = StepMemory {
            gradient: &mut update,
            order: &mut order,
            scratch: &mut [0.0; CLASSES],
        };
        let stream = &mut data::stream(Purpose::BatchShuffle);
        descend(
            &model,
            &samples,
            &mut own,
            Some(&anchor),
            &data::personal()?,
            stream,
            memory,
        )
        .map_err(|_| "training")?;
        difference(&own, &shared, &mut update);
        clip_l2(&mut update, grid.clip_norm().get()).map_err(|_| "clipping")?;
        let quantizer = grid.quantizer(&update).map_err(|_| "the update")?;
        let sent = update.map(|x| i64::from(quantizer.get(x)));
        print_state("pmtl", round, &own, &sent);
    }
    Ok(())
}

/// Trains a shared encoder with noise in each step, below a head that stays on the device.
#[inline(never)]
fn shared_encoder() -> Result<(), &'static str> {
    const SHARED: usize = (FEATURES + 1) * HIDDEN;
    const PARAMETERS: usize = SHARED + (HIDDEN + 1) * CLASSES;
    let model = Encoder::new(
        Const::<FEATURES>,
        Const::<HIDDEN>,
        Const::<CLASSES>,
        Activation::Tanh,
    );
    let targets: [u16; SAMPLES] = core::array::from_fn(|i| data::class(i, CLASSES));
    let samples = SampleSlice::new(&DATA, &targets, FEATURES).map_err(|_| "the samples")?;
    let mut own: [f32; PARAMETERS] = core::array::from_fn(data::parameter);
    let (mut gradient, mut order) = ([0.0; PARAMETERS], [0; SAMPLES]);
    let noise = data::step_noise()?;
    for round in 0..ROUNDS {
        let mut sent = [0; SHARED];
        let mut steps = NoisySteps {
            grid: data::grid()?,
            noise: Some(&noise),
            stream: data::stream(Purpose::DeviceNoise),
            sent: &mut sent,
            clipped: 0,
            releases: 0,
        };
        let memory = StepMemory {
            gradient: &mut gradient,
            order: &mut order,
            scratch: &mut [0.0; CLASSES + HIDDEN],
        };
        let stream = &mut data::stream(Purpose::BatchShuffle);
        let release = |gradient: &mut [f32]| steps.release(gradient);
        descend_released(
            &model,
            &samples,
            &mut own,
            &data::personal()?,
            stream,
            memory,
            release,
        )
        .map_err(|_| "training")?;
        print_state("encoder", round, &own, &sent);
    }
    Ok(())
}

/// Trains a network of `P` parameters that needs `S` entries of memory.
#[inline(never)]
fn network<const P: usize, const S: usize>(
    name: &str,
    network: &Sequential,
) -> Result<(), &'static str> {
    let targets: [u16; SAMPLES] = core::array::from_fn(|i| data::class(i, CLASSES));
    let samples = SampleSlice::new(&DATA, &targets, FEATURES).map_err(|_| "the samples")?;
    let global: [f32; P] = core::array::from_fn(data::parameter);
    let mut update = [0.0; P];
    let work = Workspace {
        local: &mut [0.0; P],
        update: &mut update,
        order: &mut [0; SAMPLES],
        scratch: &mut [0.0; S],
    };
    let order = &mut data::stream(Purpose::BatchShuffle);
    let training = SETTINGS[0].training()?;
    local_update(network, &samples, &global, &training, order, work).map_err(|_| "training")?;
    let grid = data::grid()?;
    let quantizer = grid.quantizer(&update).map_err(|_| "the update")?;
    print_state(
        name,
        0,
        &update,
        &update.map(|x| i64::from(quantizer.get(x))),
    );
    Ok(())
}

/// Trains a network of a fixed type on sensor windows.
fn windows<M, const P: usize, const B: usize>(
    name: &str,
    model: M,
    settings: &[Setting],
) -> Result<(), &'static str>
where
    M: FixedModel<Target = u16> + Copy,
{
    let targets = core::array::from_fn(|i| data::class(i, usize::from(network::CLASSES)));
    let count = model.feature_count() * SAMPLES;
    let features = SENSOR_DATA.get(..count).ok_or("the windows")?;
    for setting in settings {
        print::<M, P, B>(name, model, features, &targets, setting)?;
    }
    Ok(())
}

fn print_state<const P: usize, const S: usize>(
    method: &str,
    round: usize,
    own: &[f32; P],
    sent: &[i64; S],
) {
    let own = crc32(own.map(f32::to_le_bytes).as_flattened());
    let sent = crc32(sent.map(i64::to_le_bytes).as_flattened());
    println!("{method} {round} {own:08x} {sent:08x}");
}

// Not inlined, like the others: their memory would be on the stack at the same time.
#[inline(never)]
fn print<M: FixedModel, const P: usize, const B: usize>(
    name: &str,
    model: M,
    features: &[f32],
    targets: &[M::Target; SAMPLES],
    setting: &Setting,
) -> Result<(), &'static str>
where
    M::Target: Default,
{
    let mut client: Client<M, P, SAMPLES, B> = Client::new(model);
    let feature_count = client.model().feature_count();
    let samples = SampleSlice::new(features, targets, feature_count).map_err(|_| "the samples")?;
    let global = core::array::from_fn(data::parameter);
    let order = &mut data::stream(Purpose::BatchShuffle);
    client
        .train_unrecorded(&samples, &global, &setting.training()?, order)
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
