//! A device that trains, for one kind of model: its memory, its session and ledger, its samples,
//! and its model for predictions.

use core::{mem::MaybeUninit, ptr::NonNull};

use smolfed_core::{
    Progress,
    crypto::Key,
    fixed_point::FeatureScale,
    identity::Identity,
    ledger::{Ledger, LedgerError},
    personal::store::NoStore,
    provision::{ProvisionError, Record},
    samples::SampleRows,
    session::{LastRound, Memory as Vectors, Phase, Policy, Session, Trainable},
    train::Workspace,
    wire::refusal::Refusals,
};

use crate::{
    callbacks::sf_flash,
    client::{Client, Feature, Features, Fill, Link, Scores, Target},
    config::sf_config,
    flash::Flash,
    kind::{Current, Kind, SamplesOf, SessionOf},
    memory::{Layout, Memory},
    piece::{self, Piece},
    pointer,
    random::Random,
    secrets::{self, Secrets},
    status::sf_status,
};
#[cfg(feature = "sleep")]
use {
    crate::{client::Sleeper, pages::Pages},
    smolfed_core::{
        personal::store::{StoreError, flash::FlashStore},
        session::Wake,
    },
};

/// A device of a kind. The fields that a pending piece uses are behind pointers.
struct Device<K: Kind> {
    session: NonNull<SessionOf<K>>,
    samples: NonNull<SamplesOf<K>>,
    piece: Piece<K>,
    /// Of the features.
    scale: FeatureScale,
    /// Of an update, at most.
    #[cfg(feature = "sleep")]
    entries: usize,
}

/// The memory of a device of a kind.
pub(crate) fn layout<K: Kind>(config: &sf_config, layout: Layout) -> Result<Layout, sf_status> {
    let model = K::model(config.sizes())?;
    let (parameters, samples) = (model.parameter_count(), usize::from(config.samples));
    let features = samples.checked_mul(config.features.into());
    let layout = layout
        .with::<sf_flash>(1)
        .with::<Device<K>>(1)
        .with::<SessionOf<K>>(1)
        .with::<SamplesOf<K>>(1);
    Ok(Piece::<K>::layout(layout)
        .with::<f32>(model.global_count())
        .with::<f32>(parameters)
        .with::<f32>(parameters)
        .with::<f32>(model.scratch_count())
        .with::<u32>(samples)
        .with::<K::Target>(samples)
        .with::<K::Feature>(features.ok_or(sf_status::SF_CONFIG)?))
}

/// Opens a device of a kind.
pub(crate) fn open<K: Kind>(
    config: &sf_config,
    memory: &mut Memory,
) -> Result<&'static mut dyn Client, sf_status> {
    let recipe = recipe(config)?;
    // The deepest calls come first, before there are the parts of a device on the stack.
    let ledger = ledger(config, Flash(memory.place()?.write(config.ledger)))?;
    place::<K>(config, memory, recipe, ledger)
}

/// Puts a device of a kind in its memory.
#[inline(never)]
fn place<K: Kind>(
    config: &sf_config,
    memory: &mut Memory,
    recipe: &'static [u8],
    ledger: Ledger<Flash>,
) -> Result<&'static mut dyn Client, sf_status> {
    let model = K::model(config.sizes())?;
    let place = memory.place::<Device<K>>()?;
    let (session_place, samples_place) = (memory.place()?, memory.place()?);
    let piece = Piece::new(memory)?;
    let (parameters, count) = (model.parameter_count(), usize::from(config.samples));
    let vectors = Vectors {
        global: memory.zeros(model.global_count())?,
        work: Workspace {
            local: memory.zeros(parameters)?,
            update: memory.zeros(parameters)?,
            scratch: memory.zeros(model.scratch_count())?,
            order: memory.zeros(count)?,
        },
    };
    let (targets, features) = (memory.zeros(count)?, usize::from(config.features));
    let rows = memory.zeros(count.checked_mul(features).ok_or(sf_status::SF_CONFIG)?)?;
    // One output is for two classes, or for a value.
    let outputs = parameters / (usize::from(config.features) + 1);
    let classes = if outputs > 1 { config.classes } else { 2 };
    let samples = SampleRows::new(rows, targets, features, classes);
    let samples = samples.map_err(|_| sf_status::SF_CONFIG)?;
    let (owner, random) = (owner(config), Random(config.random));
    let owner = owner.as_ref().map_err(|error| *error)?;
    let session = begin::<K>(session_place, owner, model, vectors, ledger, random)?;
    session.set_recipe(recipe);
    #[cfg(feature = "questions")]
    session.set_questions(questions(config)?);
    let scale =
        FeatureScale::new::<i16>(config.places.min(15)).map_err(|_| sf_status::SF_CONFIG)?;
    Ok(place.write(Device::<K> {
        session: NonNull::from(session),
        samples: NonNull::from(samples_place.write(samples)),
        piece,
        scale,
        #[cfg(feature = "sleep")]
        entries: parameters,
    }))
}

/// A session in its place. A function, so that copies of its parts are not in the frame of `place`.
#[inline(never)]
fn begin<K: Kind>(
    place: &'static mut MaybeUninit<SessionOf<K>>,
    (identity, policy): &(Identity<Secrets>, Policy),
    model: K::Model,
    vectors: Vectors<'static>,
    ledger: Ledger<Flash>,
    random: Random,
) -> Result<&'static mut SessionOf<K>, sf_status> {
    let store = NoStore;
    Ok(Session::in_place(
        place,
        identity.clone(),
        *policy,
        model,
        vectors,
        ledger,
        random,
        store,
    )?)
}

/// The record of a configuration, whose pointer `sf_open` has checked.
fn record(config: &sf_config) -> Result<Record<'_, Secrets>, ProvisionError> {
    // SAFETY: the firmware promises `sf_open` that the record is there.
    let page = unsafe { pointer::slice(config.record, config.record_bytes) };
    secrets::read(page.unwrap_or_default(), config.element)
}

/// The ledger, which the device begins at its first start with the key of its record.
#[inline(never)]
fn ledger(config: &sf_config, flash: Flash) -> Result<Ledger<Flash>, LedgerError> {
    let (mut random, mut nonce) = (Random(config.random), [0; 8]);
    let Ok(()) = rand_core::TryRng::try_fill_bytes(&mut random, &mut nonce);
    piece::open(flash, nonce, first_key(config)?)
}

/// The key of the record, if it has one still.
#[inline(never)]
fn first_key(config: &sf_config) -> Result<Option<Key>, LedgerError> {
    // `open` has read the record before. Only its element may fail now.
    let record = record(config);
    let record = record.as_ref().map_err(|_| LedgerError::Element)?;
    Ok(record.key.clone())
}

/// The identity and the policy of the device.
#[inline(never)]
fn owner(config: &sf_config) -> Result<(Identity<Secrets>, Policy), sf_status> {
    // Used where it is: moved out, its secrets would be on the stack twice.
    let record = record(config);
    let record = record.as_ref().map_err(|error| *error)?;
    Ok((record.identity.clone(), record.policy))
}

/// The questions that the device answers.
#[cfg(feature = "questions")]
#[inline(never)]
fn questions(config: &sf_config) -> Result<smolfed_core::session::QuestionPolicy, sf_status> {
    let record = record(config);
    let record = record.as_ref().map_err(|error| *error)?;
    Ok(record.questions)
}

/// The recipe of the features. A record with a recipe has the same one.
fn recipe(config: &sf_config) -> Result<&'static [u8], sf_status> {
    // SAFETY: the firmware promises `sf_open` that the recipe is there, if it is not null, and that
    // its bytes stay as they are.
    let own = unsafe {
        let count = usize::from(!config.recipe.is_null());
        match pointer::slice(config.recipe, count)? {
            [recipe, ..] => recipe.bytes()?,
            [] => &[],
        }
    };
    let record = record(config);
    let record = record.as_ref().map_err(|error| *error)?;
    let named = record.samples.recipe();
    match named.is_empty() || named == own {
        true => Ok(own),
        false => Err(sf_status::SF_RECIPE),
    }
}

impl<K: Kind> Device<K> {
    const fn session(&self) -> &SessionOf<K> {
        // SAFETY: it is there until the device is dropped, and no piece is pending: `sf_device`
        // lets nothing but training and the end of a device through while one is.
        unsafe { self.session.as_ref() }
    }

    const fn session_mut(&mut self) -> &mut SessionOf<K> {
        // SAFETY: as in `session`, and this reference to the device is the only one.
        unsafe { self.session.as_mut() }
    }

    const fn samples(&self) -> &SamplesOf<K> {
        // SAFETY: as in `session`.
        unsafe { self.samples.as_ref() }
    }

    const fn samples_mut(&mut self) -> &mut SamplesOf<K> {
        // SAFETY: as in `session_mut`.
        unsafe { self.samples.as_mut() }
    }

    /// The model, if one is there whole.
    fn current(&self) -> Result<Current<'_, K>, sf_status> {
        let model = self.session().model();
        model.map(Current).ok_or(sf_status::SF_NO_MODEL)
    }
}

impl<K: Kind> Client for Device<K> {
    fn is_pending(&self) -> bool {
        self.piece.is_pending()
    }

    fn outgoing(&self) -> &[u8] {
        self.session().outgoing()
    }

    fn sent(&mut self) {
        self.session_mut().sent();
    }

    fn receive(&mut self, bytes: &[u8]) -> usize {
        self.session_mut().receive(bytes)
    }

    fn timeout(&mut self) {
        self.session_mut().timeout();
    }

    fn phase(&self) -> Phase {
        self.session().phase()
    }

    fn train_some(&mut self, most: usize) -> Progress {
        // SAFETY: this reference to the device is the only one, and while a piece is pending
        // nothing else comes through.
        unsafe { self.piece.train(self.session, self.samples, most) }
    }

    fn participations(&self) -> u32 {
        self.session().ledger().past().participations
    }

    fn participations_left(&self) -> u32 {
        let budget = self.session().policy().limits.budget;
        budget.0.saturating_sub(self.participations())
    }

    fn last_round(&self) -> Option<&LastRound> {
        self.session().last_round()
    }

    fn refusals(&self) -> &Refusals {
        self.session().refusals()
    }

    fn set_window(&mut self, chunks: u8) {
        self.session_mut().set_window(chunks);
    }

    fn check_samples_may_change(&self) -> Result<(), sf_status> {
        match self.session().phase() {
            Phase::Training => Err(sf_status::SF_PHASE),
            _ => Ok(()),
        }
    }

    fn add_sample(&mut self, target: Target, fill: Fill<'_>) -> Result<(), sf_status> {
        let (target, scale) = (K::target(target).ok_or(sf_status::SF_TYPE)?, self.scale);
        let fill = |row: &mut [K::Feature]| fill(K::Feature::as_row(row), scale);
        self.samples_mut().push_with(target, fill)
    }

    fn forget_samples(&mut self) {
        self.samples_mut().clear();
    }

    fn kept(&self) -> (Features<'_>, usize) {
        let samples = self.samples();
        (K::Feature::typed(samples.kept()), samples.feature_count())
    }

    fn model_round(&self) -> Option<u32> {
        self.session().model().map(|model| model.round())
    }

    fn parameters(&self) -> Option<&[f32]> {
        self.session().model().map(|model| model.parameters())
    }

    fn predict(&self, features: Features<'_>, scores: Scores<'_>) -> Result<u16, sf_status> {
        self.current()?.predict(features, scores)
    }

    #[cfg(feature = "sleep")]
    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        Some(self)
    }

    fn link(&self, scores: Scores<'_>) -> Result<Link, sf_status> {
        self.current()?;
        K::scores(scores).ok_or(sf_status::SF_TYPE)?;
        Ok(K::LINK)
    }
}

#[cfg(feature = "sleep")]
impl<K: Kind> Sleeper for Device<K> {
    fn set_awake(&mut self, wake: Wake) {
        self.session_mut().set_awake(wake);
    }

    fn entries(&self) -> usize {
        self.entries
    }

    fn hold(&mut self, store: &mut FlashStore<Pages>) -> Result<bool, StoreError> {
        self.session().hold(store)
    }

    fn resume(&mut self, store: &mut FlashStore<Pages>) -> Result<bool, StoreError> {
        Ok(self.session_mut().resume(store)?.is_some())
    }

    fn release(&mut self, store: &mut FlashStore<Pages>) -> Result<bool, StoreError> {
        self.session().release(store)
    }
}

impl<K: Kind> Drop for Device<K> {
    fn drop(&mut self) {
        self.piece.finish();
        // SAFETY: `open` has put both there, and nobody finds them any more. The samples are in
        // memory of the caller, and have nothing to drop.
        unsafe { self.session.drop_in_place() };
    }
}
