//! Reasons why a board does not take part, with their texts for a console: record, ledger, build,
//! samples, recipe, model.

use core::ffi::CStr;

use smolfed_core::provision::ProvisionError;

/// Reason why a device does not take part. The text is in flash only on boards that print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no valid provisioning record.
    Record,
    /// There is no valid ledger.
    Ledger,
    /// The secure element did not answer, or its secrets do not match the record and the ledger.
    Element,
    /// The record requires device noise or hides its number, and this firmware was built without
    /// support.
    Build,
    /// The samples of the record have another number of features, or target values instead of
    /// classes.
    Samples,
    /// The record is for other features than this firmware computes.
    Recipe,
    /// The record has more samples than this firmware has room for.
    TooMany,
    /// A sample of the record has a class that the model does not have.
    Class,
    /// The start cannot be counted.
    Starts,
    /// The model is too large for the protocol.
    Model,
}

/// Converts the error of a record used in place: `record.as_mut()?`.
impl From<&mut ProvisionError> for Refused {
    fn from(error: &mut ProvisionError) -> Self {
        match error {
            #[cfg(feature = "element")]
            ProvisionError::Element => Self::Element,
            _ => Self::Record,
        }
    }
}

impl Refused {
    /// Returns the reason as text for a console.
    pub const fn text(self) -> &'static CStr {
        match self {
            Self::Record => c"refused: there is no valid provisioning record",
            Self::Ledger => c"refused: there is no valid ledger",
            Self::Element => c"refused: the secure element did not answer, or has other secrets",
            Self::Build => c"refused: noise or a pseudonym, which this firmware does not have",
            Self::Samples => c"refused: the record's samples are for another model",
            Self::Recipe => c"refused: the record is for other features than this firmware's",
            Self::TooMany => {
                c"refused: the record has more samples than this firmware has room for"
            }
            Self::Class => {
                c"refused: a sample of the record has a class that the model does not have"
            }
            Self::Starts => c"refused: the start counter",
            Self::Model => c"refused: the model is too large for the protocol",
        }
    }
}
