//! A session on an asynchronous byte stream with the traits of `embedded-io-async`: what
//! [`Session::exchange`] and the firmware's loop do, for executors such as Embassy's.

use core::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
};

use embedded_io_async::{Read, Write};

use super::{Greeter, Session, exchange::READ_BYTES, phase::Phase, trainable::Trainable};
use crate::{personal::store::PersonalStore, secrets::Secrets};

/// Why a stream is of no use any more: connect anew, and call [`Session::drive`] again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum LinkLost<E> {
    /// The other end has closed it.
    Closed,
    /// It failed.
    Failed(E),
}

impl<E> From<E> for LinkLost<E> {
    fn from(error: E) -> Self {
        Self::Failed(error)
    }
}

impl<E: core::fmt::Display> core::fmt::Display for LinkLost<E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Closed => f.write_str("the coordinator's end of the link was closed"),
            Self::Failed(error) => write!(f, "the link failed: {error}"),
        }
    }
}

impl<E: core::fmt::Debug + core::fmt::Display> core::error::Error for LinkLost<E> {}

impl<M, F, R, K, V> Session<'_, M, F, R, K, V>
where
    M: Trainable,
    R: Greeter,
    K: PersonalStore,
    V: Secrets,
{
    /// Follows the protocol on `link` until the firmware is to train: call [`Session::train`], and
    /// then this again.
    ///
    /// `patience` makes futures that end after the silence after which what waits for an answer is
    /// repeated ([`Session::timeout`]); half a second suits a serial line. With `embassy-time` it
    /// is `|| Timer::after_millis(500)`.
    ///
    /// A session outlives its link. After an error, connect anew and call this again with the same
    /// session: an update that was being sent goes on where the coordinator asks for it, as the
    /// same integers under the same noise, and the ledger has one participation. A session that
    /// was dropped has lost its update, and the round is spent.
    ///
    /// At a time-out the read that waits is dropped. Streams that lose bytes by this damage a
    /// frame, which is sent again; those of `embassy-nrf` and `embassy-rp` with a buffer lose none.
    /// The future itself may be dropped at any time: a frame that was cut short is sent again by
    /// the next call, after a zero that ends it.
    ///
    /// # Errors
    /// [`LinkLost`], in the middle of anything.
    pub async fn drive<T, P>(
        &mut self,
        link: &mut T,
        mut patience: impl FnMut() -> P,
    ) -> Result<(), LinkLost<T::Error>>
    where
        T: Read + Write,
        P: Future<Output = ()>,
    {
        if self.phase() == Phase::Silent {
            self.timeout();
        }
        // The last frame before this call may have been cut short.
        write(link, &[0]).await?;
        let mut silence = pin!(patience());
        let mut buffer = [0; READ_BYTES];
        loop {
            if self.write_frames(link).await? {
                silence.set(patience());
            }
            if self.phase() == Phase::Training {
                return Ok(());
            }
            let Some(count) = before(silence.as_mut(), link.read(&mut buffer)).await else {
                self.timeout();
                silence.set(patience());
                continue;
            };
            let mut rest = buffer.get(..count?).unwrap_or_default();
            if rest.is_empty() {
                return Err(LinkLost::Closed);
            }
            while !rest.is_empty() {
                // At least one byte is taken.
                let taken = self.receive(rest).max(1);
                rest = rest.get(taken..).unwrap_or_default();
                if self.write_frames(link).await? {
                    silence.set(patience());
                }
            }
        }
    }

    /// Writes what is to be sent; whether there was anything.
    async fn write_frames<T: Write>(&mut self, link: &mut T) -> Result<bool, LinkLost<T::Error>> {
        let mut sent = false;
        while !self.outgoing().is_empty() {
            write(link, self.outgoing()).await?;
            link.flush().await?;
            self.sent();
            sent = true;
        }
        Ok(sent)
    }
}

/// `write_all`, which panics where a stream takes nothing.
async fn write<T: Write>(link: &mut T, mut bytes: &[u8]) -> Result<(), LinkLost<T::Error>> {
    while !bytes.is_empty() {
        let written = link.write(bytes).await?;
        if written == 0 {
            return Err(LinkLost::Closed);
        }
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// What `awaited` gives, or `None` if `silence` ends first. When both are ready it is `None`, so
/// that nobody who floods the link holds back a time-out.
async fn before<F: Future>(
    mut silence: Pin<&mut impl Future<Output = ()>>,
    awaited: F,
) -> Option<F::Output> {
    let mut awaited = pin!(awaited);
    poll_fn(|context| match silence.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => awaited.as_mut().poll(context).map(Some),
    })
    .await
}
