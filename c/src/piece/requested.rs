//! Pieces of a round with asynchronous flash, which a later call of `sf_train_some` continues.

use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    pin::{Pin, pin},
    ptr::NonNull,
    task::{Context, Poll, Waker},
};

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

/// Whether a future is ready. Nothing wakes anybody: the firmware asks again.
fn poll<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// The ledger, which begins with this key if its flash is blank. The start of a device waits.
pub(crate) fn open(
    flash: Flash,
    fresh: LedgerNonce,
    key: Option<Key>,
) -> Result<Ledger<Flash>, LedgerError> {
    let mut opened = pin!(Ledger::open_or_create_async(flash, fresh, key));
    loop {
        if let Poll::Ready(ledger) = poll(opened.as_mut()) {
            return ledger;
        }
    }
}

/// A piece of a round.
async fn train<K: Kind>(
    session: &'static mut SessionOf<K>,
    samples: &'static SamplesOf<K>,
    most: usize,
) -> Progress {
    session.train_some_async(samples, most).await
}

/// Memory for a future of this function.
fn place<A, B, F: 'static>(
    memory: &mut Memory,
    _: fn(A, B, usize) -> F,
) -> Result<NonNull<u8>, sf_status> {
    Ok(NonNull::from(memory.place::<F>()?).cast())
}

fn with_place<A, B, F>(layout: Layout, _: fn(A, B, usize) -> F) -> Layout {
    layout.with::<F>(1)
}

/// Where a future is, and the future if a piece is pending.
pub(crate) struct Piece<K> {
    place: NonNull<u8>,
    pending: Option<NonNull<dyn Future<Output = Progress>>>,
    kind: PhantomData<fn(K)>,
}

impl<K: Kind> Piece<K> {
    pub(crate) fn layout(layout: Layout) -> Layout {
        with_place(layout, train::<K>)
    }

    pub(crate) fn new(memory: &mut Memory) -> Result<Self, sf_status> {
        Ok(Self {
            place: place(memory, train::<K>)?,
            pending: None,
            kind: PhantomData,
        })
    }

    pub(crate) const fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Continues the pending piece, or begins one with at most `most` samples.
    ///
    /// # Safety
    /// Nobody else has the session or the samples until it returns, and while a piece is pending.
    pub(crate) unsafe fn train(
        &mut self,
        mut session: NonNull<SessionOf<K>>,
        samples: NonNull<SamplesOf<K>>,
        most: usize,
    ) -> Progress {
        let mut pending = match self.pending {
            Some(pending) => pending,
            None => {
                // SAFETY: the caller's precondition. They are there until the device is closed,
                // which finishes the piece first.
                let future = unsafe { train::<K>(session.as_mut(), samples.as_ref(), most) };
                let begun: NonNull<dyn Future<Output = Progress>> = begin(self.place, future);
                *self.pending.insert(begun)
            }
        };
        // SAFETY: it is in its place, which nobody else has, until `forget` drops it there.
        match poll(unsafe { Pin::new_unchecked(pending.as_mut()) }) {
            Poll::Ready(progress) => {
                self.forget();
                progress
            }
            Poll::Pending => Progress::More,
        }
    }

    /// Waits for the pending piece, because the flash has pointers into it.
    pub(crate) fn finish(&mut self) {
        if let Some(mut pending) = self.pending {
            // SAFETY: as in `train`.
            while poll(unsafe { Pin::new_unchecked(pending.as_mut()) }).is_pending() {}
            self.forget();
        }
    }

    /// Drops a ready future.
    fn forget(&mut self) {
        if let Some(pending) = self.pending.take() {
            // SAFETY: it is there, and nobody finds it any more.
            unsafe { pending.drop_in_place() };
        }
    }
}

/// Puts a future into its place, which is for one of its type.
fn begin<F: Future<Output = Progress> + 'static>(
    place: NonNull<u8>,
    future: F,
) -> NonNull<dyn Future<Output = Progress>> {
    let mut place: NonNull<MaybeUninit<F>> = place.cast();
    // SAFETY: `Piece::new` took memory for one value of this type, aligned, in which no other
    // future is: `train` begins one only when none is pending.
    let written: &'static mut F = unsafe { place.as_mut() }.write(future);
    NonNull::from(written)
}
