//! A device that trains, for one kind of model: its memory, its session and ledger, its samples,
//! and its model for predictions.

use core::{mem::MaybeUninit, ptr::NonNull};

use smolfed_core::{
    Progress,
    crypto::Key,
    fixed_point::FeatureScale,
    identity::Identity,
    ledger::{Budget, Ledger},
    provision::{Record, Stored},
    samples::{SampleRows, Samples},
    session::{LastRound, Memory as Vectors, Phase, Policy, Session, Trainable},
    train::Workspace,
    wire::refusal::Refusals,
};

use crate::{
    client::{Client, Features, Scores, Target},
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

/// A device of a kind. The fields that a pending piece uses are behind pointers.
struct Device<K: Kind> {
    session: NonNull<SessionOf<K>>,
    samples: NonNull<SamplesOf<K>>,
    piece: Piece<K>,
    /// Of the features.
    scale: FeatureScale,
    /// Participations in all.
    budget: Budget,
}

/// The memory of a device of a kind.
pub(crate) fn layout<K: Kind>(config: &sf_config, layout: Layout) -> Result<Layout, sf_status> {
    let model = K::model(config.sizes())?;
    let (parameters, samples) = (model.parameter_count(), usize::from(config.samples));
    let features = samples.checked_mul(config.features.into());
    let layout = layout
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
#[inline(never)]
pub(crate) fn open<K: Kind>(
    config: &sf_config,
    memory: &mut Memory,
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
    let (recipe, ledger, owner) = (recipe(config)?, ledger(config)?, owner(config)?);
    let (budget, random) = (owner.1.limits.budget, Random(config.random));
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
        budget,
    }))
}

/// A session in its place. A function, so that the ledger is read before there is one on the stack.
#[inline(never)]
fn begin<K: Kind>(
    place: &'static mut MaybeUninit<SessionOf<K>>,
    (identity, policy): (Identity<Secrets>, Policy),
    model: K::Model,
    vectors: Vectors<'static>,
    ledger: Ledger<Flash>,
    random: Random,
) -> Result<&'static mut SessionOf<K>, sf_status> {
    let session = Session::new(identity, policy, model, vectors, ledger, random)?;
    Ok(place.write(session))
}

/// The record of a configuration.
fn record(config: &sf_config) -> Result<Record<'_, Secrets>, sf_status> {
    // SAFETY: the firmware promises `sf_open` that the record is there.
    let page = unsafe { pointer::slice(config.record, config.record_bytes) }?;
    Ok(secrets::read(page, config.element)?)
}

/// The ledger, which the device begins at its first start with the key of its record.
#[inline(never)]
fn ledger(config: &sf_config) -> Result<Ledger<Flash>, sf_status> {
    let (mut random, mut nonce) = (Random(config.random), [0; 8]);
    let Ok(()) = rand_core::TryRng::try_fill_bytes(&mut random, &mut nonce);
    let key = first_key(config)?;
    piece::open(Flash(config.ledger), nonce, key).map_err(sf_status::from)
}

/// The key of the record, if it has one still.
#[inline(never)]
fn first_key(config: &sf_config) -> Result<Option<Key>, sf_status> {
    let record = record(config);
    let record = record.as_ref().map_err(|status| *status)?;
    Ok(record.key.clone())
}

/// The identity and the policy of the device.
#[inline(never)]
fn owner(config: &sf_config) -> Result<(Identity<Secrets>, Policy), sf_status> {
    // Used where it is: moved out, its secrets would be on the stack twice.
    let record = record(config);
    let record = record.as_ref().map_err(|status| *status)?;
    Ok((record.identity.clone(), record.policy))
}

/// The questions that the device answers.
#[cfg(feature = "questions")]
#[inline(never)]
fn questions(config: &sf_config) -> Result<smolfed_core::session::QuestionPolicy, sf_status> {
    let record = record(config);
    let record = record.as_ref().map_err(|status| *status)?;
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
    let named = record(config)?.samples.recipe();
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

    const fn kept(&self) -> &SamplesOf<K> {
        // SAFETY: as in `session`.
        unsafe { self.samples.as_ref() }
    }

    const fn kept_mut(&mut self) -> &mut SamplesOf<K> {
        // SAFETY: as in `session_mut`.
        unsafe { self.samples.as_mut() }
    }

    /// A round trains on the samples with which it began.
    fn between_rounds(&self) -> Result<(), sf_status> {
        match self.session().phase() {
            Phase::Training => Err(sf_status::SF_PHASE),
            _ => Ok(()),
        }
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
        self.budget.0.saturating_sub(self.participations())
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

    fn add_sample(&mut self, features: Features<'_>, target: Target) -> Result<(), sf_status> {
        self.between_rounds()?;
        let (Some(features), Some(target)) = (K::features(features), K::target(target)) else {
            return Err(sf_status::SF_TYPE);
        };
        Ok(self.kept_mut().push(features, target)?)
    }

    fn add_stored(&mut self, samples: &Stored<'_>) -> Result<(), sf_status> {
        self.between_rounds()?;
        // Raw ones, of which the firmware computes features.
        if !samples.recipe().is_empty() {
            return Err(sf_status::SF_RECIPE);
        }
        // Of no kind, if the device has its own data.
        if samples.is_empty() {
            return Ok(());
        }
        let samples = samples.in_place::<K::Target>()?;
        let scale = self.scale;
        for index in 0..samples.len() {
            let (features, target) = (samples.features(index), samples.target(index));
            self.kept_mut().push_numbers(features, scale, target)?;
        }
        Ok(())
    }

    fn forget_samples(&mut self) -> Result<(), sf_status> {
        self.between_rounds()?;
        self.kept_mut().clear();
        Ok(())
    }

    fn samples(&self) -> [usize; 3] {
        let samples = self.kept();
        [
            samples.len(),
            samples.constant_features(),
            samples.saturated_features(),
        ]
    }

    fn model_round(&self) -> Option<u32> {
        self.session().model().map(|model| model.round())
    }

    fn parameters(&self) -> Option<&[f32]> {
        self.session().model().map(|model| model.parameters())
    }

    fn scores(&self, features: Features<'_>, scores: Scores<'_>) -> Result<(), sf_status> {
        self.current()?.scores(features, scores)
    }

    fn class(&self, scores: Scores<'_>) -> Result<u16, sf_status> {
        self.current()?.class(scores)
    }

    fn probabilities(&self, scores: Scores<'_>) -> Result<(), sf_status> {
        self.current()?.probabilities(scores)
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
