//! The client's loop, for any model whose size is known to the compiler: the pause before a message
//! is repeated, the number of samples per piece, and the RAM to reserve.

use core::convert::Infallible;

use embedded_storage::nor_flash::NorFlash;
use smolfed_core::{
    Progress,
    contrast::{FromRecipe, Representation},
    fixed_point::{FeatureScale, FixedPointModel},
    identity::Identity,
    model::{Const, FixedModel, Softmax},
    personal::store::{BlockingStore, NoStore},
    recipe::MAX_RECIPE_BYTES,
    session::{FixedPoint, Memory, Phase, Policy, Session, SessionError, Trainable, Unlabelled},
    train::Workspace,
};

#[cfg(feature = "questions")]
use smolfed_core::session::QuestionPolicy;

use crate::{
    board,
    link::Serial,
    local_data::{LocalData, MAX_SAMPLES, WINDOWS, WithoutLabels},
    nonces,
    number::number,
    product::{Device, Product},
    refused::Refused,
    sensor::{Sense, Sensor, Windows},
};

#[cfg(feature = "x25519")]
use crate::handshake::{Nonces, of_this_start};
#[cfg(not(feature = "x25519"))]
use crate::nonces::{Nonces, of_this_start};

#[cfg(feature = "element")]
use crate::element::{Secrets, record};
#[cfg(not(feature = "element"))]
use crate::root::{Secrets, record};

/// Features of the softmax model, from `SMOLFED_FEATURES` at build time.
pub const FEATURES: usize = number(env!("SMOLFED_FEATURES"));

/// Classes of the softmax model, from `SMOLFED_CLASSES` at build time.
pub const CLASSES: usize = number(env!("SMOLFED_CLASSES"));

/// The softmax model.
pub type Regression = Softmax<Const<FEATURES>, Const<CLASSES>>;

/// Persistent state of a device, each part in separate flash.
pub struct Storage<F, K> {
    /// The ledger.
    pub ledger: F,
    /// The start counter, on boards without random numbers.
    pub starts: F,
    /// The personal model, or [`NoStore`](smolfed_core::personal::store::NoStore).
    pub store: K,
}

/// Runs [`run`] with the softmax model.
///
/// # Errors
/// As [`run`].
pub fn run_regression<F: NorFlash, K: BlockingStore>(
    storage: Storage<F, K>,
) -> Result<Infallible, Refused> {
    let model: Regression = Softmax::new(Const, Const);
    const P: usize = Regression::PARAMETERS;
    run::<_, Sensor, P, { Regression::SCRATCH }, FEATURES, _, _>(model, storage)
}

/// Bytes of RAM besides the vectors and the samples: variables and the deepest call
/// (`docs/targets.md`: at most 2,000 bytes, or 4,700 with `x25519` on RV32IMC, before rounds ran in
/// pieces), with some margin.
const RESERVE: usize = if cfg!(feature = "x25519") { 11 } else { 8 } << 9;

/// Samples per piece of training, or a few entries of the noise. For the duration of a piece, see
/// "Pieces" in `docs/firmware.md`.
const SAMPLES_AT_ONCE: usize = 1;

/// Milliseconds of silence before the last message is repeated, longer than a round trip with its
/// frames. `SMOLFED_PATIENCE_MS` sets it for a slow link.
const PATIENCE_MS: u32 = match option_env!("SMOLFED_PATIENCE_MS") {
    Some(text) => match u32::from_str_radix(text, 10) {
        Ok(ms) => ms,
        Err(_) => panic!("SMOLFED_PATIENCE_MS is a number of milliseconds"),
    },
    None => 500,
};

/// The same time in ticks of the board's clock.
const PATIENCE_TICKS: u32 = board::TICKS_PER_SECOND * PATIENCE_MS / 1000;

/// Takes part forever, with a model of `P` parameters that needs `B` entries of scratch memory, on
/// the `D` features of the sensor `S`.
///
/// A configuration too large for the board's RAM does not compile.
///
/// # Errors
/// Returns the reason if anything is missing or wrong at the start. The device must not take part.
pub fn run<M, S, const P: usize, const B: usize, const D: usize, F, K>(
    model: M,
    storage: Storage<F, K>,
) -> Result<Infallible, Refused>
where
    M: FixedModel<Target = u16>,
    S: Sense<Value = f32>,
    F: NorFlash,
    K: BlockingStore,
{
    run_in::<M, S, P, B, D, F, K>(model, storage, &mut ())
}

/// Runs [`run`] in a product that uses the model.
///
/// # Errors
/// As [`run`].
pub fn run_in<M, S, const P: usize, const B: usize, const D: usize, F, K>(
    model: M,
    storage: Storage<F, K>,
    product: &mut impl Product<M, F, K>,
) -> Result<Infallible, Refused>
where
    M: FixedModel<Target = u16>,
    S: Sense<Value = f32>,
    F: NorFlash,
    K: BlockingStore,
{
    let classes = M::OUTPUTS as u16;
    let train = |session: &mut Device<'_, M, F, K>, data: &LocalData<'_, D>| {
        session.train_some(data, SAMPLES_AT_ONCE)
    };
    run_with::<(M, S, Vectors<P, P, B>, _), D>(model, storage, classes, product, train)
}

/// Runs [`run`] with the softmax model in integer arithmetic, without floating point.
///
/// # Errors
/// As [`run`].
pub fn run_integers<F: NorFlash>(storage: Storage<F, NoStore>) -> Result<Infallible, Refused> {
    const P: usize = Regression::PARAMETERS;
    /// Scores and features of a sample.
    const B: usize = CLASSES + FEATURES;
    let model: Regression = Softmax::new(Const, Const);
    run_fixed_point::<_, Sensor<i8>, P, B, FEATURES, F>(model, storage)
}

/// Runs [`run`] in integer arithmetic, on 8-bit features. `B` counts the scores and the features of
/// a sample.
///
/// # Errors
/// As [`run`].
pub fn run_fixed_point<M, S, const P: usize, const B: usize, const D: usize, F>(
    model: M,
    storage: Storage<F, NoStore>,
) -> Result<Infallible, Refused>
where
    M: FixedModel<Target = u16> + FixedPointModel<FixedPointTarget = u16>,
    S: Sense<Value = i8>,
    F: NorFlash,
{
    let classes = M::OUTPUTS as u16;
    let model = FixedPoint::<M, i8>::new(model, SCALE);
    run_with::<(_, S, Vectors<P, P, B>, _), D>(model, storage, classes, &mut (), |session, data| {
        session.train_some(data, SAMPLES_AT_ONCE)
    })
}

/// Features in units of 2⁻⁶.
pub const SCALE: FeatureScale = match FeatureScale::new::<i8>(6) {
    Ok(scale) => scale,
    Err(_) => panic!("6 places have room in i8"),
};

/// Runs [`run`] with an encoder trained without labels. The device receives `G` values, and `P` of
/// them are the encoder's parameters.
///
/// As [`run`].
/// As there.
pub fn run_unlabelled<E, A, const G: usize, const P: usize, const B: usize, const D: usize, F>(
    encoder: E,
    storage: Storage<F, NoStore>,
) -> Result<Infallible, Refused>
where
    E: Representation,
    A: FromRecipe,
    F: NorFlash,
{
    let model = Unlabelled::<E, A>::new(encoder);
    let classes = CLASSES as u16;
    run_with::<(_, Sensor<f32>, Vectors<G, P, B>, _), D>(
        model,
        storage,
        classes,
        &mut (),
        |session, data| session.train_some(&WithoutLabels(data), SAMPLES_AT_ONCE),
    )
}

/// Model, data, memory and persistent storage of a board.
trait Board {
    /// The model.
    type Model: Trainable;
    /// The sensor for its samples.
    type Sensor: Sense;
    /// The training vectors.
    type Vectors: Training;
    /// The flash of the ledger.
    type Flash: NorFlash;
    /// The store of a personal model.
    type Store: BlockingStore;
}

impl<M: Trainable, S: Sense, V: Training, F: NorFlash, K: BlockingStore> Board
    for (M, S, V, Storage<F, K>)
{
    type Model = M;
    type Sensor = S;
    type Vectors = V;
    type Flash = F;
    type Store = K;
}

/// Session of a board.
type SessionOf<'a, B> = Device<'a, <B as Board>::Model, <B as Board>::Flash, <B as Board>::Store>;

/// Data of a board, with `D` features.
type Data<'a, B, const D: usize> = LocalData<'a, D, <<B as Board>::Sensor as Sense>::Value>;

/// Runs [`run`] with any session and its training on the data.
fn run_with<B: Board, const D: usize>(
    model: B::Model,
    storage: Storage<B::Flash, B::Store>,
    classes: u16,
    product: &mut impl Product<B::Model, B::Flash, B::Store>,
    train: impl Fn(&mut SessionOf<'_, B>, &Data<'_, B, D>) -> Progress,
) -> Result<Infallible, Refused> {
    const {
        assert!(
            ram_bytes::<B, D>() <= board::RAM_BYTES,
            "the model, its training memory and the windows need more RAM than the board has; \
             firmware-example/boards.rs has its length"
        );
    }
    let mut windows = Windows::new(classes);
    let mut recipe = [0; MAX_RECIPE_BYTES];
    let recipe = match B::Sensor::RECIPE {
        Some(own) => own.write(&mut recipe),
        None => &[],
    };
    let mut local = local_data::<B::Sensor, D>(recipe, &mut windows, classes);
    let (data, sensor) = local.as_mut().map_err(|why| *why)?;
    let mut vectors = B::Vectors::NEW;
    let Storage {
        ledger,
        starts,
        store,
    } = storage;
    let nonces = of_this_start(starts).map_err(|_| Refused::Starts)?;
    // Both stay in place: moved values would be in RAM twice.
    let mut session = open::<B>(model, ledger, nonces, store, &mut vectors);
    let session = session.as_mut().map_err(|why| *why)?;
    // Samples that are already features have no recipe.
    if B::Sensor::RECIPE.is_some() && !matches!(data, LocalData::Stored(_)) {
        session.set_recipe(recipe);
    }
    #[cfg(feature = "questions")]
    session.set_questions(questions()?);
    board::start();
    product.starts(session);
    take_part::<B, D>(session, data, sensor, product, train)
}

/// Runs the loop of a device. A separate function with pointers to all large values: in the frame
/// that holds them, a Cortex-M0 keeps 150 bytes of addresses.
#[inline(never)]
#[expect(unsafe_code, reason = "the serial line has one owner")]
fn take_part<B: Board, const D: usize>(
    session: &mut SessionOf<'_, B>,
    data: &mut Data<'_, B, D>,
    sensor: &mut B::Sensor,
    product: &mut impl Product<B::Model, B::Flash, B::Store>,
    train: impl Fn(&mut SessionOf<'_, B>, &Data<'_, B, D>) -> Progress,
) -> ! {
    // SAFETY: this function never returns, so it takes the line only once.
    let mut line = unsafe { Serial::new() };
    session.timeout();
    let (mut sent_at, mut measured_at) = (0, 0);
    loop {
        let now = board::ticks();
        // A board's line does not fail.
        if session.exchange(&mut line).unwrap_or(false) {
            sent_at = now;
        }
        if session.phase() == Phase::Training {
            product.trains(session);
        }
        // One piece of a round. Feed a watchdog and do other urgent work here. Sensor measurements
        // during training must not change the data.
        let progress = train(session, data);
        if session.phase() != Phase::Training {
            product.rests(session);
        }
        if progress == Progress::More {
            continue;
        }
        if now.wrapping_sub(sent_at) >= PATIENCE_TICKS {
            session.timeout();
            sent_at = now;
            continue;
        }
        if now != measured_at {
            // Skip a window that training cannot use. A product would report its sensor, but not to
            // the coordinator.
            let _left_out = data.measure(sensor);
            product.idle(session);
            measured_at = now;
        }
        board::sleep_unless(|| line.has_received());
    }
}

/// Returns the bytes of RAM of a client.
const fn ram_bytes<B: Board, const D: usize>() -> usize {
    size_of::<B::Vectors>()
        + size_of::<Windows<D, WINDOWS, <B::Sensor as Sense>::Value>>()
        + size_of::<B::Sensor>()
        + RESERVE
}

/// Memory of a training run.
trait Training {
    /// Zeros.
    const NEW: Self;

    /// Returns the memory of a session.
    fn memory(&mut self) -> Memory<'_>;
}

/// Memory of a training run: three vectors, the order of the samples, and scratch memory.
struct Vectors<const G: usize, const P: usize, const B: usize> {
    global: [f32; G],
    local: [f32; P],
    update: [f32; P],
    order: [u32; MAX_SAMPLES],
    scratch: [f32; B],
}

impl<const G: usize, const P: usize, const B: usize> Training for Vectors<G, P, B> {
    const NEW: Self = Self {
        global: [0.0; G],
        local: [0.0; P],
        update: [0.0; P],
        order: [0; MAX_SAMPLES],
        scratch: [0.0; B],
    };

    fn memory(&mut self) -> Memory<'_> {
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

/// Returns the training data, and the sensor that adds to them.
#[inline(never)]
fn local_data<'a, S: Sense, const D: usize>(
    recipe: &[u8],
    windows: &'a mut Windows<D, WINDOWS, S::Value>,
    classes: u16,
) -> Result<(LocalData<'a, D, S::Value>, S), Refused> {
    let mut record = record();
    let record = record.as_mut()?;
    let has_recipe = !record.samples.recipe().is_empty();
    // Without a recipe there is nothing to compare.
    if has_recipe && (S::RECIPE.is_none() || record.samples.recipe() != recipe) {
        return Err(Refused::Recipe);
    }
    let data = LocalData::new::<S>(&record.samples, has_recipe, windows, classes)?;
    Ok((data, S::new(classes, record.identity.device)))
}

/// Returns the device's identity and policy. A function, so that the rest of the record leaves the
/// stack.
#[inline(never)]
fn owner() -> Result<(Identity<Secrets>, Policy), Refused> {
    // Used in place: a moved value would be on the stack twice.
    let mut record = record();
    let record = record.as_mut()?;
    Ok((record.identity.clone(), record.policy))
}

/// Returns the policy for questions to the device.
#[cfg(feature = "questions")]
#[inline(never)]
fn questions() -> Result<QuestionPolicy, Refused> {
    let mut record = record();
    Ok(record.as_mut()?.questions)
}

/// Opens a session of the device in the provisioning record, or returns the reason for refusal.
///
/// A separate function, so that values used only at the start leave the stack. In particular, the
/// loop's frame would keep a slot for the ledger's chain key.
#[inline(never)]
fn open<B: Board>(
    model: B::Model,
    ledger: B::Flash,
    nonces: Nonces,
    store: B::Store,
    vectors: &mut B::Vectors,
) -> Result<SessionOf<'_, B>, Refused> {
    let Ok(ledger) = nonces::ledger(ledger) else {
        return Err(Refused::Ledger);
    };
    board::forget_first_key();
    #[expect(clippy::question_mark, reason = "with it, both are on the stack twice")]
    let (identity, policy) = match owner() {
        Ok(owner) => owner,
        Err(why) => return Err(why),
    };
    Session::with_store(
        identity,
        policy,
        model,
        vectors.memory(),
        ledger,
        nonces,
        store,
    )
    .map_err(|error| match error {
        SessionError::Element => Refused::Element,
        SessionError::Build => Refused::Build,
        _ => Refused::Model,
    })
}
