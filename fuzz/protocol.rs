//! Both sides of the protocol between devices and coordinator, against a peer that knows the key
//! and sends any messages in any order. The bytes are a script. [`Script::next`] defines its
//! meaning.

#[path = "protocol/coordinator.rs"]
mod coordinator;
#[path = "protocol/session.rs"]
pub mod session;

use std::num::NonZeroU32;

use smolfed_core::bit::BitRequest;
use smolfed_core::harness::{self, PARAMETERS};
use smolfed_core::noise::Sigma;
use smolfed_core::params::ClipNorm;
use smolfed_core::personal::{Personal, PersonalRequest};
use smolfed_core::quantize::Grid;
use smolfed_core::stream::{Purpose, Root, Stream};
use smolfed_core::wire::frame::{Encoded, Header};
use smolfed_core::wire::keys::SessionKey;
use smolfed_core::wire::message::{Invitation, Request};
use smolfed_core::wire::{Direction, VERSION};

pub use coordinator::coordinator;
pub use session::{flash, session};

const KEY: [u8; 32] = [3; 32];

/// A series of actions, decoded from bytes.
struct Script<'a>(&'a [u8]);

/// One action of the script.
enum Action<'a> {
    /// Raw bytes on the line.
    Bytes(&'a [u8]),
    /// A frame under the right key: kind, round, body.
    Frame(u8, u32, &'a [u8]),
    /// A well-formed message, chosen by two numbers.
    WellFormed(u8, u8),
    /// Time passes.
    Silence,
    /// The peer reconnects.
    Reconnect,
    /// The round ends, and the next begins.
    NextRound,
    /// The correct greeting.
    Greeting,
}

impl<'a> Script<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn chunk(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.byte()?).min(self.0.len());
        let (chunk, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(chunk)
    }

    fn next(&mut self) -> Option<Action<'a>> {
        Some(match self.byte()? % 8 {
            0 => Action::Bytes(self.chunk()?),
            1 => Action::Frame(self.byte()?, u32::from(self.byte()?), self.chunk()?),
            2 | 3 => Action::WellFormed(self.byte()?, self.byte()?),
            4 => Action::Silence,
            5 => Action::Reconnect,
            6 => Action::NextRound,
            _ => Action::Greeting,
        })
    }
}

fn stream() -> Stream {
    harness::stream(&Root::from_seed(1), Purpose::Initialisation, 0, 0)
}

/// Returns an invitation that the device accepts, or would accept except for a few fields.
fn invitation(choice: u8) -> Invitation {
    let noise = Sigma::new(3 << 16, 2).expect("a valid σ");
    let noise = (choice & 16 != 0).then_some(noise);
    Invitation {
        epochs: u32::from(choice % 4),
        batch_size: NonZeroU32::MIN,
        grid: Grid::new(ClipNorm::new(0.5).expect("a valid norm"), 16).expect("a valid grid"),
        bit: (choice & 32 != 0).then_some(BitRequest { noise }),
        request: (choice & 64 != 0).then_some(Request::Personal(PersonalRequest {
            personal: Personal::Rest,
            steps: None,
            shared: PARAMETERS as u32 - 1,
            last: (choice & 128 != 0).then_some(0),
        })),
        ..harness::invitation(noise)
    }
}

/// Returns a frame that is not a valid message, under some key.
fn raw(kind: u8, round: u32, body: &[u8]) -> Encoded {
    let header = Header {
        version: VERSION,
        kind,
        round,
        sequence: 1,
    };
    Encoded::seal(
        header,
        body,
        &SessionKey::from_secret(KEY),
        Direction::ToDevice,
    )
}
