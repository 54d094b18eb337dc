//! Pieces of a round with blocking flash: each ends with its call.

use core::{marker::PhantomData, ptr::NonNull};

use smolfed_core::{
    Progress,
    crypto::Key,
    ledger::{Ledger, LedgerError, LedgerNonce},
};

use crate::{
    flash::Flash,
    kind::{Kind, SamplesOf, SessionOf},
    memory::{Layout, Memory},
    status::sf_status,
};

/// The ledger, which begins with this key if its flash is blank.
pub(crate) fn open(
    flash: Flash,
    fresh: LedgerNonce,
    key: Option<Key>,
) -> Result<Ledger<Flash>, LedgerError> {
    Ledger::open_or_create(flash, fresh, key)
}

/// Pieces that end when the call does.
pub(crate) struct Piece<K>(PhantomData<fn(K)>);

impl<K: Kind> Piece<K> {
    pub(crate) const fn layout(layout: Layout) -> Layout {
        layout
    }

    pub(crate) const fn new(_: &mut Memory) -> Result<Self, sf_status> {
        Ok(Self(PhantomData))
    }

    pub(crate) const fn is_pending(&self) -> bool {
        false
    }

    /// # Safety
    /// Nobody else has the session or the samples until it returns.
    pub(crate) unsafe fn train(
        &mut self,
        mut session: NonNull<SessionOf<K>>,
        samples: NonNull<SamplesOf<K>>,
        most: usize,
    ) -> Progress {
        // SAFETY: the caller's precondition.
        unsafe { session.as_mut().train_some(samples.as_ref(), most) }
    }

    /// Waits for a pending piece. There is none.
    pub(crate) const fn finish(&mut self) {}
}
