//! Devices that keep a personal model: their updates and states match a simulation.

use super::{
    pieces::{Counted, abort},
    *,
};
use crate::{
    clip::clip_l2,
    params::NoiseMultiplier,
    personal::{
        Anchor, Effort, Personal, PersonalRequest, PersonalTraining, StepMemory, descend,
        split_step,
        store::{BlockingStore, PersonalStore, flash::FlashStore},
    },
};

mod stores;

type Store = FlashStore<Ram>;
type KeeperIn<F, K> = Session<'static, Softmax<Const<FEATURES>, Const<6>>, F, Stream, K>;
type Keeper = KeeperIn<Ram, Store>;

/// All weights, but not the biases.
const SHARED: u32 = (PARAMETERS - 6) as u32;

fn store() -> Store {
    FlashStore::new(Ram::new(vec![0xff; 2048])).unwrap()
}

fn keeper(policy: Policy, store: Store) -> Keeper {
    keeper_in(policy, ledger(), store)
}

fn keeper_in<F, K: PersonalStore>(policy: Policy, ledger: Ledger<F>, store: K) -> KeeperIn<F, K> {
    let model = Softmax::new(Const::<FEATURES>, Const::<6>);
    let nonces = stream(Purpose::Initialisation, 0);
    let memory = memory(PARAMETERS, 10, 6);
    Session::with_store(identity(), policy, model, memory, ledger, nonces, store).unwrap()
}

fn request(personal: Personal) -> PersonalRequest {
    PersonalRequest {
        personal,
        steps: None,
        shared: match personal {
            Personal::Rest => SHARED,
            Personal::Tuned { .. } => 0,
            _ => PARAMETERS as u32,
        },
        last: None,
    }
}

fn pmtl(from_previous: bool) -> Personal {
    let pull = Penalty::new(0.5).unwrap();
    Personal::Model {
        pull,
        from_previous,
    }
}

fn asked(request: PersonalRequest, noise: Option<Sigma>) -> Invitation {
    Invitation {
        request: Some(Request::Personal(request)),
        bit: (request.shared > 0).then_some(BitRequest { noise }),
        ..invitation(noise)
    }
}

/// Runs a round to its end or the decline.
fn round<K: BlockingStore>(board: &mut KeeperIn<Ram, K>, other: &mut Coordinator) {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    round_with(board, other, |board| board.train(&samples));
}

/// [`round`] with this training.
fn round_with<F, K: PersonalStore>(
    board: &mut KeeperIn<F, K>,
    other: &mut Coordinator,
    mut train: impl FnMut(&mut KeeperIn<F, K>),
) {
    for _ in 0..100 {
        board.timeout();
        while !board.outgoing().is_empty() {
            other.receive(board.outgoing());
            board.sent();
            for said in core::mem::take(&mut other.outgoing) {
                board.receive(&said);
            }
        }
        if other.done || other.declined.is_some() {
            return;
        }
        if other.connected() && board.phase() == Phase::Idle {
            other.invite();
            for said in core::mem::take(&mut other.outgoing) {
                board.receive(&said);
            }
        }
        train(board);
    }
    panic!("no end: {board:?}");
}

/// Runs greetings, the invitation and the model.
fn until_training(board: &mut Keeper, other: &mut Coordinator) {
    while board.phase() != Phase::Training {
        board.timeout();
        other.receive(board.outgoing());
        board.sent();
        if board.phase() == Phase::Idle {
            other.invite();
        }
        for said in core::mem::take(&mut other.outgoing) {
            board.receive(&said);
        }
    }
}

/// Returns the start of a device with this state.
fn own_model(request: &PersonalRequest, global: &[f32], state: Option<&Vec<f32>>) -> Vec<f32> {
    match (request.personal, state) {
        (_, None) | (Personal::Tuned { .. }, _) => global.to_vec(),
        (Personal::Model { .. }, Some(state)) => state.clone(),
        (Personal::Offset { .. }, Some(offset)) => {
            global.iter().zip(offset).map(|(w, o)| w + o).collect()
        }
        (Personal::Rest, Some(state)) => [&global[..request.shared as usize], state].concat(),
    }
}

/// Simulates a round. Returns the update as sent, the bit, and the new state.
fn simulated_personal(
    number: u32,
    invitation: &Invitation,
    global: &[f32],
    state: Option<&Vec<f32>>,
) -> (Vec<i64>, i64, Vec<f32>) {
    let request = *invitation.personal().unwrap();
    let shared = request.shared as usize;
    let start = own_model(&request, global, state);
    let anchor = |strength| Anchor {
        at: global,
        strength,
        importance: None,
    };
    let (anchor, factor) = match request.personal {
        Personal::Model { pull, .. } | Personal::Tuned { pull } => (Some(anchor(pull)), 1.0),
        Personal::Offset { ratio } => (None, 1.0 + ratio),
        Personal::Rest => (None, 1.0),
    };
    let settings = PersonalTraining {
        effort: request.steps.map_or(Effort::Epochs(2), Effort::Steps),
        batch_size: invitation.batch_size,
        learning_rate: LearningRate::new(0.25 * factor).unwrap(),
        weight_decay: Penalty::NONE,
    };
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let memory = StepMemory {
        gradient: &mut vec![0.0; PARAMETERS],
        order: &mut [0; 10],
        scratch: &mut [0.0; 6],
    };
    let model = Softmax::new(Const::<FEATURES>, Const::<6>);
    let order = &mut stream(Purpose::BatchShuffle, number);
    let mut local = start.clone();
    descend(
        &model,
        &samples,
        &mut local,
        anchor.as_ref(),
        &settings,
        order,
        memory,
    )
    .unwrap();
    let minus = |from: &[f32]| -> Vec<f32> { local.iter().zip(from).map(|(w, s)| w - s).collect() };
    let (mut update, state) = match request.personal {
        Personal::Model {
            from_previous: true,
            ..
        } => (minus(&start), local),
        Personal::Model { .. } => (minus(global), local),
        Personal::Tuned { .. } => (Vec::new(), local),
        Personal::Rest => (minus(&global[..shared]), local[shared..].to_vec()),
        Personal::Offset { ratio } => {
            let mut offset = state.cloned().unwrap_or_else(|| vec![0.0; PARAMETERS]);
            let mut update = vec![0.0; PARAMETERS];
            split_step(&local, global, &mut offset, ratio, &mut update);
            (update, offset)
        }
    };
    let norm = clip_l2(&mut update, 0.5).unwrap();
    let mut integers = vec![0; shared];
    invitation
        .grid
        .quantize_into(&update, &mut integers)
        .unwrap();
    let mut sent: Vec<i64> = integers.into_iter().map(i64::from).collect();
    let mut bit = [crate::bit::clip_bit(&invitation.grid, norm)];
    if let Some(noise) = invitation.noise.map(DiscreteGaussian::of) {
        noise.add_to(&mut sent, &mut stream(Purpose::DeviceNoise, number));
        noise.add_to(&mut bit, &mut stream(Purpose::DeviceBitNoise, number));
    }
    (sent, bit[0], state)
}

/// Returns the state of a round.
fn state_of(board: &mut Keeper, request: &PersonalRequest, round: u32) -> Option<Vec<f32>> {
    let mut state = vec![0.0; request.state_length(PARAMETERS)];
    let id = request.after(NONCE, round);
    let has_state = board.store().load(&id, &mut state).unwrap();
    has_state.then_some(state)
}

/// Creates an invitation to a device whose update counted last in round `last`.
fn after(last: u32, request: PersonalRequest, noise: Option<Sigma>) -> Invitation {
    let last = Some(last);
    asked(PersonalRequest { last, ..request }, noise)
}

#[test]
fn a_device_sends_and_keeps_what_a_simulation_does() {
    let ratio = 0.5;
    let methods = [
        pmtl(false),
        pmtl(true),
        Personal::Offset { ratio },
        Personal::Rest,
    ];
    for (personal, noise) in methods.into_iter().flat_map(|x| [(x, None), (x, noise())]) {
        let mut request = request(personal);
        let mut board = keeper(policy(), store());
        let (mut chain, mut state) = (chain(), None);
        for number in 1..=4 {
            request.steps = NonZeroU32::new(7).filter(|_| number > 2);
            let asked = asked(request, noise);
            let global: Vec<f32> = model().iter().map(|w| w * number as f32).collect();
            let mut other = Coordinator::new(chain, number, asked, global.clone());
            // A new coordinator, so the device greets again.
            board.send(Answer::Hello);
            round(&mut board, &mut other);
            let (sent, bit, new) = simulated_personal(number, &asked, &global, state.as_ref());
            assert_eq!(other.declined, None);
            assert_eq!(other.integers, sent, "{personal:?}, round {number}");
            assert_eq!(other.bit, Some(bit));
            assert_eq!(state_of(&mut board, &request, number), Some(new.clone()));
            (chain, state) = (other.chain, Some(new));
            request.last = Some(number);
        }
    }
}

/// In pieces of `most` samples, none of which reads more. The store has its own pieces: a load or
/// two, and a save.
#[test]
fn a_personal_model_in_pieces_is_that_of_the_whole() {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let methods = [
        pmtl(true),
        Personal::Offset { ratio: 0.5 },
        Personal::Rest,
        Personal::Tuned {
            pull: Penalty::NONE,
        },
    ];
    for (personal, most) in methods
        .into_iter()
        .flat_map(|x| [1, 3, 100].map(|most| (x, most)))
    {
        let mut request = request(personal);
        let mut board = keeper(policy(), store());
        let (mut chain, mut state) = (chain(), None);
        for number in 1..=2 {
            let noise = noise().filter(|_| request.shared > 0);
            let asked = asked(request, noise);
            let mut other = Coordinator::new(chain, number, asked, model());
            board.send(Answer::Hello);
            let counted = Counted::new(samples);
            round_with(&mut board, &mut other, |board| {
                // The first piece checks all samples, and records the round.
                let mut progress = board.train_some(&counted, most);
                while progress == Progress::More {
                    counted.reads.set(0);
                    progress = board.train_some(&counted, most);
                    assert!(counted.reads.get() <= most);
                    assert!(board.outgoing().is_empty() || progress == Progress::Done);
                }
                // Personal values are no longer there while the update is sent.
                let Workspace { update, local, .. } = &board.conversation.device.memory.work;
                for vector in [update, local] {
                    let rest = &vector[request.shared as usize..];
                    assert!(rest.iter().all(|x| x.to_bits() == 0));
                }
            });
            let (sent, bit, new) = simulated_personal(number, &asked, &model(), state.as_ref());
            assert_eq!(other.integers, sent, "{personal:?}, {most}, round {number}");
            assert_eq!(other.bit, (request.shared > 0).then_some(bit));
            assert_eq!(state_of(&mut board, &request, number), Some(new.clone()));
            (chain, state) = (other.chain, Some(new));
            request.last = Some(number);
        }
    }
}

/// Without steps the update is zeros and the state stays, at once and in pieces. The state itself
/// is never sent.
#[test]
fn a_round_without_epochs_sends_nothing_of_the_state() {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    for personal in [
        pmtl(false),
        pmtl(true),
        Personal::Offset { ratio: 0.5 },
        Personal::Rest,
    ] {
        for most in [1, usize::MAX] {
            let mut request = request(personal);
            let mut board = keeper(policy(), store());
            let first = asked(request, None);
            let mut other = Coordinator::new(chain(), 1, first, model());
            round(&mut board, &mut other);
            let before = state_of(&mut board, &request, 1).unwrap();
            request.last = Some(1);
            let asked = Invitation {
                epochs: 0,
                ..asked(request, None)
            };
            let mut other = Coordinator::new(other.chain, 2, asked, model());
            board.send(Answer::Hello);
            round_with(&mut board, &mut other, |board| {
                while board.train_some(&samples, most) == Progress::More {}
            });
            let (mut sent, shared) = (vec![0.0; PARAMETERS], request.shared as usize);
            if personal == pmtl(false) {
                // The update is the difference between the personal model and the shared one.
                for (sent, (own, global)) in sent.iter_mut().zip(before.iter().zip(model())) {
                    *sent = own - global;
                }
                clip_l2(&mut sent, 0.5).unwrap();
            }
            let mut integers = vec![0; shared];
            let grid = asked.grid;
            grid.quantize_into(&sent[..shared], &mut integers).unwrap();
            let integers: Vec<i64> = integers.into_iter().map(i64::from).collect();
            assert_eq!(other.integers, integers, "{personal:?}, {most}");
            let after = state_of(&mut board, &request, 2).unwrap();
            assert_eq!(after, before, "{personal:?}, {most}");
        }
    }
}

/// Between any two pieces: nothing of update and state remains in the work space, and the previous
/// state is unchanged.
#[test]
fn a_personal_round_that_is_aborted_leaves_the_state_before() {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let mut is_complete = false;
    for pieces in 1.. {
        let mut request = request(pmtl(true));
        let mut board = keeper(policy(), store());
        let mut other = Coordinator::new(chain(), 1, asked(request, noise()), model());
        round(&mut board, &mut other);
        let before = state_of(&mut board, &request, 1);
        request.last = Some(1);
        let mut other = Coordinator::new(other.chain, 2, asked(request, noise()), model());
        board.send(Answer::Hello);
        until_training(&mut board, &mut other);
        for _ in 0..pieces {
            is_complete |= board.train_some(&samples, 2) == Progress::Done;
        }
        if is_complete {
            break;
        }
        abort(&mut board, &mut other);
        assert_eq!(state_of(&mut board, &request, 1), before, "{pieces}");
    }
    assert!(is_complete);
}

/// The device reveals neither an update nor whether there is one, even if it requires noise.
#[test]
fn fine_tuning_keeps_the_model_and_sends_nothing() {
    let insisting = Policy {
        min_noise_multiplier: NoiseMultiplier::from_units(1 << 32),
        ..policy()
    };
    let pull = Penalty::new(0.25).unwrap();
    let request = request(Personal::Tuned { pull });
    let asked = asked(request, None);
    let mut board = keeper(insisting, store());
    let mut other = Coordinator::new(chain(), 1, asked, model());
    round(&mut board, &mut other);
    assert_eq!((other.declined, other.integers.len()), (None, 0));
    let (sent, _, state) = simulated_personal(1, &asked, &model(), None);
    assert_eq!(sent, [0; 0]);
    assert_eq!(state_of(&mut board, &request, 1), Some(state));
    assert_eq!(board.ledger().past().participations, 1);

    // With a model for which training diverges the answer is the same, and there is no state.
    let requests = other.requests;
    let mut other = Coordinator::new(other.chain, 2, asked, vec![f32::MAX; PARAMETERS]);
    board.send(Answer::Hello);
    round(&mut board, &mut other);
    assert_eq!((other.declined, other.requests), (None, requests));
    assert_eq!(state_of(&mut board, &request, 2), None);
}

/// A round whose update did not count, or whose end the device did not hear of.
#[test]
fn a_device_goes_on_from_the_round_that_counted_last() {
    for counted in [1, 2] {
        let request = request(pmtl(false));
        let mut board = keeper(policy(), store());
        let mut other = Coordinator::new(chain(), 1, asked(request, None), model());
        round(&mut board, &mut other);
        let (.., first) = simulated_personal(1, &asked(request, None), &model(), None);
        let mut other = Coordinator::new(other.chain, 2, after(1, request, None), model());
        board.send(Answer::Hello);
        until_training(&mut board, &mut other);
        let (features, targets) = data();
        board.train(&SampleSlice::new(&features, &targets, FEATURES).unwrap());
        let asked = after(1, request, None);
        let (.., second) = simulated_personal(2, &asked, &model(), Some(&first));
        let asked = after(counted, request, None);
        let mut other = Coordinator::new(other.chain, 3, asked, model());
        board.send(Answer::Hello);
        round(&mut board, &mut other);
        let state = [first, second].into_iter().nth(counted as usize - 1);
        let (sent, ..) = simulated_personal(3, &asked, &model(), state.as_ref());
        assert_eq!(other.integers, sent, "{counted}");
    }
}

#[test]
fn a_state_of_another_run_does_not_count() {
    let asked = asked(request(pmtl(false)), None);
    let mut board = keeper(policy(), store());
    let mut other = Coordinator::new(chain(), 1, asked, model());
    round(&mut board, &mut other);
    let mut other = Coordinator::new(other.chain, 2, asked, model());
    board.send(Answer::Hello);
    round(&mut board, &mut other);
    let (sent, ..) = simulated_personal(2, &asked, &model(), None);
    assert_eq!(other.integers, sent);
}

/// Its answer is noise on zeros, and it continues from the previous state, if there is one.
#[test]
fn with_noise_of_its_own_a_device_that_diverges_keeps_its_state() {
    let diverging = vec![f32::MAX; PARAMETERS];
    for has_state in [false, true] {
        let mut request = request(pmtl(false));
        let mut board = keeper(policy(), store());
        let mut chain = chain();
        if has_state {
            let mut other = Coordinator::new(chain, 1, asked(request, noise()), model());
            round(&mut board, &mut other);
            (chain, request.last) = (other.chain, Some(1));
        }
        let before = state_of(&mut board, &request, 1);
        assert_eq!(before.is_some(), has_state);
        let asked = asked(request, noise());
        let mut other = Coordinator::new(chain, 2, asked, diverging.clone());
        board.send(Answer::Hello);
        round(&mut board, &mut other);
        let mut zeros = vec![0; PARAMETERS];
        let noise = DiscreteGaussian::of(noise().unwrap());
        noise.add_to(&mut zeros, &mut stream(Purpose::DeviceNoise, 2));
        assert_eq!((other.declined, other.integers), (None, zeros));
        assert_eq!(state_of(&mut board, &request, 2), before);
    }
}

#[test]
fn a_device_without_a_place_for_the_state_declines() {
    let asked = asked(request(pmtl(false)), None);
    let decline = |other: &Coordinator| other.declined;
    let mut other = Coordinator::new(chain(), 1, asked, model());
    round(&mut board(policy(), ledger(), 0), &mut other);
    assert_eq!(decline(&other), Some(Decline::Personal));

    // Even if nothing is personal, because its rounds differ.
    let request = PersonalRequest {
        shared: PARAMETERS as u32,
        ..request(Personal::Rest)
    };
    let mut other = Coordinator::new(chain(), 1, self::asked(request, None), model());
    round(&mut board(policy(), ledger(), 0), &mut other);
    assert_eq!(decline(&other), Some(Decline::Personal));

    let small = FlashStore::new(erased()).unwrap();
    let mut other = Coordinator::new(chain(), 1, asked, model());
    round(&mut keeper(policy(), small), &mut other);
    assert_eq!(decline(&other), Some(Decline::Personal));
}

#[test]
fn steps_are_limited_by_epochs() {
    // At most 10 epochs.
    let limit = 10 * STEPS_PER_EPOCH;
    for (steps, expected) in [(limit, None), (limit + 1, Some(Decline::Work))] {
        let mut request = request(Personal::Rest);
        request.steps = NonZeroU32::new(steps);
        let mut other = Coordinator::new(chain(), 1, asked(request, None), model());
        round(&mut keeper(policy(), store()), &mut other);
        assert_eq!(other.declined, expected);
    }
}

#[test]
fn a_pull_outside_the_limits_is_declined() {
    let pull = Penalty::new(2e9).unwrap();
    let personal = Personal::Model {
        pull,
        from_previous: false,
    };
    let mut other = Coordinator::new(chain(), 1, asked(request(personal), None), model());
    round(&mut keeper(policy(), store()), &mut other);
    assert_eq!(other.declined, Some(Decline::Settings));
}

#[test]
fn requests_that_contradict_themselves_are_malformed() {
    let valid = [
        pmtl(false),
        Personal::Offset { ratio: 1000.0 },
        Personal::Rest,
    ]
    .map(request);
    for request in valid {
        let packed = PackedInvitation::from(&asked(request, None));
        assert_eq!(packed.bytes().unpack().unwrap().personal(), Some(&request));
    }
    let invalid = [
        PersonalRequest {
            shared: SHARED,
            ..request(pmtl(true))
        },
        PersonalRequest {
            shared: 0,
            ..request(Personal::Rest)
        },
        PersonalRequest {
            shared: 1 + PARAMETERS as u32,
            ..request(Personal::Rest)
        },
        PersonalRequest {
            shared: 1,
            ..request(Personal::Tuned {
                pull: Penalty::NONE,
            })
        },
        request(Personal::Offset { ratio: 1001.0 }),
        request(Personal::Offset { ratio: -0.5 }),
        request(Personal::Offset { ratio: f32::NAN }),
    ];
    for request in invalid {
        let packed = PackedInvitation::from(&asked(request, None));
        assert!(packed.bytes().unpack().is_none(), "{request:?}");
    }
    let pull = Penalty::NONE;
    let with_noise = asked(request(Personal::Tuned { pull }), noise());
    assert!(
        PackedInvitation::from(&with_noise)
            .bytes()
            .unpack()
            .is_none()
    );
}
