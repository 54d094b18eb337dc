//! A session on an asynchronous byte stream with the traits of `embedded-io-async`: what
//! [`Session::exchange`] and the firmware's loop do, for executors such as Embassy's.

use core::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
};

use embedded_io_async::{Read, Write};

use super::{
    Greeter, Session, exchange::READ_BYTES, pace::Pace, phase::Phase, trainable::Trainable,
};
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

/// The time of an executor.
pub trait Clock {
    /// Milliseconds since any moment, which begin anew after 2³².
    fn now_ms(&self) -> u32;

    /// Ends after so many milliseconds.
    fn wait(&self, ms: u32) -> impl Future<Output = ()>;
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
    /// What waits for an answer is repeated ([`Session::timeout`]) after the silence that `pace`
    /// has measured. Keep it with the session. With `embassy-time` a [`Clock`] is
    /// `Instant::now().as_millis() as u32` and `Timer::after_millis(ms.into())`.
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
    pub async fn drive<T: Read + Write>(
        &mut self,
        link: &mut T,
        pace: &mut Pace,
        clock: &impl Clock,
    ) -> Result<(), LinkLost<T::Error>> {
        if self.phase() == Phase::Silent {
            self.timeout();
        }
        if !core::mem::take(&mut pace.is_connected) {
            pace.connected(self.phase());
        }
        let result = self.follow(link, pace, clock).await;
        pace.is_connected = result.is_ok();
        result
    }

    async fn follow<T: Read + Write>(
        &mut self,
        link: &mut T,
        pace: &mut Pace,
        clock: &impl Clock,
    ) -> Result<(), LinkLost<T::Error>> {
        // The last frame before this call may have been cut short.
        write(link, &[0]).await?;
        let mut silence = pin!(clock.wait(pace.timeout_ms()));
        let mut buffer = [0; READ_BYTES];
        // What of it was not received yet, and whether what is to be sent was sent before.
        let (mut begin, mut end, mut is_repeated) = (0, 0, false);
        loop {
            let bytes = self.write_frames(link).await?;
            match core::mem::take(&mut is_repeated) {
                true => pace.repeated(),
                false if bytes > 0 => pace.sent(bytes, self.phase(), clock.now_ms()),
                false => {}
            }
            if bytes > 0 {
                silence.set(clock.wait(pace.timeout_ms()));
            }
            let rest = buffer.get(begin..end).unwrap_or_default();
            if !rest.is_empty() {
                let (taken, heard) = self.hear(rest);
                // At least one byte is taken.
                begin += taken.max(1);
                if pace.received(taken as u32, heard, clock.now_ms()) {
                    silence.set(clock.wait(pace.timeout_ms()));
                }
                continue;
            }
            if self.phase() == Phase::Training {
                return Ok(());
            }
            let Some(count) = before(silence.as_mut(), link.read(&mut buffer)).await else {
                let was_in_round = self.phase().is_in_round();
                self.timeout();
                is_repeated = !was_in_round || self.phase().is_in_round();
                if !is_repeated {
                    // It greets anew.
                    pace.connected(self.phase());
                }
                if self.outgoing().is_empty() {
                    silence.set(clock.wait(pace.timeout_ms()));
                }
                continue;
            };
            (begin, end) = (0, count?);
            if end == 0 {
                return Err(LinkLost::Closed);
            }
        }
    }

    /// Writes what is to be sent; how many bytes.
    async fn write_frames<T: Write>(&mut self, link: &mut T) -> Result<u32, LinkLost<T::Error>> {
        let mut bytes = 0;
        while !self.outgoing().is_empty() {
            bytes += self.outgoing().len() as u32;
            write(link, self.outgoing()).await?;
            link.flush().await?;
            self.sent();
        }
        Ok(bytes)
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
