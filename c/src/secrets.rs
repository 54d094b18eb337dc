//! Where a device has its secrets: in the provisioning record, or in a secure element.

#[cfg(feature = "element")]
pub(crate) use in_element::{Secrets, public, read};
#[cfg(not(feature = "element"))]
pub(crate) use in_record::{Secrets, public, read};

#[cfg(not(feature = "element"))]
mod in_record {
    use smolfed_core::{
        provision::{ProvisionError, Record},
        stream::Root,
    };

    use crate::callbacks::sf_element;

    /// The root of the streams.
    pub(crate) type Secrets = Root;

    /// A record.
    pub(crate) fn read(page: &[u8], _: sf_element) -> Result<Record<'_>, ProvisionError> {
        Record::read(page)
    }

    /// A record without its secrets.
    pub(crate) fn public(page: &[u8]) -> Result<Record<'_>, ProvisionError> {
        Record::read(page)
    }
}

#[cfg(feature = "element")]
mod in_element {
    use smolfed_core::{
        element::{Element, ElementFault, SecretSlot, SecureElement},
        provision::{ProvisionError, Record},
    };

    use crate::callbacks::{sf_element, sf_slot};

    /// The secrets of the firmware's element.
    pub(crate) type Secrets = Element<Chip>;

    /// The element, by functions of the firmware.
    #[derive(Clone)]
    pub(crate) struct Chip(sf_element);

    const fn slot(slot: SecretSlot) -> sf_slot {
        match slot {
            SecretSlot::Root => sf_slot::SF_SLOT_ROOT,
            SecretSlot::Even => sf_slot::SF_SLOT_EVEN,
            SecretSlot::Odd => sf_slot::SF_SLOT_ODD,
        }
    }

    /// The number of a function of the firmware as a result.
    const fn done(answer: i32) -> Result<(), ElementFault> {
        match answer {
            0 => Ok(()),
            _ => Err(ElementFault),
        }
    }

    impl SecureElement for Chip {
        fn expand(
            &mut self,
            from: SecretSlot,
            info: &[u8],
            key: &mut [u8; 32],
        ) -> Result<(), ElementFault> {
            let (element, from) = (&self.0, slot(from));
            let expand = element.expand.ok_or(ElementFault)?;
            // SAFETY: the firmware promises `sf_open` that this function reads the info and writes
            // 32 bytes, and that it may be called with this context as long as the device is open.
            done(unsafe {
                let (info, count) = (info.as_ptr(), info.len());
                expand(element.context, from, info, count, key.as_mut_ptr())
            })
        }

        fn expand_into(
            &mut self,
            from: SecretSlot,
            info: &[u8],
            to: SecretSlot,
        ) -> Result<(), ElementFault> {
            let (element, from, to) = (&self.0, slot(from), slot(to));
            let expand_into = element.expand_into.ok_or(ElementFault)?;
            // SAFETY: as for `expand`. This one writes nothing.
            done(unsafe { expand_into(element.context, from, info.as_ptr(), info.len(), to) })
        }
    }

    /// A record, whose secrets are in this element.
    pub(crate) fn read(
        page: &[u8],
        element: sf_element,
    ) -> Result<Record<'_, Secrets>, ProvisionError> {
        Record::read_with(page, Chip(element))
    }

    /// A record without its secrets.
    pub(crate) fn public(page: &[u8]) -> Result<Record<'_, ()>, ProvisionError> {
        Record::read_public(page)
    }
}
