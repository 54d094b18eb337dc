//! Devices that only infer (`sf_infer_open`): their configuration, the pages of flash for their
//! models, and the installation of signed model files (docs/delivery.md).

use smolfed_core::delivery::PublisherKey;

use crate::{
    callbacks::{sf_flash, sf_random},
    client::{Client, Models},
    config::Sizes,
    device::{answer, place, sf_device, with},
    memory::{Layout, Memory},
    pointer,
    recipe::sf_recipe,
    status::sf_status,
};

mod kinds;
mod receiver;

pub use kinds::*;

/// A kind of model of a device that only infers. Programs use its address only.
pub struct sf_infer_kind {
    /// The memory of a device, behind the device itself.
    layout: fn(&sf_infer, Layout) -> Result<Layout, sf_status>,
    /// The bytes of flash for its models.
    flash_bytes: fn(&sf_infer) -> Result<u32, sf_status>,
    /// Opens a client in memory.
    open: fn(&sf_infer, &mut Memory) -> Result<&'static mut dyn Client, sf_status>,
}

/// The configuration of a device that only infers. It needs a library with the feature `delivery`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sf_infer {
    /// The kind of model and its features, such as `&sf_infer_softmax_i8`.
    pub kind: *const sf_infer_kind,
    /// Features of a sample.
    pub features: u16,
    /// The classes of a softmax model, 2 or more. Other models ignore it.
    pub classes: u16,
    /// Binary places of integer features: an integer x stands for x · 2^-places. Models on `float`
    /// ignore it.
    pub places: u8,
    /// The computation of the features, which files must name. Null if samples are features
    /// already.
    pub recipe: *const sf_recipe,
    /// The provisioning record, from `smolfed provision --infer`. Its key never changes, so do not
    /// overwrite it.
    pub record: *const u8,
    /// Bytes of its page.
    pub record_bytes: usize,
    /// The public key of the publisher: the 32 bytes whose digits are in publisher.pub.
    pub publisher: *const u8,
    /// Flash of the models, with as many pages as `sf_infer_pages` says or more. The bytes of a
    /// page are a multiple of 64, and must not change in an update of the firmware. If its
    /// functions return `SF_FLASH_PENDING`, the device calls `poll` until they are done. This does
    /// not need the feature `requested`.
    pub models: sf_flash,
    /// The random generator. Each session needs 16 bytes of it that never repeat.
    pub random: sf_random,
}

impl sf_infer {
    const fn sizes(&self) -> Sizes {
        Sizes {
            features: self.features,
            classes: self.classes,
            places: self.places,
        }
    }

    /// The kind of model.
    fn kind(&self) -> Result<&'static sf_infer_kind, sf_status> {
        // SAFETY: `kind` is one of the library's constants, or null.
        match unsafe { pointer::slice(self.kind, 1) }? {
            [kind] if self.features > 0 => Ok(kind),
            [_] => Err(sf_status::SF_CONFIG),
            _ => Err(sf_status::SF_POINTER),
        }
    }

    fn layout(&self) -> Result<Layout, sf_status> {
        (self.kind()?.layout)(self, Layout::EMPTY.with::<sf_device>(1))
    }

    /// Pages of the flash, for two slots of whole pages.
    fn pages(&self) -> Result<u32, sf_status> {
        let bytes = (self.kind()?.flash_bytes)(self)?;
        let slot = (bytes / 2).div_ceil(self.models.page_bytes.max(1));
        Ok(2 * slot)
    }

    fn publisher(&self) -> Result<PublisherKey, sf_status> {
        // SAFETY: the firmware promises `sf_infer_open` that the key is there.
        let key = unsafe { pointer::slice(self.publisher, 32) }?;
        let key = key.first_chunk().and_then(PublisherKey::new);
        key.ok_or(sf_status::SF_SIGNATURE)
    }
}

/// # Safety
/// `config` is null or points to a configuration.
unsafe fn of<'a>(config: *const sf_infer) -> Result<&'a sf_infer, sf_status> {
    // SAFETY: the caller's precondition.
    match unsafe { pointer::slice(config, 1) }? {
        [config] => Ok(config),
        _ => Err(sf_status::SF_POINTER),
    }
}

/// Returns the bytes of memory that a device that only infers needs, or 0 if the configuration is
/// wrong.
///
/// Interrupts: yes. Longest time: constant.
///
/// # Safety
/// Preconditions: `config` is null or points to a configuration. The function reads only the kind
/// and the sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_infer_bytes(config: *const sf_infer) -> usize {
    // SAFETY: the caller's precondition.
    let layout = unsafe { of(config) }.and_then(sf_infer::layout);
    layout.ok().and_then(Layout::bytes).unwrap_or(0)
}

/// Returns the pages of flash that the models of a device need, or 0 if the configuration is wrong.
///
/// Interrupts: yes. Longest time: constant.
///
/// # Safety
/// Preconditions: `config` is null or points to a configuration. The function reads only the kind,
/// the sizes and the bytes of a page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_infer_pages(config: *const sf_infer) -> u32 {
    // SAFETY: the caller's precondition.
    unsafe { of(config) }.and_then(sf_infer::pages).unwrap_or(0)
}

/// Opens a device that only infers, in memory of the caller. It loads the newest model of its
/// flash. Blank flash has none.
///
/// The functions for the line, the model, predictions and the end are the same as on other devices.
/// Those that add or forget samples return `SF_ROLE`.
///
/// Interrupts: no, and no interrupt uses this device in the meantime. Longest time: reading two
/// model files and verifying two signatures.
///
/// # Safety
/// Preconditions: `memory` has `bytes` bytes at a multiple of 8, as many as `sf_infer_bytes` says
/// or more, which are the device's until `sf_close`. The contexts and the functions stay until then
/// as well. No other open device has the same flash of models.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_infer_open(
    memory: *mut u8,
    bytes: usize,
    config: *const sf_infer,
    device: *mut *mut sf_device,
) -> sf_status {
    let open = || {
        // SAFETY: the caller's precondition.
        let config = unsafe { of(config) }?;
        if config.record.is_null() || config.random.fill.is_none() {
            return Err(sf_status::SF_POINTER);
        }
        let (layout, kind) = (config.layout()?, config.kind()?);
        // SAFETY: the caller's precondition.
        unsafe { place(memory, bytes, layout, |memory| (kind.open)(config, memory)) }
    };
    // SAFETY: the caller's precondition.
    unsafe { answer(device, open) }
}

/// Calls with the models of a device that only infers.
///
/// # Safety
/// Those of [`with`].
unsafe fn with_models(
    device: *mut sf_device,
    call: impl FnOnce(&mut dyn Models) -> Result<(), sf_status>,
) -> sf_status {
    let call = |client: &mut dyn Client| call(client.models().ok_or(sf_status::SF_ROLE)?);
    // SAFETY: the caller's precondition.
    unsafe { with(device, call) }
}

/// Asks for a newer version, on a line where the coordinator cannot call: for example each hour. It
/// does nothing before the first session and during a transfer.
///
/// Interrupts: no. Longest time: composing a frame (docs/targets.md).
///
/// # Safety
/// Preconditions: as `sf_phase_of`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_infer_ask(device: *mut sf_device) -> sf_status {
    let ask = |models: &mut dyn Models| {
        models.ask();
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with_models(device, ask) }
}

/// Installs a whole model file that came by other means, and tells its version. If it refuses the
/// file, it keeps its model. A power cut at any time leaves the old model or the new one. A file
/// that arrives over the line meanwhile begins again.
///
/// Interrupts: no. Longest time: two verifications of a signature, and writing the file to flash.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `file` has `count` bytes outside of the flash of models, and
/// `version` is null or has room for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_infer_install(
    device: *mut sf_device,
    file: *const u8,
    count: usize,
    version: *mut u32,
) -> sf_status {
    let install = |models: &mut dyn Models| {
        // SAFETY: the caller's precondition.
        let installed = models.install(unsafe { pointer::slice(file, count) }?)?;
        // SAFETY: the caller's precondition.
        unsafe { pointer::answer(version, installed) };
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with_models(device, install) }
}

/// Tells the version of the last file from the line that the device refused, and the reason.
/// Version 0 and `SF_OK` if it has refused none since the last file from the line. Failures of the
/// flash are not refusals.
///
/// Interrupts: yes. Longest time: constant.
///
/// # Safety
/// Preconditions: as `sf_phase_of`. `version` and `reason` are null or have room for the answers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_infer_refused(
    device: *mut sf_device,
    version: *mut u32,
    reason: *mut sf_status,
) -> sf_status {
    let found = |models: &mut dyn Models| {
        let (refused, why) = models.refused().unwrap_or((0, sf_status::SF_OK));
        // SAFETY: the caller's precondition.
        unsafe {
            pointer::answer(version, refused);
            pointer::answer(reason, why);
        }
        Ok(())
    };
    // SAFETY: the caller's precondition.
    unsafe { with_models(device, found) }
}
