//! One stream of bytes over MQTT: reads come from an inbox, and writes become messages of limited
//! length.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::Sender;
use tokio_util::sync::PollSender;

use super::inbox::Inbox;

/// Maximum bytes of a message: two windows of chunks.
pub(super) const MAX_MESSAGE: usize = 1 << 13;

/// A message for the broker.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) topic: String,
    pub(super) payload: Vec<u8>,
}

/// One stream.
pub(super) struct Stream {
    inbox: Arc<Inbox>,
    messages: PollSender<Message>,
    /// The topic on which this side publishes.
    topic: String,
    /// Written and unsent bytes: less than a frame after a flush.
    written: Vec<u8>,
}

impl Stream {
    pub(super) fn new(inbox: Arc<Inbox>, messages: Sender<Message>, topic: String) -> Self {
        Self {
            inbox,
            messages: PollSender::new(messages),
            topic,
            written: Vec::new(),
        }
    }

    /// Sends all complete frames, or all bytes if the longest message would have no complete frame.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let end = self.written.iter().rposition(|byte| *byte == 0);
        let end = end.map_or(self.written.len(), |last| last + 1);
        let gone = |_| io::Error::from(ErrorKind::BrokenPipe);
        ready!(self.messages.poll_reserve(context)).map_err(gone)?;
        let rest = self.written.split_off(end);
        let payload = std::mem::replace(&mut self.written, rest);
        let topic = self.topic.clone();
        let sent = self.messages.send_item(Message { topic, payload });
        Poll::Ready(sent.map_err(gone))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inbox.poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.inbox.is_closed() {
            return Poll::Ready(Err(ErrorKind::BrokenPipe.into()));
        }
        if self.written.len() >= MAX_MESSAGE {
            ready!(self.poll_send(context))?;
        }
        let room = MAX_MESSAGE.saturating_sub(self.written.len());
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.written.extend_from_slice(taken);
        Poll::Ready(Ok(taken.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written.contains(&0) {
            ready!(self.poll_send(context))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // An empty message ends the stream at the other side. It is dropped if the queue is full.
        // The other side then notices the silence.
        if !self.inbox.is_closed()
            && let Some(messages) = self.messages.get_ref()
        {
            let topic = self.topic.clone();
            let _ = messages.try_send(Message {
                topic,
                payload: Vec::new(),
            });
        }
        self.inbox.close();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn messages_have_whole_frames() {
        let (sender, mut messages) = mpsc::channel(4);
        let inbox = Arc::new(Inbox::default());
        let mut stream = Stream::new(Arc::clone(&inbox), sender, "t/1/up".to_owned());
        let mut sent = || messages.try_recv().ok().map(|message| message.payload);
        stream.write_all(&[0, 5, 6]).await.unwrap();
        assert_eq!(sent(), None, "it was not flushed");
        stream.flush().await.unwrap();
        assert_eq!(sent(), Some(vec![0]));
        stream.write_all(&[7, 0, 8, 0, 9]).await.unwrap();
        stream.flush().await.unwrap();
        assert_eq!(sent(), Some(vec![5, 6, 7, 0, 8, 0]));
        assert_eq!(sent(), None);
        // Frames of 100 bytes, more than a message holds: messages end at frame boundaries.
        let mut frame = vec![1; 99];
        frame.push(0);
        stream.write_all(&[0]).await.unwrap();
        stream.write_all(&frame.repeat(100)).await.unwrap();
        stream.flush().await.unwrap();
        let (first, second) = (sent().unwrap(), sent().unwrap());
        assert_eq!(first.len(), 2 + 81 * 100);
        assert_eq!(first.len() + second.len(), 2 + 100 * 100);
        // Bytes without a frame are sent as well: the protocol counts them.
        stream.write_all(&[1; MAX_MESSAGE + 1]).await.unwrap();
        assert_eq!(sent().map(|message| message.len()), Some(MAX_MESSAGE));

        inbox.push(&[4, 0]);
        assert_eq!(stream.read_u8().await.unwrap(), 4);
        inbox.close();
        assert!(stream.write_all(&[0]).await.is_err());
    }

    #[tokio::test]
    async fn a_stream_that_is_dropped_tells_the_other_side() {
        let (sender, mut messages) = mpsc::channel(1);
        let inbox = Arc::new(Inbox::default());
        drop(Stream::new(
            Arc::clone(&inbox),
            sender,
            "t/1/down".to_owned(),
        ));
        assert!(inbox.is_closed());
        assert!(messages.recv().await.unwrap().payload.is_empty());
    }
}
