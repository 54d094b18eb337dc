//! Datagrams: `udp:HOST:PORT[/SIZE]`, for links that carry packets.
//!
//! A frame travels in packets of at most SIZE bytes, one per datagram
//! ([`smolfed_core::wire::fragment`]). A program that drives a radio, such as one for BLE or the
//! network server of LoRaWAN, passes them on unread. Lost, repeated or reordered datagrams cost
//! frames, which the protocol repeats, and never a participation.
//!
//! There is no connection to break. Packets of an unknown sender open a stream, and a stream
//! without a session is closed after a while, as for any other transport.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket as Socket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use smolfed_core::wire::FRAME_BYTES;
use smolfed_core::wire::fragment::{Fragmenter, PacketSize, Reassembly};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UdpSocket, lookup_host};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::endpoint::{Accepted, Connecting, Endpoint, Listener, Properties, Scheme, Transport};
use super::options::Options;
use super::tcp::Tcp;

/// Default size of packets: the largest of LoRaWAN in Europe.
const DEFAULT_SIZE: u8 = 242;

/// Packets of a stream waiting to be read, and to be sent. Packets without room are lost.
const QUEUE: usize = 1024;

/// Maximum number of streams not accepted yet. Packets that would open more are lost.
const BACKLOG: usize = 256;

/// Number of senders after which the ones with ended streams are forgotten.
const SWEEP_AFTER: usize = 1024;

/// Pause in receiving after an error, so that a lasting error does not use the processor.
const ERROR_PAUSE: Duration = Duration::from_millis(10);

/// Maximum bytes of a packet.
const PACKET_BYTES: usize = u8::MAX as usize;

pub(super) const SCHEME: Scheme = Scheme {
    name: "udp",
    syntax: "udp:HOST:PORT[/SIZE]",
    parse: |text| Some(Arc::new(Udp::parse(text)?)),
    properties: Properties::LOSSY,
};

#[derive(Debug)]
struct Udp {
    place: Tcp,
    size: PacketSize,
}

impl Udp {
    fn parse(text: &str) -> Option<Self> {
        let (place, size) = match text.rsplit_once('/') {
            None => (text, DEFAULT_SIZE),
            Some((place, size)) => (place, size.parse().ok()?),
        };
        Some(Self {
            place: Tcp::parse(place)?,
            size: PacketSize::new(size).ok()?,
        })
    }

    /// Opens a stream to the first of the host's addresses.
    async fn stream(&self) -> io::Result<Stream> {
        let mut addresses = lookup_host(self.place.to_string()).await?;
        let peer = addresses.next().ok_or(ErrorKind::NotFound)?;
        let any: SocketAddr = match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = Arc::new(UdpSocket::bind(any).await?);
        let (sender, packets) = mpsc::channel(QUEUE);
        let mut stream = Stream::new(Arc::clone(&socket), peer, self.size, packets);
        let receive = async move {
            let mut packet = [0; PACKET_BYTES + 1];
            loop {
                let (length, from) = received(&socket, &mut packet).await;
                if from == peer {
                    // A packet without room is lost.
                    let _ = sender.try_send(packet.get(..length).unwrap_or_default().to_vec());
                }
            }
        };
        stream.task = Some(Task(tokio::spawn(receive).abort_handle()));
        Ok(stream)
    }
}

impl fmt::Display for Udp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.place, self.size.get())
    }
}

impl Endpoint for Udp {
    fn leaves_this_machine(&self) -> bool {
        self.place.leaves_this_machine()
    }

    fn connect<'a>(&'a self, _: &'a Options) -> Connecting<'a> {
        Box::pin(async { Ok(Box::new(self.stream().await?) as Box<dyn Transport>) })
    }

    fn listen(&self, _: &Options) -> io::Result<Box<dyn Listener>> {
        let addresses: Vec<SocketAddr> = self.place.to_string().to_socket_addrs()?.collect();
        let socket = Socket::bind(addresses.as_slice())?;
        socket.set_nonblocking(true)?;
        let socket = Arc::new(UdpSocket::from_std(socket)?);
        let (opened, accepted) = mpsc::channel(BACKLOG);
        let task = tokio::spawn(dispatch(socket, self.size, opened)).abort_handle();
        Ok(Box::new(Listening {
            accepted,
            _task: Task(task),
        }))
    }
}

/// Returns the next datagram and its sender. Errors belong to earlier sent datagrams without a
/// listener.
async fn received(socket: &UdpSocket, packet: &mut [u8]) -> (usize, SocketAddr) {
    loop {
        match socket.recv_from(packet).await {
            Ok(received) => return received,
            Err(_) => sleep(ERROR_PAUSE).await,
        }
    }
}

/// Passes packets to the stream of their sender, and opens one for a new sender.
async fn dispatch(socket: Arc<UdpSocket>, size: PacketSize, opened: mpsc::Sender<Accepted>) {
    let mut streams: HashMap<SocketAddr, mpsc::Sender<Vec<u8>>> = HashMap::new();
    let mut packet = [0; PACKET_BYTES + 1];
    loop {
        let (length, peer) = received(&socket, &mut packet).await;
        let bytes = packet.get(..length).unwrap_or_default().to_vec();
        if let Some(stream) = streams.get(&peer)
            && !stream.is_closed()
        {
            // A packet without room is lost.
            let _ = stream.try_send(bytes);
            continue;
        }
        let Ok(place) = opened.try_reserve() else {
            continue;
        };
        if streams.len() >= SWEEP_AFTER {
            streams.retain(|_, stream| !stream.is_closed());
        }
        let (sender, packets) = mpsc::channel(QUEUE);
        let _ = sender.try_send(bytes);
        streams.insert(peer, sender);
        let stream = Stream::new(Arc::clone(&socket), peer, size, packets);
        place.send(Accepted::open(stream, Some(peer.ip())));
    }
}

/// A task that ends with its owner.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Accepts streams.
struct Listening {
    accepted: mpsc::Receiver<Accepted>,
    _task: Task,
}

impl Listener for Listening {
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        let accepted = ready!(self.accepted.poll_recv(context));
        Poll::Ready(accepted.ok_or_else(|| ErrorKind::BrokenPipe.into()))
    }
}

/// The frames of one peer, as a stream of bytes.
struct Stream {
    socket: Arc<UdpSocket>,
    peer: SocketAddr,
    packets: mpsc::Receiver<Vec<u8>>,
    reassembly: Reassembly<2>,
    /// Complete and unread frames.
    whole: VecDeque<u8>,
    /// A partially written frame.
    written: Vec<u8>,
    fragmenter: Fragmenter,
    /// Unsent packets.
    outgoing: VecDeque<Vec<u8>>,
    /// Receives the packets of the peer, unless a listener does.
    task: Option<Task>,
}

impl Stream {
    fn new(
        socket: Arc<UdpSocket>,
        peer: SocketAddr,
        size: PacketSize,
        packets: mpsc::Receiver<Vec<u8>>,
    ) -> Self {
        Self {
            socket,
            peer,
            packets,
            reassembly: Reassembly::new(size),
            whole: VecDeque::new(),
            written: Vec::new(),
            fragmenter: Fragmenter::new(size),
            outgoing: VecDeque::new(),
            task: None,
        }
    }

    /// Splits the written frame into packets. Only zeros are not a frame.
    fn cut(&mut self) {
        if self.written.len() > 1 {
            let mut packets = self.fragmenter.packets(&self.written);
            let mut place = [0; PACKET_BYTES];
            while let Some(packet) = packets.next_into(&mut place) {
                self.outgoing.push_back(packet.to_vec());
            }
        }
        self.written.clear();
    }

    /// Sends the packets. A packet without a receiver is lost, as in transit.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(packet) = self.outgoing.front() {
            match ready!(self.socket.poll_send_to(context, packet, self.peer)) {
                Err(error) if error.kind() != ErrorKind::ConnectionRefused => {
                    return Poll::Ready(Err(error));
                }
                Ok(_) | Err(_) => self.outgoing.pop_front(),
            };
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = &mut *self;
        while stream.whole.is_empty() {
            let Some(packet) = ready!(stream.packets.poll_recv(context)) else {
                return Poll::Ready(Ok(()));
            };
            // Bytes that are not a packet are dropped, like damaged packets.
            if let Ok(Some(frame)) = stream.reassembly.push(&packet) {
                stream.whole.extend(frame);
            }
        }
        let count = stream.whole.len().min(buffer.remaining());
        for byte in stream.whole.drain(..count) {
            buffer.put_slice(&[byte]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.outgoing.len() >= QUEUE {
            ready!(self.poll_send(context))?;
        }
        let end = bytes.iter().position(|byte| *byte == 0);
        let taken = end.map_or(bytes.len(), |end| end + 1);
        // Longer than a frame: one extra byte shows it.
        let room = (FRAME_BYTES + 1).saturating_sub(self.written.len());
        let kept = bytes.get(..taken.min(room)).unwrap_or_default();
        self.written.extend_from_slice(kept);
        if end.is_some() {
            self.cut();
        }
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_send(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::accept;
    use super::*;

    /// Returns a listener, and the address for its peer.
    async fn pair(port: u16) -> (Box<dyn Listener>, Udp) {
        let udp = Udp::parse(&format!("127.0.0.1:{port}/20")).unwrap();
        (udp.listen(&Options::default()).unwrap(), udp)
    }

    /// Returns a currently free port.
    fn free_port() -> u16 {
        let socket = Socket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().port()
    }

    fn frame(length: u8) -> Vec<u8> {
        (1..length).chain([0]).collect()
    }

    #[tokio::test]
    async fn frames_go_both_ways_in_packets_of_their_size() {
        let (mut listener, udp) = pair(free_port()).await;
        let mut device = udp.stream().await.unwrap();
        // Zeros for clearing a line are not frames.
        let frames = [vec![0], frame(200), vec![0], frame(30)].concat();
        device.write_all(&frames).await.unwrap();
        assert_eq!(device.outgoing.len(), 11 + 2);
        assert!(device.outgoing.iter().all(|packet| packet.len() <= 20));
        device.flush().await.unwrap();
        let accepted = accept(&mut *listener).await.unwrap();
        assert_eq!(accepted.source, Some(Ipv4Addr::LOCALHOST.into()));
        let mut coordinator = accepted.opening.await.unwrap();
        let mut received = vec![9; 230];
        coordinator.read_exact(&mut received).await.unwrap();
        assert_eq!(received, [frame(200), frame(30)].concat());
        coordinator.write_all(&frame(100)).await.unwrap();
        coordinator.flush().await.unwrap();
        let mut received = vec![9; 100];
        device.read_exact(&mut received).await.unwrap();
        assert_eq!(received, frame(100));
    }

    #[tokio::test]
    async fn each_sender_has_a_stream_and_nobody_writes_into_that_of_another() {
        let (mut listener, udp) = pair(free_port()).await;
        let mut streams = Vec::new();
        for length in [40, 50] {
            let mut device = udp.stream().await.unwrap();
            device.write_all(&frame(length)).await.unwrap();
            device.flush().await.unwrap();
            let accepted = accept(&mut *listener).await.unwrap();
            streams.push((device, accepted.opening.await.unwrap(), length));
        }
        for (device, coordinator, length) in &mut streams {
            let mut received = vec![9; usize::from(*length)];
            coordinator.read_exact(&mut received).await.unwrap();
            assert_eq!(received, frame(*length));
            let stranger = Socket::bind("127.0.0.1:0").unwrap();
            let own = ("127.0.0.1", device.socket.local_addr().unwrap().port());
            stranger.send_to(&[0, 7, 7, 0], own).unwrap();
            coordinator.write_all(&frame(10)).await.unwrap();
            coordinator.flush().await.unwrap();
            let mut received = vec![9; 10];
            device.read_exact(&mut received).await.unwrap();
            assert_eq!(received, frame(10), "without the packet of the stranger");
        }
    }

    #[tokio::test]
    async fn too_many_bytes_without_a_zero_are_no_frame() {
        let (mut listener, udp) = pair(free_port()).await;
        let mut device = udp.stream().await.unwrap();
        device.write_all(&[7; 2000]).await.unwrap();
        assert!(device.written.len() <= FRAME_BYTES + 1);
        device.write_all(&[0]).await.unwrap();
        device.write_all(&frame(60)).await.unwrap();
        device.flush().await.unwrap();
        let mut coordinator = accept(&mut *listener).await.unwrap().opening.await.unwrap();
        let mut received = vec![9; 60];
        coordinator.read_exact(&mut received).await.unwrap();
        assert_eq!(received, frame(60));
    }

    #[test]
    fn sizes_are_parsed() {
        let parsed = |text| Udp::parse(text).map(|udp| udp.to_string());
        assert_eq!(parsed("host:1").as_deref(), Some("host:1/242"));
        assert_eq!(parsed("[::1]:1/51").as_deref(), Some("[::1]:1/51"));
        for text in ["host:1/17", "host:1/256", "host:1/", "host/20", ":1/20"] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
