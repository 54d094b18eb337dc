//! The results of functions: error codes (`sf_status`) and their texts (`sf_strerror`), and the
//! code of each error of the core.

use core::ffi::{CStr, c_char};

#[cfg(feature = "delivery")]
use smolfed_core::delivery::DeliveryError;
use smolfed_core::{
    ledger::LedgerError, model::ModelError, provision::ProvisionError, samples::SampleError,
    session::SessionError,
};

/// The result of a function: 0 for success, or the reason why nothing was done.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sf_status {
    /// Success.
    SF_OK = 0,
    /// A pointer is null or not aligned.
    SF_POINTER = 1,
    /// The memory does not contain an open device.
    SF_NO_DEVICE = 2,
    /// Another call is under way, of an interrupt or a thread. A processor without atomic exchange
    /// (Cortex-M0, RV32IMC) does not notice other threads: use the device from one thread there.
    SF_BUSY = 3,
    /// The memory is too small, or does not begin at a multiple of 8 bytes.
    SF_MEMORY = 4,
    /// A size of the configuration is 0 or too large, or the places do not suit the features.
    SF_CONFIG = 5,
    /// The provisioning record is missing, cut or damaged, or of another version. Or it is for the
    /// other kind of device: one that trains, or one that only infers.
    SF_RECORD = 6,
    /// The flash failed, or is too small.
    SF_FLASH = 7,
    /// The ledger is blank, and the record has no first key to begin one with.
    SF_LEDGER_BLANK = 8,
    /// The ledger is damaged. The device must not take part.
    SF_LEDGER_DAMAGED = 9,
    /// This library was built without what the record or the configuration asks for: noise of the
    /// device's own, a pseudonym, asynchronous flash or a secure element. The ledger may have
    /// begun.
    SF_BUILD = 10,
    /// Not while a round is under way.
    SF_PHASE = 11,
    /// The model has features or targets of another type.
    SF_TYPE = 12,
    /// The model has another number of features or scores.
    SF_LENGTH = 13,
    /// A value is not finite.
    SF_NOT_FINITE = 14,
    /// The class is not below the number of classes, or the value is not finite.
    SF_TARGET = 15,
    /// The device has no model yet.
    SF_NO_MODEL = 16,
    /// No round has ended yet.
    SF_NO_ROUND = 17,
    /// The recipe is of another kind of features, or differs from the recipe of the record. Or the
    /// samples of the record are raw.
    SF_RECIPE = 18,
    /// The flash is not done. Call `sf_train_some`.
    SF_PENDING = 19,
    /// The secure element is missing, did not answer, or has other secrets.
    SF_ELEMENT = 20,
    /// A device that only infers has no samples, and a device that trains has no model files.
    SF_ROLE = 21,
    /// The file is not a model file, or is for a model of another shape, or a parameter is not a
    /// number.
    SF_FILE = 22,
    /// The signature is not the publisher's, or the file is damaged. Or the publisher's key is
    /// invalid.
    SF_SIGNATURE = 23,
    /// The device has this version or a newer one.
    SF_OLD = 24,
}

use sf_status::{
    SF_BUILD, SF_CONFIG, SF_ELEMENT, SF_FLASH, SF_LEDGER_BLANK, SF_LEDGER_DAMAGED, SF_LENGTH,
    SF_NOT_FINITE, SF_RECORD, SF_TARGET,
};

impl sf_status {
    /// The status of a result.
    pub(crate) fn of(result: Result<(), Self>) -> Self {
        result.err().unwrap_or(Self::SF_OK)
    }

    /// In words.
    const fn text(self) -> &'static CStr {
        match self {
            Self::SF_OK => c"success",
            Self::SF_POINTER => c"a pointer is null or not aligned",
            Self::SF_NO_DEVICE => c"the memory is no open device",
            Self::SF_BUSY => c"another call is under way",
            Self::SF_MEMORY => c"the memory is too small, or not at a multiple of 8 bytes",
            SF_CONFIG => c"a size of the configuration is 0 or too large, or the places are",
            SF_RECORD => c"the provisioning record is missing, damaged or of another version",
            SF_FLASH => c"the flash failed, or is too small",
            SF_LEDGER_BLANK => c"the ledger is blank and cannot be begun: provision the device",
            SF_LEDGER_DAMAGED => c"the ledger is damaged: provision the device again",
            SF_BUILD => {
                c"this library was built without what the record or the configuration asks for"
            }
            Self::SF_PHASE => c"not while a round is under way",
            Self::SF_TYPE => c"the model has features or targets of another type",
            SF_LENGTH => c"another number of features or scores than the model has",
            SF_NOT_FINITE => c"a value is not finite",
            SF_TARGET => c"the class or the value of a sample is none of the model",
            Self::SF_NO_MODEL => c"no model has come down yet",
            Self::SF_NO_ROUND => c"no round has ended yet",
            Self::SF_RECIPE => c"the recipe is of other features, or not that of the record",
            Self::SF_PENDING => c"the flash is not done",
            SF_ELEMENT => c"the secure element is missing, or has other secrets",
            Self::SF_ROLE => c"not for a device with this role",
            Self::SF_FILE => c"no model file, or one for a model of another shape",
            Self::SF_SIGNATURE => c"the signature is not the publisher's",
            Self::SF_OLD => c"the device has this version or a newer one",
        }
    }
}

/// Returns a status in words, as a constant text. An unknown number has a text as well.
///
/// Interrupts: yes. Longest time: constant.
#[unsafe(no_mangle)]
pub extern "C" fn sf_strerror(status: i32) -> *const c_char {
    let all = [
        sf_status::SF_OK,
        sf_status::SF_POINTER,
        sf_status::SF_NO_DEVICE,
        sf_status::SF_BUSY,
        sf_status::SF_MEMORY,
        SF_CONFIG,
        SF_RECORD,
        SF_FLASH,
        SF_LEDGER_BLANK,
        SF_LEDGER_DAMAGED,
        SF_BUILD,
        sf_status::SF_PHASE,
        sf_status::SF_TYPE,
        SF_LENGTH,
        SF_NOT_FINITE,
        SF_TARGET,
        sf_status::SF_NO_MODEL,
        sf_status::SF_NO_ROUND,
        sf_status::SF_RECIPE,
        sf_status::SF_PENDING,
        SF_ELEMENT,
        #[cfg(feature = "delivery")]
        sf_status::SF_ROLE,
        #[cfg(feature = "delivery")]
        sf_status::SF_FILE,
        #[cfg(feature = "delivery")]
        sf_status::SF_SIGNATURE,
        #[cfg(feature = "delivery")]
        sf_status::SF_OLD,
    ];
    let known = all.iter().find(|known| **known as i32 == status);
    known
        .map_or(c"no status of this library", |known| known.text())
        .as_ptr()
}

impl From<SampleError> for sf_status {
    fn from(error: SampleError) -> Self {
        match error {
            SampleError::NotFinite { .. } => SF_NOT_FINITE,
            SampleError::Target => SF_TARGET,
            _ => SF_LENGTH,
        }
    }
}

impl From<ModelError> for sf_status {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::NotFinite => SF_NOT_FINITE,
            _ => SF_LENGTH,
        }
    }
}

impl From<LedgerError> for sf_status {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Blank => SF_LEDGER_BLANK,
            LedgerError::Element => SF_ELEMENT,
            LedgerError::Flash | LedgerError::Geometry => SF_FLASH,
            _ => SF_LEDGER_DAMAGED,
        }
    }
}

impl From<ProvisionError> for sf_status {
    fn from(error: ProvisionError) -> Self {
        match error {
            ProvisionError::Element => SF_ELEMENT,
            _ => SF_RECORD,
        }
    }
}

impl From<SessionError> for sf_status {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Build => SF_BUILD,
            SessionError::Element => SF_ELEMENT,
            _ => SF_CONFIG,
        }
    }
}

#[cfg(feature = "delivery")]
impl From<DeliveryError> for sf_status {
    fn from(error: DeliveryError) -> Self {
        match error {
            DeliveryError::Recipe => Self::SF_RECIPE,
            DeliveryError::Signature => Self::SF_SIGNATURE,
            DeliveryError::Old => Self::SF_OLD,
            DeliveryError::Room | DeliveryError::Flash => SF_FLASH,
            _ => Self::SF_FILE,
        }
    }
}
