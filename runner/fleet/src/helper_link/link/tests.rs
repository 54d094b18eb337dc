use tokio::io::{DuplexStream, duplex};
use zeroize::Zeroizing;

use super::*;

const PSK: [u8; 32] = [0x42; 32];

fn key(helper: u8) -> LinkKey {
    LinkKey {
        key: Key::from_secret(PSK),
        helper,
    }
}

fn pair(byte: u8) -> Ephemeral {
    Ephemeral::from_secret(Zeroizing::new([byte; 32]))
}

fn boxed(stream: DuplexStream) -> Box<dyn Transport> {
    Box::new(stream)
}

async fn linked(other: &LinkKey) -> (Result<Link, LinkError>, Result<Link, LinkError>) {
    let (a, b) = duplex(1 << 16);
    let (own, theirs) = (key(0), other.clone());
    tokio::join!(
        Link::begin(boxed(a), &own, pair(1)),
        Link::answer(boxed(b), &theirs, pair(2)),
    )
}

#[tokio::test]
async fn messages_of_any_length_arrive() {
    let (a, b) = linked(&key(0)).await;
    let (mut coordinator, mut helper) = (a.unwrap(), b.unwrap());
    for length in [0, 1, MAX_TEXT - 1, MAX_TEXT, MAX_TEXT + 1, 3 * MAX_TEXT] {
        let message: Vec<u8> = (0..length).map(|x| (x % 251) as u8).collect();
        let (sent, received) = tokio::join!(coordinator.send(&message), helper.receive());
        sent.unwrap();
        assert_eq!(received.unwrap(), message);
        let (sent, received) = tokio::join!(helper.send(&message), coordinator.receive());
        sent.unwrap();
        assert_eq!(received.unwrap(), message);
    }
}

#[tokio::test]
async fn another_key_and_another_helper_are_refused() {
    let other = LinkKey {
        key: Key::from_secret([1; 32]),
        helper: 0,
    };
    for other in [other, key(1)] {
        let (coordinator, helper) = linked(&other).await;
        assert!(matches!(helper.unwrap_err(), LinkError::Key));
        // It got no byte.
        assert!(matches!(coordinator.unwrap_err(), LinkError::Io(_)));
    }
}

#[tokio::test]
async fn another_version_is_named() {
    let (mut a, b) = duplex(64);
    a.write_all(&[2]).await.unwrap();
    let error = Link::answer(boxed(b), &key(0), pair(2)).await.unwrap_err();
    assert!(error.to_string().contains("version 2"), "{error}");
}

/// As in an independent implementation of Noise: tests/vectors/link.py.
#[tokio::test]
async fn the_bytes_are_those_of_another_implementation() {
    let (a, mut b) = duplex(1 << 12);
    let own = key(0);
    let begun = Link::begin(boxed(a), &own, pair(1));
    let played = async {
        let mut first = [0; 49];
        b.read_exact(&mut first).await.unwrap();
        let (c, mut d) = duplex(1 << 12);
        d.write_all(&first).await.unwrap();
        let mut helper = Link::answer(boxed(c), &key(0), pair(2)).await.unwrap();
        let mut second = [0; 48];
        d.read_exact(&mut second).await.unwrap();
        b.write_all(&second).await.unwrap();
        helper.send(b"smolfed").await.unwrap();
        let mut frame = vec![0; 2 + 7 + 16];
        d.read_exact(&mut frame).await.unwrap();
        b.write_all(&frame).await.unwrap();
        (first, second, frame)
    };
    let (link, (first, second, frame)) = tokio::join!(begun, played);
    assert_eq!(link.unwrap().receive().await.unwrap(), b"smolfed");
    let vectors = include_str!("../../../../../tests/vectors/link.json");
    let vectors: serde_json::Value = serde_json::from_str(vectors).unwrap();
    for (name, bytes) in [
        ("first", &first[..]),
        ("second", &second),
        ("frame_of_helper", &frame),
    ] {
        assert_eq!(vectors[name], hex::encode(bytes), "{name}");
    }
}

#[tokio::test]
async fn a_recorded_conversation_cannot_be_replayed() {
    let (a, b) = duplex(1 << 12);
    let begun = async {
        let mut link = Link::begin(boxed(a), &key(0), pair(1)).await.unwrap();
        link.send(b"question").await.unwrap();
    };
    let recorded = async {
        // All messages of the coordinator, after the answer of a helper.
        let (mut from, mut to) = tokio::io::split(b);
        let (c, d) = duplex(1 << 12);
        let (mut reader, mut writer) = tokio::io::split(d);
        let mut recorded = vec![0; 49];
        from.read_exact(&mut recorded).await.unwrap();
        writer.write_all(&recorded).await.unwrap();
        let helper = Link::answer(boxed(c), &key(0), pair(2)).await.unwrap();
        let mut second = [0; 48];
        reader.read_exact(&mut second).await.unwrap();
        to.write_all(&second).await.unwrap();
        let mut frame = [0; 2 + 8 + 16];
        from.read_exact(&mut frame).await.unwrap();
        recorded.extend(frame);
        drop(helper);
        recorded
    };
    let ((), recorded) = tokio::join!(begun, recorded);
    let (mut e, f) = duplex(1 << 12);
    e.write_all(&recorded).await.unwrap();
    let mut helper = Link::answer(boxed(f), &key(0), pair(3)).await.unwrap();
    assert!(matches!(
        helper.receive().await.unwrap_err(),
        LinkError::Frame
    ));
}
