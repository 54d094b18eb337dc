//! The coordinator's side.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use smolfed::coordinator::exchange::{Offer, Verdict};
use smolfed::coordinator::line::{Line, Roster};
use smolfed::coordinator::peer::{LineId, Peer, Terms};
use smolfed_core::wire::cobs::Decoder;
use smolfed_core::wire::frame::Frame;
use smolfed_core::wire::link::{DeviceEnd, Link, greet};
use smolfed_core::wire::mac::Key;
use smolfed_core::wire::message::{Hello, Message, Packed, UPDATE_CHUNK_BYTES, UpdateChunk};
use smolfed_core::wire::{Direction, FRAME_BYTES};

use super::{Action, KEY, PARAMETERS, Script, invitation, raw, shape, stream};

/// The coordinator, against a device that knows its own key and one that does not.
///
/// It must return, whatever they say; answer at most a frame for each that came, and a call; let in no
/// update beyond its bound; and never offer what is over.
pub fn coordinator(bytes: &[u8]) {
    let mut script = Script(bytes);
    let local_noise = script.byte().is_some_and(|byte| byte & 1 != 0);
    let terms = Terms {
        shape: shape(),
        local_noise,
    };
    let key = Key::from_secret(KEY);
    let peers = [(5, key.clone()), (6, Key::from_secret([4; 32]))];
    let peers = peers.map(|(device, key)| (device, Peer::new(device, key, terms)));
    let mut roster = Roster::new(BTreeMap::from(peers), stream());
    let mut line = Line::new(LineId(0));
    let (mut lines, mut number, mut now) = (0, 0, Duration::ZERO);
    let mut link: Option<Link<DeviceEnd>> = None;
    let mut offer = None;
    while let Some(action) = script.next() {
        let mut said = Vec::new();
        let mut say = |link: &mut Option<Link<DeviceEnd>>, round, message: &Message<'_>| {
            if let Some(link) = link {
                said.extend_from_slice(link.seal(round, message).as_slice());
            }
        };
        let mut nonce = None;
        match action {
            Action::Bytes(bytes) => said.extend_from_slice(bytes),
            Action::Frame(kind, round, body) => {
                match Message::parse(kind, body, Direction::ToCoordinator) {
                    Ok(message) => say(&mut link, round, &message),
                    Err(_) => said.extend_from_slice(raw(kind, round, body).as_slice()),
                }
            }
            Action::Sensible(what, choice) => match what % 4 {
                0 => say(&mut link, number, &Message::Ready),
                1 => say(
                    &mut link,
                    number,
                    &Message::WantModel(u16::from(choice % 4)),
                ),
                _ => {
                    let width = invitation(if local_noise { 16 } else { 0 }).width();
                    let count = smolfed_core::wire::pack::capacity(width, UPDATE_CHUNK_BYTES);
                    let index = u16::from(choice % 4);
                    let left = PARAMETERS
                        .saturating_sub(usize::from(index) * count)
                        .min(count);
                    let packed = [choice / 64; UPDATE_CHUNK_BYTES];
                    let length = smolfed_core::wire::pack::packed_bytes(width, left);
                    let chunk = UpdateChunk {
                        index,
                        negated: choice & 32 != 0,
                        packed: Packed::Bytes(packed.get(..length).unwrap_or_default()),
                    };
                    say(&mut link, number, &Message::UpdateChunk(chunk));
                }
            },
            Action::Silence => now += Duration::from_millis(700),
            Action::Reconnect => {
                line.lost(&mut roster);
                lines += 1;
                line = Line::new(LineId(lines));
            }
            Action::NextRound => {
                number += 1;
                let next = Arc::new(Offer {
                    number,
                    invitation: invitation(if local_noise { 17 } else { 1 }),
                    model: vec![0.5; PARAMETERS],
                });
                for peer in roster.peers.values_mut() {
                    check(peer.close(), offer.as_ref());
                    peer.offer(Arc::clone(&next));
                }
                offer = Some(next);
            }
            Action::Greeting => {
                let fresh = [number as u8; 16];
                let hello = Message::Hello(Hello {
                    device: 5,
                    nonce: fresh,
                    lowest_version: 1,
                    highest_version: 1,
                    shape: shape(),
                    needs_local_noise: false,
                });
                let frame = greet::<DeviceEnd>(&hello, &key);
                said.extend_from_slice(frame.as_slice());
                nonce = Some(fresh);
            }
        }
        let mut out = Vec::new();
        line.receive(&said, &mut roster, now, &mut out);
        line.poll(&mut roster, now, &mut out);
        let frames = said.iter().filter(|byte| **byte == 0).count();
        // An answer each, an invitation each, and a call.
        assert!(
            out.len() <= (frames + 4) * FRAME_BYTES,
            "{} bytes",
            out.len()
        );
        if let Some(nonce) = nonce.and_then(|nonce| Some((nonce, welcome(&out)?))) {
            let session = key.session(5, &nonce.0, &nonce.1);
            link = Some(Link::<DeviceEnd>::new(session));
        }
        let stranger = roster.peers.get(&6);
        assert!(
            stranger.is_some_and(|peer| !peer.is_reachable()),
            "without its key"
        );
    }
    for peer in roster.peers.values_mut() {
        check(peer.close(), offer.as_ref());
    }
}

/// The coordinator's nonce in these bytes.
fn welcome(bytes: &[u8]) -> Option<[u8; 16]> {
    let mut decoder = Decoder::new();
    let mut nonce = None;
    for byte in bytes {
        if let Some(Ok(raw)) = decoder.push(*byte)
            && let Ok(frame) = Frame::parse(raw)
            && let Ok(Message::Welcome(found)) =
                Message::parse(frame.header.kind, frame.body, Direction::ToDevice)
        {
            nonce = Some(found.nonce);
        }
    }
    nonce
}

fn check(verdict: Option<Verdict>, offer: Option<&Arc<Offer>>) {
    let (Some(Verdict::Answered(integers)), Some(offer)) = (verdict, offer) else {
        return;
    };
    assert_eq!(integers.len(), PARAMETERS);
    let squares: u128 = integers
        .iter()
        .map(|q| u128::from(q.unsigned_abs()).pow(2))
        .sum();
    let bound = offer.invitation.grid.bound();
    assert!(
        offer.invitation.noise.is_some() || squares <= bound.into(),
        "beyond its bound"
    );
}
