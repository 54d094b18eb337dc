//! Stores that fail, stores that have lost a state, and asynchronous stores.

use super::*;
use crate::personal::store::{StateId, StoreError};

/// A store that replaces one of its answers.
struct Failing {
    store: Store,
    /// Calls before the replacement.
    left: usize,
    answer: Result<bool, StoreError>,
}

impl Failing {
    /// Returns the replaced answer if it is this call's turn.
    fn turn(&mut self) -> Option<Result<bool, StoreError>> {
        let is_its = self.left == 0;
        self.left = self.left.wrapping_sub(1);
        is_its.then_some(self.answer)
    }
}

impl PersonalStore for Failing {
    fn capacity(&self) -> usize {
        self.store.capacity()
    }
}

impl BlockingStore for Failing {
    fn load(&mut self, id: &StateId, to: &mut [f32]) -> Result<bool, StoreError> {
        let answer = self.turn();
        answer.unwrap_or_else(|| self.store.load(id, to))
    }

    fn save(
        &mut self,
        id: &StateId,
        state: &[f32],
        before: Option<&StateId>,
    ) -> Result<(), StoreError> {
        match self.turn() {
            Some(Err(error)) => Err(error),
            _ => self.store.save(id, state, before),
        }
    }
}

/// A first and a second load, and a save, that fail, and a second load that finds nothing. Without
/// cover the device reports it. Under noise it sends zeros, and keeps the previous state if it can.
#[test]
fn whatever_a_store_fails_in_is_told_to_nobody_who_must_not_know() {
    let (first, second, save) = (0, 1, 2);
    for (left, answer) in [
        (first, Err(StoreError)),
        (second, Err(StoreError)),
        (second, Ok(false)),
        (save, Err(StoreError)),
    ] {
        for noise in [None, noise()] {
            let mut request = request(pmtl(true));
            let mut board = keeper(policy(), store());
            let mut other = Coordinator::new(chain(), 1, asked(request, noise), model());
            round(&mut board, &mut other);
            let before = state_of(&mut board, &request, 1).unwrap();
            request.last = Some(1);

            let device = board.conversation.device;
            let store = Failing {
                store: device.store,
                left,
                answer,
            };
            let mut board = keeper_in(policy(), device.ledger, store);
            let asked = asked(request, noise);
            let mut other = Coordinator::new(other.chain, 2, asked, model());
            round(&mut board, &mut other);
            let mut kept = vec![0.0; PARAMETERS];
            let id = |round| request.after(NONCE, round);
            let store = board.store();
            assert_eq!(store.store.load(&id(1), &mut kept), Ok(true));
            assert_eq!(kept, before);
            if let Some(noise) = noise.map(DiscreteGaussian::of) {
                let mut zeros = vec![0; PARAMETERS];
                noise.add_to(&mut zeros, &mut stream(Purpose::DeviceNoise, 2));
                assert_eq!((other.declined, other.integers), (None, zeros));
                assert_eq!(store.store.load(&id(2), &mut kept), Ok(true));
                assert_eq!(kept, before);
            } else {
                assert_eq!(other.declined, Some(Decline::Storage));
                assert_eq!(store.store.load(&id(2), &mut kept), Ok(false));
            }
        }
    }
}

#[test]
fn a_store_that_fails_is_declined_by_name() {
    let asked = asked(request(pmtl(false)), None);
    let mut flash = store().into_flash();
    flash.power = 100;
    let mut board = keeper(policy(), FlashStore::new(flash).unwrap());
    let mut other = Coordinator::new(chain(), 1, asked, model());
    round(&mut board, &mut other);
    assert_eq!(other.declined, Some(Decline::Storage));
}

/// Its answer is noise on zeros, and the bit is the noise of a device without an update.
#[test]
fn with_noise_of_its_own_a_device_does_not_say_that_its_store_fails() {
    let asked = asked(request(pmtl(false)), noise());
    let mut flash = store().into_flash();
    flash.power = 100;
    let mut board = keeper(policy(), FlashStore::new(flash).unwrap());
    let mut other = Coordinator::new(chain(), 1, asked, model());
    round(&mut board, &mut other);
    let (mut zeros, mut bit) = (vec![0; PARAMETERS], [0]);
    let noise = DiscreteGaussian::of(noise().unwrap());
    noise.add_to(&mut zeros, &mut stream(Purpose::DeviceNoise, 1));
    noise.add_to(&mut bit, &mut stream(Purpose::DeviceBitNoise, 1));
    assert_eq!((other.declined, other.integers), (None, zeros));
    assert_eq!(other.bit, Some(bit[0]));
}

/// A store that has lost the state of the named round.
#[test]
fn a_device_without_the_state_that_is_named_begins_anew() {
    for personal in [pmtl(true), Personal::Offset { ratio: 0.5 }, Personal::Rest] {
        let asked = after(7, request(personal), None);
        let mut other = Coordinator::new(chain(), 9, asked, model());
        round(&mut keeper(policy(), store()), &mut other);
        let (sent, ..) = simulated_personal(9, &asked, &model(), None);
        assert_eq!(other.integers, sent, "{personal:?}");
    }
}

/// Ledger and store on asynchronous flash. The futures of pieces are dropped at each of their
/// awaits: the next piece asks again, and the bits are the same.
#[cfg(feature = "async")]
#[test]
fn a_store_that_is_awaited_keeps_the_same() {
    use crate::ledger::tests::awaited::{Awaited, ENOUGH, polled};

    let (features, targets) = data();
    let samples = SampleSlice::new(&features, &targets, FEATURES).unwrap();
    let methods = [pmtl(true), Personal::Offset { ratio: 0.5 }, Personal::Rest];
    for (personal, polls) in methods
        .into_iter()
        .flat_map(|x| [1, 2, 3, 4, 5, 6, ENOUGH].map(|polls| (x, polls)))
    {
        let mut flashes = (ledger().into_flash(), store().into_flash());
        let mut request = request(personal);
        let (mut chain, mut state) = (chain(), None);
        for number in 1..=3 {
            let asked = asked(request, noise());
            // In the last round training diverges: there is no new state, and no update.
            let diverges = number == 3;
            let global = if diverges {
                vec![f32::MAX; PARAMETERS]
            } else {
                model()
            };
            let mut other = Coordinator::new(chain, number, asked, global);
            let opened = polled(Ledger::open_async(Awaited(&mut flashes.0)), ENOUGH);
            let store = FlashStore::new_async(Awaited(&mut flashes.1)).unwrap();
            let mut board = keeper_in(policy(), opened.unwrap().unwrap(), store);
            let mut has_recorded = false;
            round_with(&mut board, &mut other, |board| {
                let mut is_dropped = false;
                while board.phase() == Phase::Training {
                    // The record is not dropped, since the round would be spent. Each later piece
                    // is dropped once.
                    let enough = !has_recorded || is_dropped;
                    let polls = if enough { ENOUGH } else { polls };
                    let ended = polled(board.train_some_async(&samples, 4), polls);
                    is_dropped = ended.is_none();
                    has_recorded = true;
                }
            });
            drop(board);
            let (sent, bit, new) = match diverges {
                true => {
                    let noise = DiscreteGaussian::of(asked.noise.unwrap());
                    let (mut zeros, mut bit) = (vec![0; request.shared as usize], [0]);
                    noise.add_to(&mut zeros, &mut stream(Purpose::DeviceNoise, number));
                    noise.add_to(&mut bit, &mut stream(Purpose::DeviceBitNoise, number));
                    (zeros, bit[0], state.clone().unwrap())
                }
                false => simulated_personal(number, &asked, &model(), state.as_ref()),
            };
            assert_eq!(
                (other.integers, other.bit),
                (sent, Some(bit)),
                "{personal:?}, {polls}"
            );
            let mut store = FlashStore::new(flashes.1.clone()).unwrap();
            let mut kept = vec![0.0; new.len()];
            let id = request.after(NONCE, number);
            assert_eq!(store.load(&id, &mut kept), Ok(true));
            assert_eq!(kept, new);
            (chain, state) = (other.chain, Some(new));
            request.last = Some(number);
        }
    }
}
