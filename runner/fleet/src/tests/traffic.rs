//! The frames of real rounds are the predicted ones, byte by byte.

use std::collections::BTreeMap;

use proptest::prelude::*;
use smolfed_core::bit::BitRequest;
use smolfed_core::contrast::{ContrastRequest, Part, Projection, Recipe, Windows as Augmented};
use smolfed_core::fixed_point::{FeatureFormat, FeatureScale};
use smolfed_core::harness::{deliver, transmit};
use smolfed_core::identity::Identity;
use smolfed_core::mask::Masking;
use smolfed_core::model::{
    Architecture, BATCH_GROUP, Fixed, FixedModel, Layer, Model, Shape, Softmax,
};
use smolfed_core::noise::Sigma;
use smolfed_core::params::Penalty;
use smolfed_core::personal::store::flash::FlashStore;
use smolfed_core::personal::store::{BlockingStore, NoStore};
use smolfed_core::personal::{Personal, PersonalRequest};
use smolfed_core::samples::SampleSlice;
use smolfed_core::session::{FixedPoint, Session, Trainable, Unlabelled};
use smolfed_core::stream::{Purpose, Root, Stream};
use smolfed_core::train::Clipping;
use smolfed_core::wire::message::{Invitation, ModelGrid, Request};
use smolfed_core::{ClipNorm, Grid, Progress};

use super::*;
use crate::device::memory::SessionMemory;
use crate::exchange::Offer;
use crate::ledgers::KnownLedgers;
use crate::peer::Terms;
use crate::short_model::Recent;
use crate::traffic::{Traffic, of_both_parts};

const SAMPLES: usize = 10;

fn shape_of(features: u16, outputs: u16) -> ModelShape {
    ModelShape {
        features,
        outputs,
        ..shape()
    }
}

fn asked(shape: ModelShape, bits: u32) -> Invitation {
    Invitation {
        shape,
        grid: Grid::new(ClipNorm::new(1.0).unwrap(), bits).unwrap(),
        ..*invitation_of(None)
    }
}

fn invitation_of(noise: Option<Sigma>) -> Box<Invitation> {
    Box::new(smolfed_core::harness::invitation(noise))
}

/// Returns the lengths of the frames in these bytes.
fn lengths(bytes: &[u8]) -> Vec<usize> {
    let frames = bytes.split_inclusive(|byte| *byte == 0);
    frames.map(<[u8]>::len).collect()
}

/// Removes a coordinator's first bytes on a new connection: a zero, which clears the line, and a
/// Call.
fn without_call(mut greeting: Traffic) -> Traffic {
    let call = Greeting::Call.encoded().as_slice().len();
    greeting.down.retain(|length| ![1, call].contains(length));
    greeting
}

/// Properties of a device, except its model.
struct Kind<'a, M: Trainable, K> {
    scratch: usize,
    targets: &'a [M::Target],
    store: K,
}

/// Returns a device's greeting and its part of the offers, on a line that loses nothing.
fn real<M: Trainable<Target: Default>, K: BlockingStore>(
    model: M,
    kind: Kind<'_, M, K>,
    offers: Vec<Offer>,
) -> [Traffic; 2] {
    let asked = offers[0].invitation;
    let terms = Terms {
        shape: asked.shape,
        ..terms(asked.noise)
    };
    let mut harness = Harness::under(terms, KnownLedgers::default());
    let memory = SessionMemory::new(&model, SAMPLES, kind.scratch);
    let memory = Box::leak(Box::new(memory)).borrow();
    let identity = Identity {
        device: 2,
        root: Root::from_seed(11),
    };
    let policy = Policy {
        helpers: asked.helpers(),
        ..policy()
    };
    let ledger = Ledger::create(Ram::blank(), NONCE, key(2)).unwrap();
    let nonces = stream(Purpose::Initialisation, 0, 2);
    let mut board: Session<'_, M, Ram, Stream, K> =
        Session::with_store(identity, policy, model, memory, ledger, nonces, kind.store).unwrap();
    let width = asked.shape.features.into();
    let features: Vec<f32> = (0..width * SAMPLES).map(|i| (i % 7) as f32 * 0.1).collect();
    let samples = SampleSlice::new(&features, kind.targets, width).unwrap();
    board.timeout();
    let mut turn = |harness: &mut Harness, traffic: &mut Traffic| {
        let mut sent = vec![];
        transmit(&mut board, |bytes| sent.extend_from_slice(bytes));
        let answer = harness.receive(&sent);
        traffic.up.extend(lengths(&sent));
        traffic.down.extend(lengths(&answer));
        deliver(&mut board, &answer, |board| {
            while board.train_some(&samples, SAMPLES) == Progress::More {}
        });
    };
    let (mut greeting, mut round) = (Traffic::default(), Traffic::default());
    while harness.peer(2).state() != "ready" {
        turn(&mut harness, &mut greeting);
    }
    for offer in offers {
        harness.peer(2).offer(Arc::new(offer));
        while !harness.peer(2).is_settled() {
            turn(&mut harness, &mut round);
        }
        let outcome = harness.peer(2).close().unwrap();
        assert!(
            !matches!(outcome, ExchangeOutcome::Missing(_)),
            "{outcome:?}"
        );
    }
    [without_call(greeting), round]
}

/// Returns an offer to train this way, with nothing behind the model.
fn offer_of(asked: Invitation) -> Offer {
    Offer {
        invitation: asked,
        model: vec![0.0; asked.shape.parameters()],
        ..Arc::into_inner(offer(1, None)).unwrap()
    }
}

fn of_softmax(asked: Invitation) -> [Traffic; 2] {
    of_keeper(asked, NoStore)
}

fn of_keeper(asked: Invitation, store: impl BlockingStore) -> [Traffic; 2] {
    of_offers(asked, store, vec![offer_of(asked)])
}

fn of_offers(asked: Invitation, store: impl BlockingStore, offers: Vec<Offer>) -> [Traffic; 2] {
    let (features, outputs) = (asked.shape.features.into(), asked.shape.outputs.into());
    let model = Softmax::<usize, usize>::new(features, outputs);
    let kind = Kind {
        scratch: Model::scratch_count(&model, BATCH_GROUP),
        targets: &[0; SAMPLES],
        store,
    };
    real(model, kind, offers)
}

fn of_integers(asked: Invitation, scale: FeatureScale) -> [Traffic; 2] {
    let (features, outputs) = (asked.shape.features.into(), asked.shape.outputs.into());
    let model = FixedPoint::<_, i8>::new(Softmax::<usize, usize>::new(features, outputs), scale);
    let kind = Kind {
        scratch: features + outputs,
        targets: &[0; SAMPLES],
        store: NoStore,
    };
    real(model, kind, vec![offer_of(asked)])
}

fn predicted(asked: Invitation) -> [Traffic; 2] {
    let round = Traffic::of_exchange(&asked, asked.shape.parameters(), 0);
    [Traffic::of_greeting(asked.shape), round]
}

#[test]
fn a_round_under_central_trust_has_the_predicted_frames() {
    let asked = asked(shape_of(24, 5), 8);
    assert_eq!(of_softmax(asked), predicted(asked));
}

/// On a grid, in two rounds: the second model is sent as a difference to the first one.
#[test]
fn rounds_with_short_models_have_the_predicted_frames() {
    let grid = ModelGrid::new(12).unwrap();
    let asked = asked(shape_of(24, 5), 8);
    let parameters = asked.shape.parameters();
    let mut recent = Recent::new(Some(grid));
    let offers = [1, 2].map(|number| {
        let model = vec![grid.value(number as i16); parameters];
        Offer {
            short: recent.offer(number, &model),
            ..Offer::new(number, asked, model)
        }
    });
    let of = |is_difference| Traffic::of_short_exchange(&asked, parameters, grid, is_difference);
    let [_, rounds] = of_offers(asked, NoStore, offers.into());
    assert_eq!(rounds, of(false).then(of(true)));
}

#[test]
fn a_round_with_the_bit_of_an_adaptive_clip_norm_has_the_predicted_frames() {
    let asked = Invitation {
        bit: Some(BitRequest { noise: None }),
        ..asked(shape_of(64, 10), 16)
    };
    assert_eq!(of_softmax(asked), predicted(asked));
}

#[test]
fn a_round_in_integers_under_local_trust_has_the_predicted_frames() {
    let scale = FeatureScale::new::<i8>(6).unwrap();
    let mut asked = Invitation {
        noise: noise(),
        ..asked(shape_of(24, 5), 20)
    };
    asked.shape.integer = Some(FeatureFormat::of::<i8>(scale));
    assert_eq!(of_integers(asked, scale), predicted(asked));
}

#[test]
fn a_round_with_masks_has_the_predicted_frames() {
    for (features, helpers) in [(24, 1), (64, 2)] {
        let asked = Invitation {
            masks: Masking::new(helpers, 19),
            ..asked(shape_of(features, 10), 8)
        };
        assert_eq!(of_softmax(asked), predicted(asked));
    }
}

#[test]
fn a_round_with_a_personal_model_has_the_predicted_frames() {
    let shape = shape_of(24, 5);
    let with = |personal, shared| Invitation {
        request: Some(Request::Personal(PersonalRequest {
            personal,
            steps: None,
            shared,
            last: None,
        })),
        ..asked(shape, 8)
    };
    let pull = Penalty::NONE;
    for asked in [with(Personal::Rest, 120), with(Personal::Tuned { pull }, 0)] {
        let store = FlashStore::new(Ram::<Vec<u8>>::new(vec![0xff; 2_048])).unwrap();
        assert_eq!(of_keeper(asked, store), predicted(asked));
    }
}

struct Windows;

impl Architecture for Windows {
    const INPUT: Shape = Shape::Image {
        channels: 2,
        height: 1,
        width: 6,
    };
    const LAYERS: &'static [Layer] = &[
        Layer::Convolution {
            channels: 3,
            kernel: [1, 3],
            stride: [1, 1],
            padding: [0, 0],
        },
        Layer::Relu,
        Layer::GlobalAverage,
        Layer::Dense { outputs: 6 },
    ];
}

#[test]
fn a_round_with_a_network_has_the_predicted_frames() {
    let network = Fixed::<Windows>::new();
    let asked = asked(ModelShape::of(&network).unwrap(), 16);
    let kind = Kind {
        scratch: Fixed::<Windows>::SCRATCH,
        targets: &[0; SAMPLES],
        store: NoStore,
    };
    assert_eq!(real(network, kind, vec![offer_of(asked)]), predicted(asked));
}

/// A round without labels: first a matrix, and then an update, with the matrix of the others behind
/// the encoder.
#[test]
fn a_round_without_labels_has_the_predicted_frames() {
    const PAIRS: u32 = 2;
    let encoder = Projection::<usize, usize>::new(24, 6);
    let asked = asked(ModelShape::of_encoder(&encoder).unwrap(), 16);
    let with = |part, entries, max_samples| Invitation {
        request: Some(Request::Contrast(ContrastRequest {
            part,
            pairs: PAIRS,
            norm_bound: Some(3.0),
            entries,
            max_samples,
        })),
        clipping: Clipping::Final,
        ..asked
    };
    let entries = ContrastRequest::matrix_entries(6);
    let matrix = with(Part::Matrix, entries as u32, 50);
    let update = with(Part::Training { has_others: true }, 24 * 6, 0);
    let recipe = Recipe {
        alpha: 0.4,
        jitter: 0.25,
        ..Recipe::default()
    };
    let recipe = recipe.values().to_vec();
    let with_tail = |asked, tail| Offer {
        tails: BTreeMap::from([(2, tail)]),
        ..offer_of(asked)
    };
    let others = [recipe.clone(), vec![0.0; entries - 1]].concat();
    let offers = vec![with_tail(matrix, recipe), with_tail(update, others)];
    let model = Unlabelled::<_, Augmented>::new(encoder);
    let kind = Kind {
        scratch: model.scratch_for(2 * PAIRS as usize * SAMPLES),
        targets: &[(); SAMPLES],
        store: NoStore,
    };
    let [_, round] = real(model, kind, offers);
    assert_eq!(round, of_both_parts(&matrix, &update));
}

/// The table of `docs/protocol.md`, which the core's tests compute in another way.
#[test]
fn an_update_has_the_bytes_of_the_protocols_table() {
    let update = |bits, noise: bool| {
        let noise = noise.then(|| Sigma::new(1u64 << bits, 1).unwrap());
        let asked = Invitation {
            noise,
            ..asked(shape_of(64, 10), bits)
        };
        let traffic = Traffic::of_exchange(&asked, 0, 0);
        let model = Traffic::of_exchange(&asked, asked.shape.parameters(), 0);
        assert_eq!(model.bytes_down() - traffic.bytes_down(), 3_008);
        traffic.bytes_up()
    };
    let found = [8, 12, 16, 20].map(|bits| (update(bits, false), update(bits, true)));
    assert_eq!(
        found,
        [(873, 1_232), (1_232, 1_627), (1_627, 1_990), (1_990, 2_384)]
    );
}

proptest! {
    /// A larger model, a finer grid and noise never make a round cheaper.
    #[test]
    fn more_is_never_cheaper(features in 1u16..300, outputs in 2u16..20, bits in 4u32..20) {
        let cost = |features, outputs, bits| {
            let asked = asked(shape_of(features, outputs), bits);
            let [_, round] = predicted(asked);
            (round.bytes_up(), round.bytes_down(), round.up.len(), round.down.len())
        };
        let (a, b, c, d) = cost(features, outputs, bits);
        for (e, f, g, h) in [
            cost(features + 1, outputs, bits),
            cost(features, outputs + 1, bits),
            cost(features, outputs, bits + 1),
        ] {
            prop_assert!(a <= e && b <= f && c <= g && d <= h);
        }
    }
}
