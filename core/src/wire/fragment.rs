//! Frames in packets, for links whose packets are shorter than a frame: BLE, LoRaWAN.
//!
//! ```text
//! packet   number u4 | index u4 | piece of a frame, 1 to size - 1 bytes
//! ```
//!
//! The first byte holds the number of the frame, modulo 16, in its upper half and the index of the
//! piece in its lower half. The pieces in order form the frame as on a stream, in COBS with the
//! final zero. Every piece but the last fills its packet. The last one ends with the zero, which
//! occurs nowhere else in a frame. A packet therefore costs one byte, and a receiver can place its
//! piece in any order of arrival.
//!
//! A lost packet costs its frame, which the protocol repeats. Nothing here is authenticated. An
//! attacker on the link can spoil frames, as on a stream, and the tag of a frame detects it.

use super::{FRAME_BYTES, refusal::Refusal};

/// Bytes of a packet before the piece of the frame.
pub const HEADER_BYTES: usize = 1;

/// Number of preceding frames whose late packets are skipped. Any other number begins a new frame,
/// such as the number of a restarted sender.
const LATE: u8 = 2;

/// Maximum bytes of a packet, including its first byte. Both ends of a link use the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSize(u8);

/// An invalid packet size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSizeError(u8);

impl core::fmt::Display for PacketSizeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (Self(size), min, max) = (self, PacketSize::MIN.0, PacketSize::MAX.0);
        write!(
            f,
            "packets of {size} bytes: expected a number from {min} to {max}"
        )
    }
}

impl core::error::Error for PacketSizeError {}

impl PacketSize {
    /// The smallest size, with which sixteen packets hold the longest frame.
    pub const MIN: Self = Self(18);
    /// The largest size.
    pub const MAX: Self = Self(u8::MAX);

    /// Creates a size of `bytes` bytes.
    ///
    /// # Errors
    /// Returns [`PacketSizeError`] below [`Self::MIN`].
    pub const fn new(bytes: u8) -> Result<Self, PacketSizeError> {
        match bytes >= Self::MIN.0 {
            true => Ok(Self(bytes)),
            false => Err(PacketSizeError(bytes)),
        }
    }

    /// Returns the number of bytes.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the number of packets for a frame of `frame_bytes` bytes, including COBS and the
    /// zero.
    pub const fn packets(self, frame_bytes: usize) -> usize {
        frame_bytes.div_ceil(self.piece())
    }

    /// Returns the maximum bytes of a piece.
    const fn piece(self) -> usize {
        self.0 as usize - HEADER_BYTES
    }
}

/// Splits frames into packets: the sending end of a link, which numbers its frames.
#[derive(Clone, Debug)]
pub struct Fragmenter {
    size: PacketSize,
    /// Number of the next frame.
    number: u8,
}

impl Fragmenter {
    /// Creates the sender of a link, before its first frame.
    pub const fn new(size: PacketSize) -> Self {
        Self { size, number: 0 }
    }

    /// Returns the packets of a frame in order, including its final zero, for the bytes of
    /// [`Session::outgoing`](crate::session::Session::outgoing). A frame has at most
    /// [`FRAME_BYTES`] bytes, and any more are not sent.
    pub fn packets<'a>(&mut self, frame: &'a [u8]) -> Packets<'a> {
        let number = self.number;
        self.number = number.wrapping_add(1) % 16;
        Packets {
            size: self.size,
            header: number << 4,
            rest: frame.get(..FRAME_BYTES).unwrap_or(frame),
        }
    }
}

/// The packets of one frame.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    size: PacketSize,
    header: u8,
    rest: &'a [u8],
}

impl Packets<'_> {
    /// Writes the next packet to `packet` and returns its bytes, or `None` after the last one.
    pub fn next_into<'p>(&mut self, packet: &'p mut [u8; u8::MAX as usize]) -> Option<&'p [u8]> {
        let length = self.rest.len().min(self.size.piece());
        let (piece, rest) = self.rest.split_at_checked(length)?;
        let packet = packet.get_mut(..=length).filter(|_| length > 0)?;
        let (first, place) = packet.split_first_mut()?;
        *first = self.header;
        place.copy_from_slice(piece);
        self.header = self.header.wrapping_add(1);
        self.rest = rest;
        Some(packet)
    }
}

/// Reassembles frames: the receiving end of a link.
///
/// It holds `FRAMES` frames, a divisor of 16. With one, as fits a board's memory, a packet
/// overtaken by one of the next frame costs its frame. With two it does not.
#[derive(Clone, Debug)]
pub struct Reassembly<const FRAMES: usize = 1> {
    size: PacketSize,
    /// A frame is at the index of its number modulo `FRAMES`.
    partial: [Partial; FRAMES],
}

impl<const FRAMES: usize> Reassembly<FRAMES> {
    /// Creates the receiver of a link, before its first packet.
    pub const fn new(size: PacketSize) -> Self {
        const {
            assert!(FRAMES > 0 && 16 % FRAMES == 0, "frames divide 16");
        }
        Self {
            size,
            partial: [const { Partial::new() }; FRAMES],
        }
    }

    /// Takes a packet. Returns the frame that it completes, including the final zero, for
    /// [`Session::receive`](crate::session::Session::receive).
    ///
    /// Repeated or late packets complete nothing. A frame with a missing packet is given up when a
    /// later frame needs its place.
    ///
    /// # Errors
    /// Returns [`Refusal`] for an invalid packet of this size: [`TooLong`](Refusal::TooLong),
    /// [`TooShort`](Refusal::TooShort), or [`Stuffing`](Refusal::Stuffing) for a zero that does not
    /// end a frame. Nothing changes then.
    pub fn push(&mut self, packet: &[u8]) -> Result<Option<&[u8]>, Refusal> {
        let (header, piece) = packet.split_first().ok_or(Refusal::TooShort)?;
        let (last, others) = piece.split_last().ok_or(Refusal::TooShort)?;
        if others.contains(&0) {
            return Err(Refusal::Stuffing);
        }
        let is_last = *last == 0;
        if !is_last && piece.len() < self.size.piece() {
            return Err(Refusal::TooShort);
        }
        let (number, index) = (header >> 4, header & 15);
        let begin = usize::from(index) * self.size.piece();
        let end = begin + piece.len();
        if piece.len() > self.size.piece() || end > FRAME_BYTES {
            return Err(Refusal::TooLong);
        }
        let partial = self.partial.get_mut(usize::from(number) % FRAMES);
        let Some(partial) = partial.filter(|partial| !partial.is_over(number)) else {
            return Ok(None);
        };
        partial.begin(number);
        if let Some(place) = partial.frame.get_mut(begin..end) {
            place.copy_from_slice(piece);
        }
        partial.received |= 1 << index;
        if is_last {
            // The bits up to this piece.
            partial.all = u16::MAX >> (15 - index);
            partial.length = end;
        }
        let is_whole = partial.received == partial.all;
        Ok(partial.frame.get(..partial.length).filter(|_| is_whole))
    }
}

/// A partly received frame.
#[derive(Clone, Debug)]
struct Partial {
    /// Number of the frame, `None` before the first packet.
    number: Option<u8>,
    /// One bit for each received piece.
    received: u16,
    /// The bits of all pieces, 0 until the last piece is there.
    all: u16,
    /// Bytes of the frame, once the last piece is there.
    length: usize,
    frame: [u8; FRAME_BYTES],
}

impl Partial {
    const fn new() -> Self {
        Self {
            number: None,
            received: 0,
            all: 0,
            length: 0,
            frame: [0; FRAME_BYTES],
        }
    }

    /// Whether packets of frame `number` are no longer useful: it is complete, or given up.
    fn is_over(&self, number: u8) -> bool {
        let Some(current) = self.number else {
            return false;
        };
        match current.wrapping_sub(number) % 16 {
            0 => self.received == self.all,
            behind => behind <= LATE,
        }
    }

    /// Makes room for frame `number`, unless it is here already.
    fn begin(&mut self, number: u8) {
        if self.number != Some(number) {
            (self.number, self.received, self.all) = (Some(number), 0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use proptest::collection;
    use proptest::prelude::*;

    use super::*;

    fn size(bytes: u8) -> PacketSize {
        PacketSize::new(bytes).unwrap()
    }

    /// Returns the packets of these frames.
    fn packets(size: PacketSize, frames: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
        let mut fragmenter = Fragmenter::new(size);
        let packets = frames.iter().map(|frame| {
            let mut packets = fragmenter.packets(frame);
            let mut place = [0; 255];
            core::iter::from_fn(|| packets.next_into(&mut place).map(<[u8]>::to_vec)).collect()
        });
        packets.collect()
    }

    fn frame(length: usize) -> Vec<u8> {
        let mut frame: Vec<u8> = (1..length).map(|byte| (byte % 255) as u8 + 1).collect();
        frame.push(0);
        frame
    }

    proptest! {
        #[test]
        fn packets_of_a_frame_in_any_order_and_repeated_give_it_once(
            bytes in 18_u8..=255,
            length in 1_usize..=FRAME_BYTES,
            order in collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let (size, frame) = (size(bytes), frame(length));
            let packets = packets(size, core::slice::from_ref(&frame)).remove(0);
            prop_assert_eq!(packets.len(), size.packets(length));
            let sent: usize = packets.iter().map(Vec::len).sum();
            prop_assert_eq!(sent, length + packets.len() * HEADER_BYTES);
            prop_assert!(packets.iter().all(|packet| packet.len() <= usize::from(bytes)));
            let mut receiver = Reassembly::<1>::new(size);
            let mut whole = 0;
            // Some packets in any order, some repeated, then all in reverse order.
            let some = order.iter().map(|index| index.get(&packets));
            for packet in some.chain(packets.iter().rev()) {
                if let Some(received) = receiver.push(packet).unwrap() {
                    prop_assert_eq!(received, frame.as_slice());
                    whole += 1;
                }
            }
            prop_assert_eq!(whole, 1);
        }

        #[test]
        fn any_bytes_are_taken_or_refused(
            bytes in 18_u8..=255,
            received in collection::vec(collection::vec(any::<u8>(), 0..300), 0..50),
        ) {
            let mut receiver = Reassembly::<1>::new(size(bytes));
            for packet in &received {
                if let Ok(Some(frame)) = receiver.push(packet) {
                    prop_assert!(frame.len() <= FRAME_BYTES && frame.ends_with(&[0]));
                }
            }
        }
    }

    #[test]
    fn a_lost_packet_costs_its_frame_alone() {
        let frames = [frame(100), frame(60), frame(40)];
        let packets = packets(size(20), &frames);
        let mut receiver = Reassembly::<1>::new(size(20));
        for packet in packets[0].iter().skip(1).chain(&packets[1]) {
            let whole = receiver.push(packet).unwrap().map(<[u8]>::to_vec);
            let is_end = packet == packets[1].last().unwrap();
            assert_eq!(whole, is_end.then(|| frames[1].clone()));
        }
        // A lost packet that arrives late does not spoil the next frame.
        let (first, rest) = packets[2].split_first().unwrap();
        assert_eq!(receiver.push(first), Ok(None));
        assert_eq!(receiver.push(&packets[0][0]), Ok(None));
        let (last, rest) = rest.split_last().unwrap();
        for packet in rest {
            assert_eq!(receiver.push(packet), Ok(None));
        }
        assert_eq!(receiver.push(last), Ok(Some(frames[2].as_slice())));
    }

    #[test]
    fn two_frames_may_overlap_where_there_is_memory_for_two() {
        let frames: Vec<Vec<u8>> = (60..90).map(frame).collect();
        let packets = packets(size(20), &frames).concat();
        let whole = |late: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>| {
            // Every second packet is overtaken by the next two.
            let mut whole = Vec::new();
            for four in packets.chunks(4) {
                for index in [1, 2, 0, 3] {
                    whole.extend(four.get(index).and_then(|packet| late(packet)));
                }
            }
            whole
        };
        let (mut one, mut two) = (
            Reassembly::<1>::new(size(20)),
            Reassembly::<2>::new(size(20)),
        );
        let received = whole(&mut |packet| two.push(packet).unwrap().map(<[u8]>::to_vec));
        assert_eq!(received, frames);
        let received = whole(&mut |packet| one.push(packet).unwrap().map(<[u8]>::to_vec));
        assert!(received.len() < frames.len());
    }

    /// The numbers of its first three frames may be those of recent frames.
    #[test]
    fn a_sender_that_restarts_is_heard_with_its_fourth_frame() {
        for before in 1..20 {
            let mut receiver = Reassembly::<1>::new(size(51));
            for packet in packets(size(51), &vec![frame(20); before]).concat() {
                receiver.push(&packet).unwrap();
            }
            let mut whole = 0;
            for packet in packets(size(51), &vec![frame(30); 4]).concat() {
                whole += u8::from(receiver.push(&packet).unwrap().is_some());
            }
            assert!(whole >= 1, "after {before} frames: {whole}");
        }
    }

    #[test]
    fn malformed_packets_are_refused_and_change_nothing() {
        let packets = packets(size(20), &[frame(40)]).remove(0);
        let mut receiver = Reassembly::<1>::new(size(20));
        receiver.push(&packets[0]).unwrap();
        let full = |header| [&[header][..], &[7; 19]].concat();
        for (packet, refusal) in [
            (vec![], Refusal::TooShort),
            (vec![0x00], Refusal::TooShort),
            (vec![0x01, 7, 7], Refusal::TooShort),
            (vec![0x01, 0, 7, 0], Refusal::Stuffing),
            ([full(0x01), vec![7]].concat(), Refusal::TooLong),
            // A piece beyond the longest frame.
            (full(0x0d), Refusal::TooLong),
            (full(0x0f), Refusal::TooLong),
        ] {
            assert_eq!(receiver.push(&packet), Err(refusal), "{packet:?}");
        }
        assert_eq!(receiver.push(&packets[1]), Ok(None));
        assert_eq!(receiver.push(&packets[2]), Ok(Some(frame(40).as_slice())));
    }

    #[test]
    fn sizes_hold_the_longest_frame_in_sixteen_packets() {
        assert_eq!(PacketSize::MIN.packets(FRAME_BYTES), 16);
        assert_eq!(PacketSize::new(17), Err(PacketSizeError(17)));
        for (bytes, count) in [(20, 14), (51, 6), (115, 3), (242, 2), (255, 2)] {
            assert_eq!(size(bytes).packets(FRAME_BYTES), count, "{bytes}");
        }
    }
}
