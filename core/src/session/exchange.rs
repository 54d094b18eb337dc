//! A session on a byte stream with the traits of `embedded-io`: the number of bytes read at a time,
//! and the maximum number of bytes per call.

use embedded_io::{Read, ReadReady, Write};

use super::{Greeter, Session, phase::Phase, trainable::Trainable};
use crate::{personal::store::PersonalStore, secrets::Secrets, wire::FRAME_BYTES};

/// Number of bytes read from the stream at a time.
pub(super) const READ_BYTES: usize = 16;

/// Number of bytes after which a call returns even if more have come: two of the longest frames.
/// Flooding the line therefore delays neither time-outs nor sensors.
const CALL_BYTES: usize = 2 * FRAME_BYTES;

impl<M, F, R, K, V> Session<'_, M, F, R, K, V>
where
    M: Trainable,
    R: Greeter,
    K: PersonalStore,
    V: Secrets,
{
    /// Writes outgoing frames and reads the available bytes, without waiting for more. Returns
    /// whether it wrote anything, which it only does after progress: time-outs start from then.
    ///
    /// Stops when the firmware has to train, and after 512 bytes. Call it again before sleeping
    /// while the stream has more. A stream that is ready but yields no bytes has ended.
    ///
    /// # Errors
    /// Returns the errors of the stream. A partly written frame is written again.
    #[inline(always)]
    pub fn exchange<T>(&mut self, stream: &mut T) -> Result<bool, T::Error>
    where
        T: Read + ReadReady + Write,
    {
        exchange(self, stream)
    }
}

/// One end of a conversation over a byte stream.
pub(crate) trait Endpoint {
    /// Returns the bytes for the line.
    fn outgoing(&self) -> &[u8];

    /// Confirms that they are on the line.
    fn sent(&mut self);

    /// Takes bytes from the line, and returns how many it took.
    fn receive(&mut self, bytes: &[u8]) -> usize;

    /// Whether it takes no bytes for now.
    fn is_busy(&self) -> bool;
}

impl<M, F, R, K, V> Endpoint for Session<'_, M, F, R, K, V>
where
    M: Trainable,
    R: Greeter,
    K: PersonalStore,
    V: Secrets,
{
    #[inline(always)]
    fn outgoing(&self) -> &[u8] {
        self.outgoing()
    }

    #[inline(always)]
    fn sent(&mut self) {
        self.sent();
    }

    #[inline(always)]
    fn receive(&mut self, bytes: &[u8]) -> usize {
        self.receive(bytes)
    }

    #[inline(always)]
    fn is_busy(&self) -> bool {
        self.phase() == Phase::Training
    }
}

/// [`Session::exchange`], for any endpoint.
// Not inlined even with one caller, so its buffer is not on the stack during training.
#[inline(never)]
pub(crate) fn exchange<E: Endpoint, T>(end: &mut E, stream: &mut T) -> Result<bool, T::Error>
where
    T: Read + ReadReady + Write,
{
    let mut sent = flush(end, stream)?;
    let mut buffer = [0; READ_BYTES];
    let mut read = 0;
    while !end.is_busy() && read < CALL_BYTES && stream.read_ready()? {
        let count = stream.read(&mut buffer)?;
        read += count;
        let mut rest = buffer.get(..count).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
        while !rest.is_empty() {
            // At least one byte is taken.
            let taken = end.receive(rest).max(1);
            rest = rest.get(taken..).unwrap_or_default();
            sent |= flush(end, stream)?;
        }
    }
    Ok(sent)
}

fn flush<E: Endpoint, T: Write>(end: &mut E, stream: &mut T) -> Result<bool, T::Error> {
    let mut sent = false;
    while !end.outgoing().is_empty() {
        let mut rest = end.outgoing();
        while !rest.is_empty() {
            let written = stream.write(rest)?;
            if written == 0 {
                // This violates the trait's contract. The frame waits.
                return Ok(sent);
            }
            rest = rest.get(written..).unwrap_or_default();
        }
        stream.flush()?;
        end.sent();
        sent = true;
    }
    Ok(sent)
}
