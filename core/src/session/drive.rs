//! A session on an asynchronous byte stream with the traits of `embedded-io-async`: the work of
//! [`Session::exchange`] and of the firmware's loop, for executors such as Embassy's.

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

/// Why a stream is no longer usable. Reconnect, and call [`Session::drive`] again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum LinkLost<E> {
    /// The other end has closed the stream.
    Closed,
    /// The stream failed.
    Failed(E),
}

/// The clock of an executor.
pub trait Clock {
    /// Returns milliseconds since an arbitrary moment, wrapping at 2³².
    fn now_ms(&self) -> u32;

    /// Completes after `ms` milliseconds.
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
            Self::Closed => f.write_str("the coordinator closed the link"),
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
    /// Follows the protocol on `link` until the firmware has to train. Then call
    /// [`Session::train`], and this again.
    ///
    /// The message that waits for an answer is repeated ([`Session::timeout`]) after the silence
    /// measured by `pace`. Keep `pace` with the session. With `embassy-time` a [`Clock`] is
    /// `Instant::now().as_millis() as u32` and `Timer::after_millis(ms.into())`.
    ///
    /// A session outlives its link. After an error, reconnect and call this again with the same
    /// session. An interrupted update resumes where the coordinator asks for it, with the same
    /// integers under the same noise, and the ledger has one participation. A dropped session has
    /// lost its update, and the round is spent.
    ///
    /// A time-out drops the pending read. Streams that lose bytes by this damage a frame, which is
    /// sent again. The buffered streams of `embassy-nrf` and `embassy-rp` lose none. The future
    /// itself may be dropped at any time. The next call sends an interrupted frame again, after a
    /// zero that ends it.
    ///
    /// # Errors
    /// Returns [`LinkLost`] at any point of the protocol.
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
        // The unread part of the buffer, and whether the outgoing bytes were sent before.
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
                    // It starts with a new greeting.
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

    /// Writes all outgoing frames, and returns the number of bytes.
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

/// `write_all` without its panic on a stream that takes no bytes.
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

/// Returns the output of `awaited`, or `None` if `silence` ends first. `None` wins if both are
/// ready, so that nobody can delay a time-out by flooding the link.
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
