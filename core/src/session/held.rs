//! A waiting update in flash, for a device that loses its RAM in deep sleep.
//!
//! Without it, a device that sleeps before its update has arrived has spent the participation,
//! because the ledger never admits the round again. With it, the device sends the same integers at
//! a later wake in a new session, like a session that never slept. States of an update:
//!
//! | state | in the ledger | in flash |
//! | --- | --- | --- |
//! | asked | no | nothing |
//! | training | yes | nothing: no noise covers the update yet |
//! | holding | yes | the update, after [`Session::hold`] |
//! | acknowledged, aborted or superseded | yes | nothing, after [`Session::release`] |
//!
//! After a power cut at any time a device has the whole update or none. Without the update the
//! device declines the round as one that its ledger already has. It never sends other integers for
//! the round.
//!
//! **Under central trust the update is exact.** The flash then holds private data until the release
//! erases it: anyone who reads the flash has the update without noise. Under local trust it has its
//! noise. Masked updates are not held.
//!
//! Steps of a wake: open the session, call [`Session::resume`], exchange messages and train, call
//! [`Session::hold`] once an update is there, call [`Session::release`], and sleep.

use super::{
    Greeter, Phase, Session, Trainable, build,
    round::{DETAILS, Round, held_values},
};
use crate::{
    ledger::Past,
    personal::store::{
        PersonalStore, StateId, StoreError,
        flash::{FlashStore, flash_bytes, held::HeldSlot},
    },
    secrets::Secrets,
};

/// Bytes of flash for a held update of `entries` entries, on flash with erase blocks of
/// `erase_size` bytes. An update never has more entries than the model has parameters.
pub const fn held_bytes(entries: usize, erase_size: usize) -> u32 {
    flash_bytes(held_values(entries), erase_size)
}

impl<M: Trainable, F, R, K, V> Session<'_, M, F, R, K, V> {
    /// Whether the device has an update to send that the coordinator has not acknowledged. Only a
    /// new round or the coordinator ends this state.
    pub const fn has_unsent_update(&self) -> bool {
        match &self.conversation.round {
            Some(round) => round.is_covered(),
            None => false,
        }
    }

    /// Returns the waiting update, if it may be held.
    fn waiting(&self) -> Option<(&Round<M::Descent>, StateId)> {
        let round = self.conversation.round.as_ref()?;
        let id = round.held_id(self.conversation.device.ledger.nonce())?;
        Some((round, id))
    }

    /// Whether a held update belongs to the last participation of this ledger.
    fn is_of_last_round(&self, id: &StateId) -> bool {
        let ledger = &self.conversation.device.ledger;
        let Past { next_round, .. } = ledger.past();
        id.owner == *ledger.nonce() && id.round.checked_add(1) == Some(next_round)
    }

    /// Whether this device can send the update of a round.
    fn can_send(&self, round: &Round<M::Descent>) -> bool {
        let (device, invitation) = (&self.conversation.device, &round.invitation);
        device.model.shape() == Some(invitation.shape)
            && invitation.masks.is_none()
            && build::check(invitation).is_ok()
    }
}

/// Holding and resuming on the flash of the module.
macro_rules! on_flash {
    (
        [$($async:tt $await:tt)?] $held:ident $read:ident $write:ident $erase:ident,
        $(#[$hold_documentation:meta])* $hold:ident,
        $(#[$resume_documentation:meta])* $resume:ident,
        $(#[$release_documentation:meta])* $release:ident
    ) => {
        impl<M, F, R, K, V> Session<'_, M, F, R, K, V>
        where
            M: Trainable,
            R: Greeter,
            K: PersonalStore,
            V: Secrets,
        {
            $(#[$hold_documentation])*
            pub $($async)? fn $hold<G: NorFlash>(
                &self,
                store: &mut FlashStore<G>,
            ) -> Result<bool, StoreError> {
                let Some((round, id)) = self.waiting() else {
                    return Ok(false);
                };
                if store.$held()$(.$await)??.is_some_and(|held| *held.id() == id) {
                    return Ok(false);
                }
                let [low, high] = round.halves(&self.conversation.device).ok_or(StoreError)?;
                // The slots take turns.
                let slot = self.ledger().past().participations;
                store.$write(&id, slot, [&round.details(), low, high])$(.$await)??;
                Ok(true)
            }

            $(#[$resume_documentation])*
            pub $($async)? fn $resume<G: NorFlash>(
                &mut self,
                store: &mut FlashStore<G>,
            ) -> Result<Option<u32>, StoreError> {
                if self.phase() != Phase::Silent || self.conversation.round.is_some() {
                    return Ok(None);
                }
                let Some(held) = store.$held()$(.$await)?? else {
                    return Ok(None);
                };
                if !self.is_of_last_round(held.id()) {
                    return Ok(None);
                }
                let resumed = read(self, store, &held)$(.$await)??;
                let number = resumed.as_ref().map(|round| round.number);
                self.conversation.round = resumed;
                Ok(number)
            }

            $(#[$release_documentation])*
            pub $($async)? fn $release<G: NorFlash>(
                &self,
                store: &mut FlashStore<G>,
            ) -> Result<bool, StoreError> {
                if self.phase() == Phase::Silent {
                    return Ok(false);
                }
                let held = store.$held()$(.$await)??;
                let is_of = |held: HeldSlot| self.waiting().is_some_and(|(_, id)| id == *held.id());
                if held.is_some_and(is_of) {
                    return Ok(false);
                }
                store.$erase()$(.$await)?
            }
        }

        /// Reads a held update into the memory of the session. `None` if it is damaged, or if the
        /// device cannot send it.
        $($async)? fn read<M: Trainable, F, R, K, V, G: NorFlash>(
            session: &mut Session<'_, M, F, R, K, V>,
            store: &mut FlashStore<G>,
            held: &HeldSlot,
        ) -> Result<Option<Round<M::Descent>>, StoreError> {
            let mut details = [0; DETAILS];
            if !store.$read(held, &[], &mut details)$(.$await)?? {
                return Ok(None);
            }
            let round = Round::from_details(held.id(), &details);
            let Some(round) = round.filter(|round| session.can_send(round)) else {
                return Ok(None);
            };
            let Some([low, high]) = round.halves_mut(&mut session.conversation.device) else {
                return Ok(None);
            };
            if !store.$read(held, &[DETAILS], low)$(.$await)??
                || !store.$read(held, &[DETAILS, low.len()], high)$(.$await)??
                || !held.has_parts([&details, low, high])
            {
                return Ok(None);
            }
            Ok(Some(round))
        }
    };
}

/// Blocking flash.
mod blocking {
    use super::*;
    use embedded_storage::nor_flash::NorFlash;

    on_flash! {
        [] held read_held write_held erase_held,
        /// Writes the waiting update, unless the store has it already. Returns whether it was
        /// written. Call it when the phase is [`Phase::Sending`], at the latest before the device
        /// loses its RAM. It only ever writes a covered update, never an intermediate result of
        /// training.
        ///
        /// An update with masks is not written: the result is `false`, and the participation is
        /// lost with the RAM. Under central trust the update is exact, and so is the copy in flash.
        ///
        /// The store has no other use. It takes [`held_bytes`] of flash. The previous update is
        /// erased first, and the two slots take turns. Each update erases its slot before the write
        /// and at the release.
        ///
        /// # Errors
        /// Returns [`StoreError`] if the flash fails or has no room. The update in RAM is still
        /// sent.
        hold,
        /// Restores the held update, after a restart and before anything is sent. Returns the
        /// number of its round. When the invitation of that number and checksum comes again, the
        /// device sends the same integers, and the ledger does not change.
        ///
        /// It skips updates of another ledger or shape, updates of any round but the last one of
        /// the ledger, damaged or incomplete updates, and updates that this build cannot send.
        ///
        /// # Errors
        /// Returns [`StoreError`] if the flash fails.
        resume,
        /// Erases the held update if the session no longer waits to send it: the coordinator
        /// acknowledged it or gave it up, or another round has begun. It also erases parts of an
        /// update whose write or erase was interrupted. Returns whether anything was erased.
        /// Otherwise it reads both slots once, so a firmware can call it at each wake.
        ///
        /// It does nothing before the session has sent anything: [`Self::resume`] comes first.
        ///
        /// # Errors
        /// Returns [`StoreError`] if the flash fails. Call it again.
        release
    }
}

/// Asynchronous flash.
#[cfg(feature = "async")]
mod awaited {
    use super::*;
    use embedded_storage_async::nor_flash::NorFlash;

    on_flash! {
        [async await] held_async read_held_async write_held_async erase_held_async,
        /// [`Self::hold`] on asynchronous flash. Dropping the future has the effect of a power cut.
        ///
        /// # Errors
        /// As [`Self::hold`].
        hold_async,
        /// [`Self::resume`] on asynchronous flash.
        ///
        /// # Errors
        /// As [`Self::resume`].
        resume_async,
        /// [`Self::release`] on asynchronous flash. Dropping the future has the effect of a power
        /// cut.
        ///
        /// # Errors
        /// As [`Self::release`].
        release_async
    }
}
