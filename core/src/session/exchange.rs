//! A session on a byte stream with the traits of `embedded-io`.

use embedded_io::{Read, ReadReady, Write};

use super::{Greeter, Session, phase::Phase, trainable::Trainable};
use crate::{personal::store::PersonalStore, secrets::Secrets, wire::FRAME_BYTES};

/// Bytes that are taken from the stream at a time.
pub(super) const READ_BYTES: usize = 16;

/// Bytes after which a call returns though more have come: two of the longest frames. Whoever
/// floods the line keeps neither time-outs nor sensors waiting.
const CALL_BYTES: usize = 2 * FRAME_BYTES;

impl<M, F, R, K, V> Session<'_, M, F, R, K, V>
where
    M: Trainable,
    R: Greeter,
    K: PersonalStore,
    V: Secrets,
{
    /// Writes what is to be sent and reads what has come, without waiting for more; returns whether
    /// it wrote anything, which it only does when there was progress: time-outs begin then.
    ///
    /// Stops when the firmware is to train, and after 512 bytes: call it again before sleeping
    /// while the stream has more. A stream that is ready and has nothing is at its end.
    ///
    /// # Errors
    /// Those of the stream. A frame that was not written as a whole is written again.
    // A function also where it is called once: its buffer is not on the stack during training.
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
                    // Against the trait's promise: the frame waits.
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
