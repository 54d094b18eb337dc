//! A session on a byte stream with the traits of `embedded-io`.

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
    // Not inlined even with one caller, so its buffer is not on the stack during training.
    #[inline(never)]
    pub fn exchange<T>(&mut self, stream: &mut T) -> Result<bool, T::Error>
    where
        T: Read + ReadReady + Write,
    {
        let mut sent = self.flush(stream)?;
        let mut buffer = [0; READ_BYTES];
        let mut read = 0;
        while self.phase() != Phase::Training && read < CALL_BYTES && stream.read_ready()? {
            let count = stream.read(&mut buffer)?;
            read += count;
            let mut rest = buffer.get(..count).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            while !rest.is_empty() {
                // At least one byte is taken.
                let taken = self.receive(rest).max(1);
                rest = rest.get(taken..).unwrap_or_default();
                sent |= self.flush(stream)?;
            }
        }
        Ok(sent)
    }

    fn flush<T: Write>(&mut self, stream: &mut T) -> Result<bool, T::Error> {
        let mut sent = false;
        while !self.outgoing().is_empty() {
            let mut rest = self.outgoing();
            while !rest.is_empty() {
                let written = stream.write(rest)?;
                if written == 0 {
                    // This violates the trait's contract. The frame waits.
                    return Ok(sent);
                }
                rest = rest.get(written..).unwrap_or_default();
            }
            stream.flush()?;
            self.sent();
            sent = true;
        }
        Ok(sent)
    }
}
