//! Rounds in pieces: their results, the length of a piece, and events between two pieces.

use core::cell::Cell;

use super::*;
use crate::personal::store::PersonalStore;

/// Samples that count reads.
pub(super) struct Counted<S> {
    samples: S,
    pub(super) reads: Cell<usize>,
    /// Number of available samples.
    length: Cell<usize>,
}

impl<S: Samples> Counted<S> {
    pub(super) fn new(samples: S) -> Self {
        let length = Cell::new(samples.len());
        Self {
            samples,
            reads: Cell::new(0),
            length,
        }
    }
}

impl<S: Samples> Samples for Counted<S> {
    type Target = S::Target;

    fn len(&self) -> usize {
        self.length.get()
    }

    fn features(&self, index: usize) -> &[f32] {
        self.samples.features(index)
    }

    /// Called once per gradient.
    fn target(&self, index: usize) -> S::Target {
        self.reads.set(self.reads.get() + 1);
        self.samples.target(index)
    }
}

/// Returns a board with the model of a round, and its coordinator.
fn ready(invitation: Invitation) -> (Board, Coordinator) {
    ready_with(ledger(), invitation)
}

fn ready_with<F>(ledger: Ledger<F>, invitation: Invitation) -> (Board<Stream, F>, Coordinator) {
    let helpers = invitation.helpers();
    let policy = Policy {
        helpers,
        ..policy()
    };
    let mut board = board(policy, ledger, 0);
    let mut other = Coordinator::new(chain(), 3, invitation, model());
    while board.phase() != Phase::Training {
        turn_without_training(&mut board, &mut other);
    }
    other.outgoing.clear();
    (board, other)
}

/// Aborts the round as coordinator, and checks that nothing of the update remains.
pub(super) fn abort<K: PersonalStore>(
    board: &mut Session<'static, Softmax<Const<FEATURES>, Const<6>>, Ram, Stream, K>,
    other: &mut Coordinator,
) {
    other.send(&Message::Abort(Abort::Late));
    for said in core::mem::take(&mut other.outgoing) {
        board.receive(&said);
    }
    assert_eq!(board.phase(), Phase::Idle);
    let work = &board.conversation.device.memory.work;
    let is_zero = |vector: &[f32]| vector.iter().all(|x| x.to_bits() == 0);
    assert!(is_zero(work.update) && is_zero(work.local));
}

fn with_bit(noise: Option<Sigma>) -> Invitation {
    bit::adaptive(noise, 0.5)
}

/// For any length of a piece, and any number of entries that it covers.
#[test]
fn pieces_give_the_bits_of_the_whole() {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    for asked in [invitation(None), invitation(noise()), with_bit(noise())] {
        let whole = {
            let (mut board, mut other) = ready(asked);
            board.train(&samples);
            run(&mut board, &mut other, |bytes| bytes);
            other
        };
        assert_eq!(whole.integers, expected(3, &asked));
        for most in [0, 1, 2, 3, 4, 5, 7, 100] {
            let (mut board, mut other) = ready(asked);
            while board.train_some(&samples, most) == Progress::More {}
            assert_eq!(board.phase(), Phase::Sending);
            run(&mut board, &mut other, |bytes| bytes);
            assert_eq!(other.integers, whole.integers, "{most}");
            assert_eq!(other.bit, whole.bit);
            assert_eq!(board.ledger().past().participations, 1);
        }
    }
}

/// Ten samples in batches of four, twice: ten pieces of one sample per epoch, four of three. Before
/// them come the check of all samples and the record. After them come the rounding, the noise of
/// 126 entries, 16 per sample, and the noise of the bit, even if there is none.
#[test]
fn a_piece_has_no_more_samples_than_it_may_have() {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    for (most, trainings, noises) in [(1, 20, 9), (3, 10, 4), (100, 6, 2)] {
        let (mut board, _) = ready(invitation(noise()));
        let counted = Counted::new(samples);
        assert_eq!(board.train_some(&counted, most), Progress::More);
        assert_eq!(board.ledger().past().participations, 1);
        assert_eq!(counted.reads.take(), 10, "record and check alone");
        let mut pieces = vec![];
        while board.train_some(&counted, most) == Progress::More {
            pieces.push(counted.reads.take());
        }
        assert!(pieces.iter().all(|reads| *reads <= most));
        assert_eq!(pieces.iter().sum::<usize>(), 20);
        let trained = pieces.iter().filter(|reads| **reads > 0).count();
        // One of them rounds. The last one said `Done`.
        assert_eq!((trained, pieces.len() - trained), (trainings, noises));
    }
}

/// For any number of entries per piece, nothing goes out before the last helper's masks.
#[cfg(feature = "masks")]
#[test]
fn a_piece_adds_the_masks_of_one_helper() {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let pieces = |helpers| {
        let (mut board, _) = ready(Invitation {
            masks: crate::mask::Masking::new(helpers, 30),
            ..invitation(None)
        });
        let mut pieces = 1;
        while board.train_some(&samples, usize::MAX) == Progress::More {
            assert!(board.outgoing().is_empty());
            pieces += 1;
        }
        assert!(!board.outgoing().is_empty());
        pieces
    };
    // The first helper uses the piece after the entries, which exists in any case.
    let entries = pieces(0) - 1;
    assert_eq!([1, 2, 8].map(pieces), [1, 2, 8].map(|more| entries + more));
}

/// With entries and helpers one after the other. A round that ends between two helpers leaves
/// nothing.
#[cfg(feature = "masks")]
#[test]
fn masks_in_pieces_are_those_of_the_whole() {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let asked = Invitation {
        masks: crate::mask::Masking::new(3, 30),
        ..invitation(None)
    };
    let masked = |most| {
        let (mut board, mut other) = ready(asked);
        let mut pieces = 0;
        while board.train_some(&samples, most) == Progress::More {
            pieces += 1;
        }
        run(&mut board, &mut other, |bytes| bytes);
        (other.integers, other.tags, pieces)
    };
    let (integers, tags, pieces) = masked(usize::MAX);
    let (by_entries, their_tags, _) = masked(1);
    assert_eq!((by_entries, their_tags), (integers, tags));

    // The last one of them would complete it.
    for pieces in pieces - 2..=pieces {
        let (mut board, mut other) = ready(asked);
        for _ in 0..pieces {
            assert_eq!(board.train_some(&samples, usize::MAX), Progress::More);
        }
        abort(&mut board, &mut other);
    }
}

/// Nothing goes out until the last piece, and an aborted round leaves nothing.
#[test]
fn a_round_that_is_aborted_between_pieces_is_spent_and_leaves_nothing() {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    for pieces in 1..20 + 9 {
        let (mut board, mut other) = ready(invitation(noise()));
        for _ in 0..pieces {
            assert_eq!(board.train_some(&samples, 1), Progress::More);
            assert!(board.outgoing().is_empty());
        }
        abort(&mut board, &mut other);
        assert_eq!(board.train_some(&samples, 1), Progress::Done);
        other.invite();
        run(&mut board, &mut other, |bytes| bytes);
        assert_eq!(other.declined, Some(Decline::RoundUsed));
        assert_eq!(other.next, 0, "no chunk");
    }
}

/// A sensor continues to measure. Under noise this is invisible.
#[test]
fn samples_that_become_more_or_fewer_are_no_update() {
    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    for (length, asked) in [(9, None), (0, noise()), (9, noise())] {
        let (mut board, mut other) = ready(invitation(asked));
        let counted = Counted::new(samples);
        for _ in 0..4 {
            assert_eq!(board.train_some(&counted, 1), Progress::More);
        }
        counted.length.set(length);
        while board.train_some(&counted, 1) == Progress::More {}
        run(&mut board, &mut other, |bytes| bytes);
        match asked {
            None => assert_eq!(other.declined, Some(Decline::Diverged)),
            Some(noise) => {
                let mut zeros = vec![0; PARAMETERS];
                let noise = DiscreteGaussian::of(noise);
                noise.add_to(&mut zeros, &mut stream(Purpose::DeviceNoise, 3));
                assert_eq!(other.integers, zeros);
            }
        }
    }
}

/// The first piece awaits the flash. Dropped at any of its awaits, it has drawn nothing.
#[cfg(feature = "async")]
#[test]
fn flash_that_is_awaited_records_the_round_in_the_first_piece() {
    use crate::ledger::tests::awaited::{Awaited, ENOUGH, polled};

    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    for polls in 0.. {
        let mut flash = erased();
        let key = Key::from_secret(KEY);
        let ledger = Ledger::create_async(Awaited(&mut flash), NONCE, key);
        let ledger = polled(ledger, ENOUGH).unwrap().unwrap();
        let (mut board, mut other) = ready_with(ledger, invitation(noise()));
        let first = polled(board.train_some_async(&samples, 3), polls);
        assert!(board.outgoing().is_empty());
        while polled(board.train_some_async(&samples, 3), ENOUGH) == Some(Progress::More) {}
        while !other.done {
            assert!(other.declined.is_none());
            transmit(&mut board, &mut other, &mut |bytes| bytes);
            for said in core::mem::take(&mut other.outgoing) {
                board.receive(&said);
            }
        }
        assert_eq!(other.integers, expected(3, &other.invitation));
        assert_eq!(board.ledger().past().participations, 1);
        if first.is_some() {
            assert!(polls > 4, "{polls}");
            break;
        }
    }
}
