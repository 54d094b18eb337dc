//! The messages on a link: one byte for the kind and a body, with little-endian numbers.
//!
//! | kind | from | body |
//! | --- | --- | --- |
//! | 1 hello | coordinator | the process (16 random bytes) |
//! | 2 ask | coordinator | none: how is it? |
//! | 3 request | coordinator | the question of a round, below |
//! | 129 state | helper | the answer to hello and ask, below |
//! | 130 answer | helper | round u32, width u8, entries u32, integers packed as an update's |
//! | 131 refusal | helper | why, a [`HelperRefusal`] as JSON |
//! | 132 busy | helper | none: another coordinator is connected |
//! | 133 failed | helper | none: the answer could not be recorded, and was not given |
//!
//! ```text
//! request   round u32 | b u8 | w u8 | helpers u8 | entries u32
//!           | length u32, invitation | count u32, model f32..
//!           | count u32, (device u32 | fingerprint of its ledger (8) | tag (16))..
//!           | count u32, earlier rounds u32..
//! state     last round u32, or 2^32 - 1 for none | rounds left u32 | devices u32 | min cohort u32
//!           | helpers u8 | noise multiplier f64 | count u32, coefficients i64..
//! ```

use smolfed_core::mask::Terms;
use smolfed_core::wire::pack;

use smolfed_release::masked::{HelperAnswer, HelperRefusal, HelperRequest, Listed};

mod kind {
    pub(super) const HELLO: u8 = 1;
    pub(super) const ASK: u8 = 2;
    pub(super) const REQUEST: u8 = 3;
    pub(super) const STATE: u8 = 129;
    pub(super) const ANSWER: u8 = 130;
    pub(super) const REFUSAL: u8 = 131;
    pub(super) const BUSY: u8 = 132;
    pub(super) const FAILED: u8 = 133;
}

/// A coordinator's message.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// The first message of a link. It identifies the process, so that only this process can return
    /// after its connection broke.
    Hello([u8; 16]),
    /// Asks for the state of the helper.
    Ask,
    /// The question of a round.
    Request(HelperRequest),
}

/// A helper's message.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Its state.
    State(HelperState),
    /// The answer of a round, in integers of this many bits.
    Answer(HelperAnswer, u8),
    /// Why the helper gives no answer.
    Refusal(HelperRefusal),
    /// Another coordinator is connected.
    Busy,
    /// The answer could not be recorded.
    Failed,
}

/// The state and the policy of a helper.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HelperState {
    /// The last answered round.
    pub last: Option<u32>,
    /// Rounds that it would still answer.
    pub rounds_left: u32,
    /// Number of devices with keys.
    pub devices: u32,
    /// Minimum number of devices on a list.
    pub min_cohort: u32,
    /// Helpers of the federation.
    pub helpers: u8,
    /// Standard deviation of its noise over the clip norm.
    pub noise_multiplier: f64,
    /// How it combines the sums of rounds. Empty for independent noise.
    pub coefficients: Vec<i64>,
}

/// Error for malformed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message was malformed")]
pub struct Malformed;

impl Question {
    /// Returns the bytes of the message.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let request = match self {
            Self::Hello(process) => return [&[kind::HELLO], process.as_slice()].concat(),
            Self::Ask => return vec![kind::ASK],
            Self::Request(request) => request,
        };
        let Terms {
            grid_bits,
            width,
            helpers,
        } = request.terms;
        let mut bytes = vec![kind::REQUEST];
        bytes.extend(request.round.to_le_bytes());
        bytes.extend([grid_bits, width, helpers]);
        bytes.extend(request.entries.to_le_bytes());
        bytes.extend(count(&request.invitation));
        bytes.extend(&request.invitation);
        bytes.extend(count(&request.model));
        let values = request.model.iter();
        bytes.extend(values.flat_map(|value| value.to_le_bytes()));
        bytes.extend(count(&request.devices));
        for Listed {
            device,
            ledger,
            tag,
        } in &request.devices
        {
            bytes.extend(device.to_le_bytes());
            bytes.extend(ledger);
            bytes.extend(tag);
        }
        bytes.extend(count(&request.earlier));
        let earlier = request.earlier.iter();
        bytes.extend(earlier.flat_map(|round| round.to_le_bytes()));
        bytes
    }

    /// Parses these bytes.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let mut parse = || {
            let question = match reader.u8()? {
                kind::HELLO => Self::Hello(reader.array()?),
                kind::ASK => Self::Ask,
                kind::REQUEST => Self::Request(request(&mut reader)?),
                _ => return None,
            };
            reader.0.is_empty().then_some(question)
        };
        parse().ok_or(Malformed)
    }
}

fn request(reader: &mut Reader<'_>) -> Option<HelperRequest> {
    let round = reader.u32()?;
    let [grid_bits, width, helpers] = reader.array()?;
    Some(HelperRequest {
        round,
        terms: Terms {
            grid_bits,
            width,
            helpers,
        },
        entries: reader.u32()?,
        invitation: reader.many(|reader| reader.u8())?,
        model: reader.many(|reader| reader.array().map(f32::from_le_bytes))?,
        devices: reader.many(|reader| {
            Some(Listed {
                device: reader.u32()?,
                ledger: reader.array()?,
                tag: reader.array()?,
            })
        })?,
        earlier: reader.many(Reader::u32)?,
    })
}

impl Reply {
    /// Returns the bytes of the message.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::State(state) => state.to_bytes(),
            Self::Answer(answer, width) => {
                let entries = &answer.integers;
                let mut bytes = vec![kind::ANSWER];
                bytes.extend(answer.round.to_le_bytes());
                bytes.push(*width);
                bytes.extend(count(entries));
                let start = bytes.len();
                let width = u32::from(*width);
                bytes.resize(start + pack::packed_bytes(width, entries.len()), 0);
                let place = bytes.get_mut(start..).unwrap_or_default();
                // The buffer has the length of the packed integers.
                let _ = pack::pack(entries.iter().copied(), width, place);
                bytes
            }
            Self::Refusal(refusal) => {
                let reason = serde_json::to_vec(refusal).unwrap_or_default();
                [&[kind::REFUSAL], reason.as_slice()].concat()
            }
            Self::Busy => vec![kind::BUSY],
            Self::Failed => vec![kind::FAILED],
        }
    }

    /// Parses these bytes.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let mut parse = || {
            let reply = match reader.u8()? {
                kind::STATE => Self::State(HelperState::parse(&mut reader)?),
                kind::ANSWER => return answer(&mut reader),
                kind::REFUSAL => {
                    return Some(Self::Refusal(serde_json::from_slice(reader.0).ok()?));
                }
                kind::BUSY => Self::Busy,
                kind::FAILED => Self::Failed,
                _ => return None,
            };
            reader.0.is_empty().then_some(reply)
        };
        parse().ok_or(Malformed)
    }
}

fn answer(reader: &mut Reader<'_>) -> Option<Reply> {
    let round = reader.u32()?;
    let width = reader.u8()?;
    let entries = reader.u32()? as usize;
    let bits = u32::from(width);
    if !(1..=57).contains(&bits) || pack::packed_bytes(bits, entries) != reader.0.len() {
        return None;
    }
    let mut integers = vec![0; entries];
    pack::unpack(reader.0, bits, &mut integers)?;
    // Unsigned, not centred on 0.
    let mask = (1 << bits) - 1;
    integers.iter_mut().for_each(|x| *x &= mask);
    Some(Reply::Answer(HelperAnswer { round, integers }, width))
}

impl HelperState {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![kind::STATE];
        for number in [
            self.last.unwrap_or(u32::MAX),
            self.rounds_left,
            self.devices,
            self.min_cohort,
        ] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.push(self.helpers);
        bytes.extend(self.noise_multiplier.to_le_bytes());
        bytes.extend(count(&self.coefficients));
        let coefficients = self.coefficients.iter();
        bytes.extend(coefficients.flat_map(|m| m.to_le_bytes()));
        bytes
    }

    fn parse(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            last: Some(reader.u32()?).filter(|last| *last != u32::MAX),
            rounds_left: reader.u32()?,
            devices: reader.u32()?,
            min_cohort: reader.u32()?,
            helpers: reader.u8()?,
            noise_multiplier: reader.array().map(f64::from_le_bytes)?,
            coefficients: reader.many(|reader| reader.array().map(i64::from_le_bytes))?,
        })
    }
}

/// Returns the length of a list. The limit on messages makes it fit.
fn count<T>(list: &[T]) -> [u8; 4] {
    (list.len() as u32).to_le_bytes()
}

/// The unread rest of a message.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a list. Its length is not trusted before its elements are there.
    fn many<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.u32()?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(one(self)?);
        }
        Some(list)
    }
}

#[cfg(test)]
mod tests;
