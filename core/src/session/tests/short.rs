//! Models in 16 bits and as differences: the device has the same bits, whatever frames were lost.

use std::{boxed::Box, cell::RefCell, rc::Rc, vec::Vec};

use super::coordinator::Delivery;
use super::*;
use crate::wire::message::{ModelGrid, Numbers, SHORT_CHUNK, Short};

/// A coordinator's models on a grid.
struct Models {
    grid: ModelGrid,
    /// Models that devices may have, by round.
    known: Vec<(u32, Vec<i16>)>,
    /// Frames sent as differences, and frames sent in full.
    sent: [usize; 2],
    /// Damages the next difference.
    damages: bool,
    /// Sends differences to devices that have not asked for them.
    insists: bool,
}

impl Delivery for Rc<RefCell<Models>> {
    fn deliver(
        &mut self,
        message: &Message<'_>,
        model: &[f32],
        send: &mut dyn FnMut(&Message<'_>),
    ) {
        let Message::WantShort { chunk, count, base } = *message else {
            panic!("{message:?}");
        };
        let mut models = self.borrow_mut();
        let grid = models.grid;
        let numbers: Vec<i16> = model.iter().map(|x| grid.round(*x)).collect();
        let blocks = (chunk..).step_by(2).take(count.into());
        for index in blocks {
            let begin = usize::from(index) * MODEL_CHUNK;
            let end = numbers.len().min(begin + SHORT_CHUNK);
            if begin >= end {
                break;
            }
            let mut known = models.known.iter();
            let known = known.find(|(round, _)| models.insists || Some(*round) == base);
            let base = known.map(|(_, numbers)| numbers[begin..end].to_vec());
            let mut values = Short::to_send(grid, &numbers[begin..end], base.as_deref());
            if core::mem::take(&mut models.damages) {
                values.numbers =
                    Numbers::Differences(&numbers[begin..end - 1], &numbers[begin..end]);
            }
            models.sent[usize::from(!values.is_difference())] += 1;
            send(&Message::ModelChunk {
                index,
                values: Values::Short(values),
            });
        }
    }
}

/// A coordinator of models on a grid, and its sent models.
struct Other {
    coordinator: Coordinator,
    models: Rc<RefCell<Models>>,
}

fn grid() -> ModelGrid {
    ModelGrid::new(12).unwrap()
}

/// Creates a coordinator of the harness's model, moved by some steps of the grid.
fn other(round: u32, moved: impl Fn(usize) -> i16, known: &[(u32, Vec<i16>)]) -> Other {
    let model = steps(moved).into_iter().map(|steps| grid().value(steps));
    let mut coordinator = Coordinator::new(chain(), round, invitation(None), model.collect());
    let models = Rc::new(RefCell::new(Models {
        grid: grid(),
        known: known.to_vec(),
        sent: [0; 2],
        damages: false,
        insists: false,
    }));
    coordinator.delivery = Some(Box::new(Rc::clone(&models)));
    Other {
        coordinator,
        models,
    }
}

/// Returns the moved model in steps.
fn steps(moved: impl Fn(usize) -> i16) -> Vec<i16> {
    let model = model();
    let steps = model.iter().enumerate();
    steps.map(|(i, x)| grid().round(*x) + moved(i)).collect()
}

/// Returns the simulator's update from the same model.
fn simulated_from(other: &Coordinator) -> Vec<i64> {
    let root = Root::from_seed(11);
    let model: [f32; PARAMETERS] = other.model.clone().try_into().unwrap();
    let sent = harness::simulated(&root, 42, other.round, &other.invitation, &model).unwrap();
    sent.update.to_vec()
}

/// Runs a round in a new session, and checks its update.
fn complete(board: &mut Board, other: &mut Other) -> [usize; 2] {
    let coordinator = &mut other.coordinator;
    board.send(Answer::Hello);
    run(board, coordinator, |bytes| bytes);
    turn(board, coordinator, &mut |bytes| bytes);
    assert_eq!(coordinator.integers, simulated_from(coordinator));
    other.models.borrow().sent
}

#[test]
fn the_first_model_comes_in_16_bits_and_later_ones_as_differences() {
    for window in [1, 16] {
        let mut board = board(policy(), ledger(), 0);
        board.set_window(window);
        board.timeout();
        let mut known = Vec::new();
        // 126 parameters are two frames. Differences of more than a byte escape.
        let moved = |round: u32| move |i: usize| (i as i16 % 7 - 3) * round as i16 * 14;
        for (round, sent) in [(1, [0, 2]), (2, [2, 0]), (3, [2, 0])] {
            let mut other = other(round, moved(round), &known);
            assert_eq!(complete(&mut board, &mut other), sent);
            known.push((round, steps(moved(round))));
        }
        assert_eq!(board.refusals().total(), 0);
    }
}

#[test]
fn a_model_that_moves_far_comes_as_it_is() {
    let mut board = board(policy(), ledger(), 0);
    board.timeout();
    complete(&mut board, &mut other(1, |_| 0, &[]));
    let known = [(1, steps(|_| 0))];
    assert_eq!(complete(&mut board, &mut other(2, |_| 900, &known)), [0, 2]);
}

/// A coordinator that has forgotten the model, and a device that has forgotten it.
#[test]
fn without_a_common_model_it_comes_as_it_is() {
    let mut first = board(policy(), ledger(), 0);
    first.timeout();
    complete(&mut first, &mut other(1, |_| 0, &[]));
    assert_eq!(complete(&mut first, &mut other(2, |_| 1, &[])), [0, 2]);
    let mut restarted = board(policy(), ledger(), 1);
    restarted.timeout();
    let known = [(0, steps(|_| 0)), (1, steps(|_| 0))];
    assert_eq!(
        complete(&mut restarted, &mut other(3, |_| 1, &known)),
        [0, 2]
    );
}

/// A device understands a model with all bits, and does not name it afterwards: requests then have
/// the same length, whatever the device holds.
#[test]
fn a_model_that_came_in_32_bits_is_not_named() {
    let mut board = board(policy(), ledger(), 0);
    board.timeout();
    let mut plain = other(1, |_| 0, &[]).coordinator;
    plain.delivery = None;
    run(&mut board, &mut plain, |bytes| bytes);
    turn(&mut board, &mut plain, &mut |bytes| bytes);
    assert_eq!(plain.integers, simulated_from(&plain));
    let known = [(1, steps(|_| 0))];
    assert_eq!(complete(&mut board, &mut other(2, |_| 1, &known)), [0, 2]);
}

/// The device requests the whole chunk, and trains from the right model.
#[test]
fn a_damaged_difference_is_asked_for_as_it_is() {
    let mut board = board(policy(), ledger(), 0);
    board.timeout();
    complete(&mut board, &mut other(1, |_| 0, &[]));
    let mut second = other(2, |_| 1, &[(1, steps(|_| 0))]);
    second.models.borrow_mut().damages = true;
    // It asks again at the next invitation.
    let [differences, whole] = complete(&mut board, &mut second);
    assert!(differences == 1 && whole >= 2);
    assert_eq!(board.refusals().get(Refusal::Body), 1);
}

#[test]
fn a_difference_that_was_not_asked_for_is_refused() {
    let mut board = board(policy(), ledger(), 0);
    board.timeout();
    let mut first = other(1, |_| 1, &[(0, steps(|_| 0))]);
    first.models.borrow_mut().insists = true;
    for _ in 0..12 {
        turn_without_training(&mut board, &mut first.coordinator);
        board.timeout();
    }
    assert!(first.models.borrow().sent[0] > 0);
    assert!(board.refusals().get(Refusal::Body) > 0);
    assert_ne!(board.phase(), Phase::Training);
}

/// A partly overwritten model is not a base.
#[test]
fn a_session_that_ends_within_the_model_begins_with_all_of_it() {
    let mut board = board(policy(), ledger(), 0);
    board.timeout();
    complete(&mut board, &mut other(1, |_| 0, &[]));
    let mut second = other(2, |_| 1, &[(1, steps(|_| 0))]);
    board.send(Answer::Hello);
    while second.models.borrow().sent == [0, 0] {
        turn_without_training(&mut board, &mut second.coordinator);
    }
    // The first frame has arrived, and the second one has not.
    for said in core::mem::take(&mut second.coordinator.outgoing) {
        board.receive(&said);
    }
    let mut again = other(2, |_| 1, &[(1, steps(|_| 0))]);
    again.coordinator.chain = second.coordinator.chain;
    assert_eq!(complete(&mut board, &mut again), [0, 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Lost frames cost turns.
    #[test]
    fn differences_over_a_lossy_line_are_exact(lost in vec(any::<u8>(), 200)) {
        let mut board = board(policy(), ledger(), 0);
        board.timeout();
        complete(&mut board, &mut other(1, |_| 0, &[]));
        let mut second = other(2, |i| i as i16 % 5, &[(1, steps(|_| 0))]);
        board.send(Answer::Hello);
        let mut lost = lost.into_iter();
        run(&mut board, &mut second.coordinator, |bytes| match lost.next() {
            Some(byte) if byte < 64 => Vec::new(),
            _ => bytes,
        });
        let coordinator = &second.coordinator;
        prop_assert_eq!(&coordinator.integers, &simulated_from(coordinator));
    }
}
