//! The configuration of a device (`sf_config`) and its checks.

use smolfed_core::provision;

use crate::{
    callbacks::{sf_element, sf_flash, sf_random},
    client::Client,
    memory::{Layout, Memory},
    pointer,
    recipe::sf_recipe,
    status::sf_status,
};

/// A kind of model. Programs use its address only.
pub struct sf_kind {
    /// The memory of a device, behind the device itself.
    pub(crate) layout: fn(&sf_config, Layout) -> Result<Layout, sf_status>,
    /// Opens a client in memory.
    pub(crate) open: fn(&sf_config, &mut Memory) -> Result<&'static mut dyn Client, sf_status>,
}

/// The offset of the first key in a provisioning record. After `sf_open` the ledger has the key,
/// and firmware overwrites it with zeros, without an erase.
pub const SF_FIRST_KEY_AT: usize = 8;

/// Bytes of the first key.
pub const SF_FIRST_KEY_BYTES: usize = 40;

const _: () = assert!(SF_FIRST_KEY_AT == provision::KEY.start);
const _: () = assert!(SF_FIRST_KEY_AT + SF_FIRST_KEY_BYTES == provision::KEY.end);

/// Writes are at multiples of this.
const WRITE_BYTES: u32 = 8;

/// The configuration of a device.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sf_config {
    /// The kind of model and its features, such as `&sf_softmax_i8`.
    pub kind: *const sf_kind,
    /// Features of a sample.
    pub features: u16,
    /// The classes of a softmax model, 2 or more. Other models ignore it.
    pub classes: u16,
    /// The number of samples that the device keeps.
    pub samples: u16,
    /// Binary places of integer features: an integer x stands for x · 2^-places. Models on `float`
    /// ignore it.
    pub places: u8,
    /// The computation of the features, which the coordinator compares with its experiment. Null if
    /// samples are features already.
    pub recipe: *const sf_recipe,
    /// The provisioning record.
    pub record: *const u8,
    /// Bytes of its page.
    pub record_bytes: usize,
    /// Flash of the ledger.
    pub ledger: sf_flash,
    /// The random generator.
    pub random: sf_random,
    /// The secure element, or all zeros.
    pub element: sf_element,
}

/// The sizes of a model.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) features: u16,
    pub(crate) classes: u16,
    pub(crate) places: u8,
}

impl sf_config {
    /// The sizes of the model.
    pub(crate) const fn sizes(&self) -> Sizes {
        Sizes {
            features: self.features,
            classes: self.classes,
            places: self.places,
        }
    }

    /// Whether the record and all functions are there.
    pub(crate) fn check(&self) -> Result<(), sf_status> {
        let flash = &self.ledger;
        let has_flash = flash.read.is_some() && flash.write.is_some() && flash.erase.is_some();
        if self.record.is_null() || !has_flash || self.random.fill.is_none() {
            return Err(sf_status::SF_POINTER);
        }
        // SAFETY: the firmware promises `sf_open` that the record is there.
        unsafe { pointer::slice(self.record, self.record_bytes) }?;
        let has_element = self.element.expand.is_some() || self.element.expand_into.is_some();
        let is_requested = flash.poll.is_some();
        if has_element && !cfg!(feature = "element") || is_requested && !cfg!(feature = "requested")
        {
            return Err(sf_status::SF_BUILD);
        }
        match flash.page_bytes.is_multiple_of(WRITE_BYTES) {
            true => Ok(()),
            false => Err(sf_status::SF_CONFIG),
        }
    }

    /// The memory of a device.
    pub(crate) fn layout(&self, layout: Layout) -> Result<Layout, sf_status> {
        if self.features == 0 || self.samples == 0 {
            return Err(sf_status::SF_CONFIG);
        }
        (self.kind()?.layout)(self, layout)
    }

    /// The kind of model.
    pub(crate) fn kind(&self) -> Result<&'static sf_kind, sf_status> {
        // SAFETY: `kind` is one of the library's constants, or null.
        match unsafe { pointer::slice(self.kind, 1) }? {
            [kind] => Ok(kind),
            _ => Err(sf_status::SF_POINTER),
        }
    }
}
