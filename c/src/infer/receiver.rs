//! A device that only infers, for one kind of model: its memory, the download of model files,
//! predictions, and the refusal of samples.

use smolfed_core::{
    Progress,
    delivery::{Accepted, DeliveryError, ModelSlots, Receiver, slots::flash_bytes},
    predict::CurrentModel,
    provision::Recipient,
    recipe::Recipe,
    session::{LastRound, Phase, Trainable},
    wire::refusal::Refusals,
};

use super::sf_infer;
use crate::{
    client::{Client, Features, Fill, Link, Models, Scores, Target},
    kind::{Current, Kind},
    memory::{Layout, Memory},
    pages::Pages,
    pointer,
    random::Random,
    status::sf_status,
};

/// A device of a kind.
struct Device<K: Kind> {
    receiver: Receiver<Pages, Random>,
    model: K::Model,
    parameters: &'static mut [f32],
    /// The version with these parameters, or `None` if they are those of no model.
    loaded: Option<u32>,
}

/// The memory of a device of a kind.
pub(super) fn layout<K: Kind>(config: &sf_infer, layout: Layout) -> Result<Layout, sf_status> {
    let parameters = K::model(config.sizes())?.parameter_count();
    Ok(layout.with::<Device<K>>(1).with::<f32>(parameters))
}

/// The bytes of flash for the models of a kind, in the smallest pages.
pub(super) fn bytes_of_flash<K: Kind>(config: &sf_infer) -> Result<u32, sf_status> {
    let parameters = K::model(config.sizes())?.parameter_count();
    match flash_bytes(parameters, 1) {
        u32::MAX => Err(sf_status::SF_CONFIG),
        bytes => Ok(bytes),
    }
}

/// Opens a device of a kind.
#[inline(never)]
pub(super) fn open<K: Kind>(
    config: &sf_infer,
    memory: &mut Memory,
) -> Result<&'static mut dyn Client, sf_status> {
    let model = K::model(config.sizes())?;
    let place = memory.place::<Device<K>>()?;
    let parameters = memory.zeros(model.parameter_count())?;
    let accepted = Accepted {
        publisher: config.publisher()?,
        shape: model.shape().ok_or(sf_status::SF_CONFIG)?,
        recipe: recipe(config)?,
    };
    let Recipient { device, chain } = recipient(config)?;
    let slots = ModelSlots::open(Pages::new(config.models, config.pages()?)?, accepted)?;
    let device = place.write(Device::<K> {
        receiver: Receiver::new(device, chain, Random(config.random), slots),
        model,
        parameters,
        loaded: None,
    });
    device.load();
    Ok(device)
}

fn recipient(config: &sf_infer) -> Result<Recipient, sf_status> {
    // SAFETY: the firmware promises `sf_infer_open` that the record is there.
    let page = unsafe { pointer::slice(config.record, config.record_bytes) }?;
    Ok(Recipient::read(page)?)
}

/// The recipe of the features.
fn recipe(config: &sf_infer) -> Result<Option<Recipe>, sf_status> {
    // SAFETY: the firmware promises `sf_infer_open` that the recipe is there, if it is not null.
    unsafe {
        let count = usize::from(!config.recipe.is_null());
        match pointer::slice(config.recipe, count)? {
            [recipe, ..] => recipe.read().map(Some),
            [] => Ok(None),
        }
    }
}

impl<K: Kind> Device<K> {
    /// Loads a version that has been installed since. If the flash fails, the next call tries
    /// again.
    fn load(&mut self) {
        let version = self.receiver.version();
        if self.loaded == Some(version) {
            return;
        }
        let loaded = self.receiver.load(self.parameters);
        self.loaded = match loaded {
            Ok(loaded) => loaded.filter(|_| self.model_of(version).is_some()),
            // The parameters are unchanged, or a part of the new ones.
            Err(_) => None,
        };
    }

    /// The model with these parameters, which were checked when the file was.
    fn model_of(&self, version: u32) -> Option<Current<'_, K>> {
        let model = CurrentModel::new(version, &self.model, self.parameters);
        model.ok().map(Current)
    }

    fn current(&self) -> Result<Current<'_, K>, sf_status> {
        let model = self.loaded.and_then(|version| self.model_of(version));
        model.ok_or(sf_status::SF_NO_MODEL)
    }
}

impl<K: Kind> Client for Device<K> {
    fn is_pending(&self) -> bool {
        false
    }

    fn outgoing(&self) -> &[u8] {
        self.receiver.outgoing()
    }

    fn sent(&mut self) {
        self.receiver.sent();
    }

    fn receive(&mut self, bytes: &[u8]) -> usize {
        let count = self.receiver.receive(bytes);
        self.load();
        count
    }

    fn timeout(&mut self) {
        self.load();
        self.receiver.timeout();
    }

    fn phase(&self) -> Phase {
        self.receiver.phase()
    }

    fn train_some(&mut self, _: usize) -> Progress {
        Progress::Done
    }

    fn participations(&self) -> u32 {
        0
    }

    fn participations_left(&self) -> u32 {
        0
    }

    fn last_round(&self) -> Option<&LastRound> {
        None
    }

    fn refusals(&self) -> &Refusals {
        self.receiver.refusals()
    }

    fn set_window(&mut self, chunks: u8) {
        self.receiver.set_window(chunks);
    }

    fn check_samples_may_change(&self) -> Result<(), sf_status> {
        Err(sf_status::SF_ROLE)
    }

    fn add_sample(&mut self, _: Target, _: Fill<'_>) -> Result<(), sf_status> {
        Err(sf_status::SF_ROLE)
    }

    fn forget_samples(&mut self) {}

    fn kept(&self) -> (Features<'_>, usize) {
        (Features::F32(&[]), 0)
    }

    fn model_round(&self) -> Option<u32> {
        self.loaded
    }

    fn parameters(&self) -> Option<&[f32]> {
        self.loaded.map(|_| &*self.parameters)
    }

    fn predict(&self, features: Features<'_>, scores: Scores<'_>) -> Result<u16, sf_status> {
        self.current()?.predict(features, scores)
    }

    fn link(&self, scores: Scores<'_>) -> Result<Link, sf_status> {
        self.current()?;
        K::scores(scores).ok_or(sf_status::SF_TYPE)?;
        Ok(K::LINK)
    }

    fn models(&mut self) -> Option<&mut dyn Models> {
        Some(self)
    }
}

impl<K: Kind> Models for Device<K> {
    fn ask(&mut self) {
        self.receiver.ask();
    }

    fn install(&mut self, file: &[u8]) -> Result<u32, sf_status> {
        let version = self.receiver.slots().install(file)?;
        self.load();
        Ok(version)
    }

    fn refused(&self) -> Option<(u32, sf_status)> {
        let refused = self.receiver.refused();
        refused.map(|(version, error): (u32, DeliveryError)| (version, error.into()))
    }
}
