//! Instructions of a network of layers: loss and gradient of one sample, and the training of a
//! round.

use core::cell::Cell;
use core::hint::black_box;

use semihosting::println;
use smolfed_core::{
    model::FixedModel,
    samples::Samples,
    stream::Purpose,
    train::{Workspace, local_update},
};
use smolfed_firmware::board;

use super::{
    counting::{count, is_traced, stream, training},
    data::{SAMPLES, samples, weight},
};

/// Counts work longer than the board counter's period by reading the counter at each sample.
struct Clock {
    last: Cell<u32>,
    total: Cell<u64>,
}

impl Clock {
    fn start() -> Self {
        Self {
            last: Cell::new(board::counter()),
            total: Cell::new(0),
        }
    }

    fn look(&self) {
        let now = board::counter();
        let since = u64::from(now.wrapping_sub(self.last.replace(now)));
        self.total.set(self.total.get() + since);
    }

    fn instructions(&self) -> u64 {
        self.look();
        self.total.get() * 1_000 / u64::from(board::COUNTS_PER_1000)
    }
}

/// Samples that update a clock.
struct Counted<'a, S>(&'a S, Clock);

impl<S: Samples> Samples for Counted<'_, S> {
    type Target = S::Target;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn features(&self, index: usize) -> &[f32] {
        self.1.look();
        self.0.features(index)
    }

    fn target(&self, index: usize) -> S::Target {
        self.0.target(index)
    }
}

/// Measures loss and gradient of one sample, and the training of a round as above.
#[inline(never)]
pub fn measure<M, const FEATURES: usize, const P: usize, const B: usize>(
    name: &str,
    model: M,
) -> Option<()>
where
    M: FixedModel<Target = u16>,
{
    let samples = samples(SAMPLES, FEATURES)?;
    let global: [f32; P] = core::array::from_fn(weight);
    let (mut local, mut update, mut scratch) = ([0.0; P], [0.0; P], [0.0; B]);
    let batch = black_box(&[1]);
    let mut loss = None;
    let instructions = count(|| {
        let gradient = model.loss_and_gradient(&global, &samples, batch, &mut scratch, &mut update);
        loss = gradient.ok();
    });
    loss?;
    println!("{name}-gradient {instructions}");
    if is_traced() {
        return Some(());
    }

    println!("{name}-parameters {P}");
    println!("{name}-vectors {}", 3 * P * size_of::<f32>());
    println!("{name}-scratch {}", B * size_of::<f32>());
    let activations = model.network()?.activation_count();
    println!("{name}-activations {}", activations * size_of::<f32>());

    let samples = Counted(&samples, Clock::start());
    let work = Workspace {
        local: &mut local,
        update: &mut update,
        order: &mut [0; SAMPLES],
        scratch: &mut scratch,
    };
    let order = &mut stream(Purpose::BatchShuffle);
    local_update(&model, &samples, &global, &training(5)?, order, work).ok()?;
    println!("{name}-training {}", samples.1.instructions());
    Some(())
}
