//! A device with a network: its description, and the rounds that it declines.

use super::*;
use crate::{
    client::Client,
    model::{Architecture, Fixed, FixedModel, Layer, Shape},
};

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

type Network = Fixed<Windows>;
const COUNT: usize = Network::PARAMETERS;

/// Runs a round of a device with this network, and returns the coordinator.
fn round(shape: ModelShape) -> Coordinator {
    let nonces = stream(Purpose::Initialisation, 0);
    let memory = memory(COUNT, 10, Network::SCRATCH);
    let (network, ledger) = (Network::new(), ledger());
    let session = Session::new(identity(), policy(), network, memory, ledger, nonces);
    let mut board = session.unwrap();
    let mut asked = invitation(None);
    asked.shape = shape;
    let model = (0..COUNT).map(|i| (i % 7) as f32 * 0.1 - 0.3).collect();
    let mut other = Coordinator::new(chain(), 1, asked, model);
    let (features, targets) = data();
    let samples = SampleSlice::new(&features[..120], &targets, 12).unwrap();
    for _ in 0..100 {
        if other.done || other.declined.is_some() {
            return other;
        }
        board.timeout();
        other.receive(board.outgoing());
        board.sent();
        if board.phase() == Phase::Idle {
            other.invite();
        }
        for said in core::mem::take(&mut other.outgoing) {
            board.receive(&said);
        }
        board.train(&samples);
    }
    panic!("no end: {board:?}");
}

#[test]
fn a_network_takes_part_and_another_one_is_declined() {
    let own = ModelShape::of(&Network::new()).unwrap();
    assert_eq!((own.features, own.outputs), (12, 6));
    assert_eq!(own.parameters(), COUNT);
    let other = round(own);
    let mut client: Client<Network, COUNT, 10, { Network::SCRATCH }> = Client::new(Network::new());
    let (features, targets) = data();
    let samples = SampleSlice::new(&features[..120], &targets, 12).unwrap();
    let global = other.model.clone().try_into().unwrap();
    let order = &mut stream(Purpose::BatchShuffle, 1);
    client
        .train_unrecorded(&samples, &global, &other.invitation.training(), order)
        .unwrap();
    let mut integers = [0; COUNT];
    let grid = &other.invitation.grid;
    grid.quantize_into(client.update(), &mut integers).unwrap();
    assert_eq!(other.integers, integers.map(i64::from));

    let mut digest = own;
    digest.network.as_mut().unwrap().digest[7] ^= 1;
    let mut parameters = own;
    parameters.network.as_mut().unwrap().parameters += 1;
    let softmax = ModelShape {
        kind: ModelKind::Softmax,
        network: None,
        integer: None,
        ..own
    };
    for shape in [digest, parameters, softmax] {
        assert_eq!(round(shape).declined, Some(Decline::Shape), "{shape:?}");
    }
}
