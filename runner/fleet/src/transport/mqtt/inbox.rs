//! Unread bytes: a bounded buffer between the task of the broker, which never waits for a reader,
//! and the reader of one stream.

use std::collections::VecDeque;
use std::io;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use tokio::io::ReadBuf;

use crate::lock::lock;

/// Maximum bytes: a window of chunks for each of the eight devices of a connection.
const CAPACITY: usize = 1 << 15;

/// The bytes of one stream.
#[derive(Default)]
pub(super) struct Inbox(Mutex<State>);

#[derive(Default)]
struct State {
    bytes: VecDeque<u8>,
    is_closed: bool,
    reader: Option<Waker>,
}

impl Inbox {
    /// Appends a message, or drops all of it if there is no room.
    pub(super) fn push(&self, message: &[u8]) {
        let mut state = lock(&self.0);
        if !state.is_closed && state.bytes.len() + message.len() <= CAPACITY {
            state.bytes.extend(message);
            state.wake();
        }
    }

    /// Ends the stream after its buffered bytes.
    pub(super) fn close(&self) {
        let mut state = lock(&self.0);
        state.is_closed = true;
        state.wake();
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.0).is_closed
    }

    /// Reads bytes. Reads nothing at the end of the stream.
    pub(super) fn poll_read(
        &self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = lock(&self.0);
        if state.bytes.is_empty() {
            if state.is_closed {
                return Poll::Ready(Ok(()));
            }
            state.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        while !state.bytes.is_empty() && buffer.remaining() > 0 {
            let (first, _) = state.bytes.as_slices();
            let count = first.len().min(buffer.remaining());
            buffer.put_slice(first.get(..count).unwrap_or_default());
            state.bytes.drain(..count);
        }
        if state.bytes.is_empty() {
            // A silent device holds no memory.
            state.bytes = VecDeque::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(inbox: &Inbox, room: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; room];
        let mut buffer = ReadBuf::new(&mut bytes);
        let mut context = Context::from_waker(Waker::noop());
        match inbox.poll_read(&mut context, &mut buffer) {
            Poll::Ready(read) => read.map(|()| Some(buffer.filled().to_vec())).unwrap(),
            Poll::Pending => None,
        }
    }

    #[test]
    fn bytes_come_in_order_and_messages_without_room_are_lost_whole() {
        let inbox = Inbox::default();
        assert_eq!(read(&inbox, 4), None);
        inbox.push(&[1, 2, 3]);
        inbox.push(&[4, 5]);
        assert_eq!(read(&inbox, 4), Some(vec![1, 2, 3, 4]));
        inbox.push(&vec![9; CAPACITY]);
        inbox.push(&[6]);
        assert_eq!(read(&inbox, 4), Some(vec![5, 6]));
        inbox.push(&[7]);
        inbox.close();
        inbox.push(&[8]);
        assert_eq!(read(&inbox, 4), Some(vec![7]));
        assert_eq!(read(&inbox, 4), Some(vec![]), "the end");
    }
}
