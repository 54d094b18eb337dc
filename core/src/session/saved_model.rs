//! The newest model of a session in flash, so that the device can predict after a restart.
//!
//! The model of a round is saved before the round is recorded in the ledger. A power cut at any
//! time then leaves a model at least as new as the ledger, because the model of the previous round
//! stays in the other slot until the new one is complete.

use super::{Greeter, Phase, Session, Trainable};
use crate::{
    ledger::Past,
    personal::store::{PersonalStore, StateId, StateKind, StoreError, flash::FlashStore},
    predict::Predictor,
    secrets::Secrets,
};

impl<M: Trainable, F, R, K, V> Session<'_, M, F, R, K, V> {
    /// Returns the kind of the shared model in flash.
    fn shared(&self) -> Result<StateKind, StoreError> {
        let shape = self.conversation.device.model.shape().ok_or(StoreError)?;
        Ok(StateKind::Shared(shape.checksum()))
    }

    /// Returns the last round recorded in the ledger, or 0.
    const fn last_recorded(&self) -> u32 {
        let Past { next_round, .. } = self.conversation.device.ledger.past();
        next_round.saturating_sub(1)
    }
}

/// Saving and restoring on the flash of the module.
macro_rules! on_flash {
    (
        [$($async:tt $await:tt)?] $Store:ident: $newest:ident $load:ident $save:ident,
        $(#[$save_documentation:meta])* $save_model:ident,
        $(#[$restore_documentation:meta])* $restore_model:ident
    ) => {
        impl<M, F, R, K, V> Session<'_, M, F, R, K, V>
        where
            M: Trainable + Predictor,
            R: Greeter,
            K: PersonalStore,
            V: Secrets,
        {
            $(#[$save_documentation])*
            pub $($async)? fn $save_model<G: NorFlash>(
                &self,
                store: &mut FlashStore<G>,
            ) -> Result<bool, StoreError> {
                let (owner, kind) = (*self.ledger().nonce(), self.shared()?);
                let Some(model) = self.model() else {
                    return Ok(false);
                };
                let round = model.round();
                let before = store.$newest(kind, owner, u32::MAX)$(.$await)??;
                if before.is_some_and(|id| id.round == round) {
                    return Ok(false);
                }
                let id = StateId { kind, owner, round };
                store.$save(&id, model.parameters(), before.as_ref())$(.$await)??;
                Ok(true)
            }

            $(#[$restore_documentation])*
            pub $($async)? fn $restore_model<G: NorFlash>(
                &mut self,
                store: &mut FlashStore<G>,
            ) -> Result<Option<u32>, StoreError> {
                let (owner, kind) = (*self.ledger().nonce(), self.shared()?);
                if self.conversation.has_model || self.phase() != Phase::Silent {
                    return Ok(None);
                }
                let (oldest, mut end) = (self.last_recorded(), u32::MAX);
                while let Some(id) = store.$newest(kind, owner, end)$(.$await)??
                    && id.round >= oldest
                {
                    let Conversation { device, model_round, has_model, .. } =
                        &mut self.conversation;
                    let count = Trainable::parameter_count(&device.model);
                    let to = device.memory.global.get_mut(..count).ok_or(StoreError)?;
                    if store.$load(&id, to)$(.$await)??
                        && Predictor::check(&device.model, to).is_ok()
                    {
                        (*model_round, *has_model) = (id.round, true);
                        return Ok(Some(id.round));
                    }
                    // Its values are damaged.
                    end = id.round;
                }
                Ok(None)
            }
        }
    };
}

/// Blocking flash.
mod blocking {
    use super::{super::conversation::Conversation, *};
    use crate::personal::store::BlockingStore;
    use embedded_storage::nor_flash::NorFlash;

    on_flash! {
        [] BlockingStore: newest load save,
        /// Saves the model that [`Self::model`] lends, unless the store already has the model of
        /// that round. Returns whether it was written. Call it when the phase is
        /// [`Phase::Training`], before the first piece of [`Self::train_some`].
        ///
        /// Each new model erases and writes one of two slots. The parameters are public.
        ///
        /// # Errors
        /// Returns [`StoreError`] if the model was not saved. The previous one is still there.
        save_model,
        /// Loads the newest saved model, after a restart and before anything is sent. Returns its
        /// round. [`Self::model`] then lends it.
        ///
        /// Skips models of another shape or ledger, damaged or incomplete models, and models older
        /// than the last round in the ledger.
        ///
        /// # Errors
        /// Returns [`StoreError`] if the flash fails.
        restore_model
    }
}

/// Asynchronous flash.
#[cfg(feature = "async")]
mod awaited {
    use super::{super::conversation::Conversation, *};
    use crate::personal::store::AsyncStore;
    use embedded_storage_async::nor_flash::NorFlash;

    on_flash! {
        [async await] AsyncStore: newest_async load_async save_async,
        /// [`Self::save_model`] on asynchronous flash. Dropping the future has the effect of a
        /// power cut.
        ///
        /// # Errors
        /// As [`Self::save_model`].
        save_model_async,
        /// [`Self::restore_model`] on asynchronous flash.
        ///
        /// # Errors
        /// As [`Self::restore_model`].
        restore_model_async
    }
}
