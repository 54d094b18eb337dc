//! Frames in packets of a link that carries only short ones ([`smolfed_core::wire::fragment`]).

use smolfed_core::wire::fragment::{HEADER_BYTES, PacketSize};

/// Sizes of packets, as links have them: Bluetooth Low Energy with the smallest ATT MTU, and
/// LoRaWAN by its data rates.
pub const PACKET_SIZES: [PacketSize; 4] = [of(20), of(51), of(115), of(242)];

/// A size that packets can have.
pub(super) const fn of(bytes: u8) -> PacketSize {
    match PacketSize::new(bytes) {
        Ok(size) => size,
        Err(_) => PacketSize::MIN,
    }
}

/// The packets of all frames.
#[must_use]
pub fn packet_count(frames: &[usize], size: PacketSize) -> usize {
    frames.iter().map(|frame| size.packets(*frame)).sum()
}

/// The lengths of the packets of a frame, with their headers.
pub fn packet_lengths(frame: usize, size: PacketSize) -> impl Iterator<Item = usize> {
    let content = usize::from(size.get()) - HEADER_BYTES;
    (0..frame)
        .step_by(content)
        .map(move |start| content.min(frame - start) + HEADER_BYTES)
}

#[cfg(test)]
mod tests {
    use smolfed_core::wire::fragment::Fragmenter;

    use super::*;

    #[test]
    fn each_frame_is_divided_by_itself() {
        assert_eq!(packet_count(&[19, 20, 256], of(20)), 1 + 2 + 14);
        assert_eq!(packet_count(&[], of(20)), 0);
    }

    #[test]
    fn lengths_are_those_of_packets() {
        for size in PACKET_SIZES {
            for frame in 1..=256 {
                let bytes = vec![1; frame];
                let mut packets = Fragmenter::new(size).packets(&bytes);
                let mut place = [0; 255];
                let sent: Vec<usize> =
                    std::iter::from_fn(|| packets.next_into(&mut place).map(<[u8]>::len)).collect();
                let lengths: Vec<usize> = packet_lengths(frame, size).collect();
                assert_eq!(lengths, sent);
                assert_eq!(packet_count(&[frame], size), sent.len());
            }
        }
    }
}
