//! The coordinator's work for a Hello: without a handshake, with an X25519 handshake, and for a
//! Hello that it has just answered.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion};
use rand_core::Rng;
use smolfed::fleet::connection::Connection;
use smolfed::fleet::ledgers::KnownLedgers;
use smolfed::fleet::peer::{ConnectionId, Peer, Terms};
use smolfed::fleet::registry::Registry;
use smolfed_core::crypto::Key;
use smolfed_core::model::{Const, Softmax};
use smolfed_core::stream::{Purpose, Stream};
use smolfed_core::wire::frame::Encoded;
use smolfed_core::wire::greeting::{Greeting, Hello, Name, Versions};
use smolfed_core::wire::handshake::Ephemeral;
use smolfed_core::wire::keys::{Chain, ChainKey};
use smolfed_core::wire::message::ModelShape;

fn main() {
    let mut criterion = smolfed_benches::criterion().configure_from_args();
    greetings(&mut criterion);
    criterion.final_summary();
}

fn greetings(criterion: &mut Criterion) {
    let Some(shape) = ModelShape::of(&Softmax::new(Const::<64>, Const::<10>)) else {
        return;
    };
    let terms = Terms {
        shape,
        local_noise: false,
        handshake: false,
        recipe: None,
    };
    let key = Key::from_secret([1; 32]);
    let peers = BTreeMap::from([(0, Peer::new(0, ChainKey::new(key.clone()), terms))]);
    let nonces = smolfed_benches::stream(Purpose::SessionNonces);
    let registry = Registry::new(peers, KnownLedgers::default(), nonces);
    let rng = &mut smolfed_benches::stream(Purpose::Synthesis);
    let mut group = criterion.benchmark_group("greeting");
    let chain = ChainKey::new(key);
    let mut repeated = Connection::new(ConnectionId(1));
    let last = hello(&chain, true, rng);
    group.bench_function("repeated", |bencher| {
        bencher.iter(|| {
            let mut out = vec![];
            let bytes = black_box(last.as_slice());
            repeated.receive(bytes, &registry, Duration::ZERO, &mut out);
            out
        });
    });
    for (name, has_handshake) in [("plain", false), ("x25519", true)] {
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || {
                    let hello = hello(&chain, has_handshake, rng);
                    (Connection::new(ConnectionId(0)), hello)
                },
                |(mut connection, hello)| {
                    let mut out = vec![];
                    let bytes = black_box(hello.as_slice());
                    connection.receive(bytes, &registry, Duration::ZERO, &mut out);
                    out
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// Returns a new Hello.
fn hello(chain: &ChainKey, has_handshake: bool, rng: &mut Stream) -> Encoded {
    let mut nonce = [0; 16];
    rng.fill_bytes(&mut nonce);
    let name = Name::Number(0);
    let hello = match has_handshake {
        true => {
            let own = Ephemeral::generate(rng);
            let (key, psk) = (chain.greeting(), chain.handshake(0));
            Hello::with_handshake(&key, &psk, name, nonce, Versions::OURS, &own)
        }
        false => Hello::new(&chain.greeting(), name, nonce, Versions::OURS),
    };
    Greeting::Hello(hello).encoded()
}
