//! Poly1305 (RFC 8439, section 2.5): the one-time authenticator, in words of 32 bits.
//!
//! Clamping clears the four upper bits of each word of r, and the two lower ones of all but the
//! first. So products of words are below 2⁶⁰, and sums of five of them do not overflow. As 2¹³⁰ = 5
//! modulo the prime, r_i · 2³²ʲ with i + j = 4 becomes the whole number 5 r_i / 4.
//!
//! All products are of 32 bits by 32 bits, and no branch or address depends on a secret. The time
//! of a product does not depend on its factors on a Cortex-M0, M4 and M33 and on the RISC-V cores
//! that we know. On a Cortex-M3, `umull` is faster for small factors (its technical reference
//! manual, table 3-1), but this only reveals information about a key that is used once.

/// The state between two blocks. The key belongs to one message: remains of it on the stack could
/// only forge a frame with a used number.
pub(crate) struct Poly1305 {
    r: [u32; 4],
    /// The highest word has at most 3 bits: the sum is below 2¹³¹.
    sum: [u32; 5],
    pad: [u32; 4],
}

impl Poly1305 {
    /// Creates the state before the first block, with r clamped (section 2.5.1).
    pub(crate) const fn new([r0, r1, r2, r3, pad @ ..]: [u32; 8]) -> Self {
        Self {
            r: [
                r0 & 0x0fff_ffff,
                r1 & 0x0fff_fffc,
                r2 & 0x0fff_fffc,
                r3 & 0x0fff_fffc,
            ],
            sum: [0; 5],
            pad,
        }
    }

    /// Processes a block. `end` is the bit after its sixteen bytes: 1, except for a shorter last
    /// block of a message, which contains it.
    #[inline(never)]
    pub(crate) fn block(&mut self, block: &[u8; 16], end: u32) {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        self.words(words, end);
    }

    /// Like [`Self::block`], from the words of the block.
    #[inline(never)]
    pub(crate) fn words(&mut self, [w0, w1, w2, w3]: [u32; 4], end: u32) {
        let [s0, s1, s2, s3, s4] = self.sum;
        let (h0, carry) = add(s0, w0, 0);
        let (h1, carry) = add(s1, w1, carry);
        let (h2, carry) = add(s2, w2, carry);
        let (h3, carry) = add(s3, w3, carry);
        // At most 6, so 3 bits, without overflow below.
        let h4 = s4 + carry + end;
        let [r0, r1, r2, r3] = self.r;
        let [f1, f2, f3] = [r1, r2, r3].map(|r| r + (r >> 2));
        let product = |h, r| u64::from(h) * u64::from(r);
        let d0 = product(h0, r0) + product(h1, f3) + product(h2, f2) + product(h3, f1);
        let d1 = product(h0, r1) + product(h1, r0) + product(h2, f3) + product(h3, f2);
        let d1 = d1 + u64::from(h4 * f1) + (d0 >> 32);
        let d2 = product(h0, r2) + product(h1, r1) + product(h2, r0) + product(h3, f3);
        let d2 = d2 + u64::from(h4 * f2) + (d1 >> 32);
        let d3 = product(h0, r3) + product(h1, r2) + product(h2, r1) + product(h3, r0);
        let d3 = d3 + u64::from(h4 * f3) + (d2 >> 32);
        // Below 2³².
        let top = h4 * r0 + (d3 >> 32) as u32;
        // The part beyond 2¹³⁰, times 5.
        let (g0, carry) = add(d0 as u32, (top >> 2) + (top & !3), 0);
        let (g1, carry) = add(d1 as u32, 0, carry);
        let (g2, carry) = add(d2 as u32, 0, carry);
        let (g3, carry) = add(d3 as u32, 0, carry);
        self.sum = [g0, g1, g2, g3, (top & 3) + carry];
    }

    /// Processes bytes, padded with zeros to a whole block (section 2.8).
    pub(crate) fn padded(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(16) {
            let mut block = [0; 16];
            for (place, byte) in block.iter_mut().zip(piece) {
                *place = *byte;
            }
            self.block(&block, 1);
        }
    }

    /// Returns the tag.
    #[inline(never)]
    pub(crate) fn finish(&mut self) -> [u8; 16] {
        let [h0, h1, h2, h3, h4] = self.sum;
        // The sum plus 5: it reaches 2¹³⁰ if the sum is at least the prime, 2¹³⁰ − 5. The sum is
        // below twice the prime, so at most one subtraction is needed.
        let (_, carry) = add(h0, 5, 0);
        let (_, carry) = add(h1, 0, carry);
        let (_, carry) = add(h2, 0, carry);
        let (_, carry) = add(h3, 0, carry);
        // Bits from 2¹³⁰ on are not part of the tag.
        let mut carry = u64::from(5 * ((h4 + carry) >> 2));
        let mut tag = [0; 16];
        let places = tag.as_chunks_mut().0.iter_mut();
        for ((place, word), pad) in places.zip([h0, h1, h2, h3]).zip(self.pad) {
            carry += u64::from(word) + u64::from(pad);
            *place = (carry as u32).to_le_bytes();
            carry >>= 32;
        }
        tag
    }
}

/// Returns the sum of two words and a carry of 0 or 1, and the new carry.
#[inline(always)]
const fn add(a: u32, b: u32, carry: u32) -> (u32, u32) {
    let sum = a as u64 + b as u64 + carry as u64;
    (sum as u32, (sum >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let digit = |byte: &u8| (*byte as char).to_digit(16).unwrap() as u8;
        let pairs = digits.chunks(2);
        pairs
            .map(|pair| digit(&pair[0]) << 4 | digit(&pair[1]))
            .collect()
    }

    /// The tag of a message of any length.
    fn tag(key: &[u8], message: &[u8]) -> Vec<u8> {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
        let words: Vec<u32> = key.chunks(4).map(word).collect();
        let mut state = Poly1305::new(words.try_into().unwrap());
        for piece in message.chunks(16) {
            let mut block = [0; 16];
            block[..piece.len()].copy_from_slice(piece);
            if let Some(end) = block.get_mut(piece.len()) {
                *end = 1;
            }
            state.block(&block, u32::from(piece.len() == 16));
        }
        state.finish().to_vec()
    }

    const IETF: &[u8] =
        b"Any submission to the IETF intended by the Contributor for publication as \
        all or part of an IETF Internet-Draft or RFC and any statement made within the context of \
        an IETF activity is considered an \"IETF Contribution\". Such statements include oral \
        statements in IETF sessions, as well as written and electronic communications made at any \
        time or place, which are addressed to";

    const JABBERWOCKY: &[u8] = b"'Twas brillig, and the slithy toves\nDid gyre and gimble in the \
        wabe:\nAll mimsy were the borogoves,\nAnd the mome raths outgrabe.";

    /// RFC 8439, section 2.5.2 and appendix A.3, vectors 1 to 11.
    #[test]
    fn tags_are_those_of_the_rfc() {
        let zeros = "00000000000000000000000000000000";
        let ones = "ffffffffffffffffffffffffffffffff";
        let (two, one) = (
            "02000000000000000000000000000000",
            "01000000000000000000000000000000",
        );
        let r = "36e5f6b5c5e06070f0efca96227a863e";
        let four = "01000000000000000400000000000000";
        let check = |key: [&str; 2], message: &[u8], expected: &str| {
            let found = tag(&hex(&key.concat()), message);
            assert_eq!(found, hex(expected), "{key:?}");
        };
        let parts = |parts: &[&str]| hex(&parts.concat());
        check(
            [
                "85d6be7857556d337f4452fe42d506a8",
                "0103808afb0db2fd4abff6af4149f51b",
            ],
            b"Cryptographic Forum Research Group",
            "a8061dc1305136c6c22b8baf0c0127a9",
        );
        check([zeros, zeros], &[0; 64], zeros);
        check([zeros, r], IETF, r);
        check([r, zeros], IETF, "f3477e7cd95417af89a6b8794c310cf0");
        check(
            [
                "1c9240a5eb55d38af333888604f6b5f0",
                "473917c1402b80099dca5cbc207075c0",
            ],
            JABBERWOCKY,
            "4541669a7eaaee61e708dc7cbcc5eb62",
        );
        check([two, zeros], &hex(ones), "03000000000000000000000000000000");
        check([two, ones], &hex(two), "03000000000000000000000000000000");
        let message = parts(&[ones, "f0ffffffffffffffffffffffffffffff", "11", &zeros[2..]]);
        check([one, zeros], &message, "05000000000000000000000000000000");
        let message = parts(&[
            ones,
            "fbfefefefefefefefefefefefefefefe",
            "01010101010101010101010101010101",
        ]);
        check([one, zeros], &message, zeros);
        let message = hex("fdffffffffffffffffffffffffffffff");
        check([two, zeros], &message, "faffffffffffffffffffffffffffffff");
        let first = "e33594d7505e43b900000000000000003394d7505e4379cd01000000000000000000000000";
        let first = parts(&[
            first,
            "000000000000000000000001000000000000000000000000000000",
        ]);
        let tag = "14000000000000005500000000000000";
        check([four, zeros], &first[..64], tag);
        check(
            [four, zeros],
            &first[..48],
            "13000000000000000000000000000000",
        );
    }
}
