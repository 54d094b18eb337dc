//! Instructions of the longest piece of a round in a session, during which nothing else runs.

use core::num::NonZeroU32;

use rand_core::Rng;
use smolfed_core::{
    Grid, Identity, Ledger, NoiseMultiplier, Progress, Root,
    crypto::Key,
    fixed_point::FeatureScale,
    ledger::{Budget, Limits, MaxJump, Separation},
    model::Const,
    noise::Sigma,
    params::{ClipNorm, LearningRate, Penalty},
    samples::SampleSlice,
    session::{FixedPoint, Memory, Phase, Policy, Session, Trainable},
    stream::{Purpose, Stream},
    train::{Clipping, Workspace},
    wire::{
        VERSION,
        greeting::{Greeting, Welcome},
        keys::{Chain, ChainKey},
        link::{CoordinatorEnd, Link},
        message::{Invitation, MAX_WINDOW, MODEL_CHUNK, Message, PackedInvitation, Values},
    },
};
use smolfed_firmware::{board, forgetful::Forgetful};

use super::{
    counting::{BITS, Client, PARAMETERS, count, is_traced, print, stream},
    data::{FEATURES, SAMPLES, integer_weight, samples},
};

/// A whole batch, and one sample of the next.
const TRAINED_ON: usize = 11;

/// Longest piece in `f32`, counted from the record: the rounding of the update. On targets that add
/// by function calls, it is the scores of a sample, after the record and the order of the epoch.
#[cfg(not(all(small_ram, fast)))]
const LONGEST: usize = if cfg!(target_abi = "eabihf") {
    TRAINED_ON + 1
} else {
    2
};

/// Longest piece in integers, by cycles: the rounding of the update. On a Cortex-M4F and M33 whose
/// sums are not optimised for speed, it is the previous piece, with the last sample and the step of
/// its batch.
const LONGEST_INTEGER: usize = if cfg!(fast) || cfg!(not(target_abi = "eabihf")) {
    TRAINED_ON + 1
} else {
    TRAINED_ON
};

type Board<'a, M> = Session<'a, M, Forgetful, Stream>;

/// Measures the pieces in both arithmetics.
#[inline(never)]
pub fn measure() -> Option<()> {
    let model = Client::new(Const, Const);
    // Optimised for speed, two clients do not fit the flash of a small board next to the rest.
    #[cfg(not(all(small_ram, fast)))]
    longest(
        ["piece", "piece-longest"],
        LONGEST,
        model,
        super::data::weight,
    )?;
    let scale = FeatureScale::new::<i8>(6).ok()?;
    longest(
        ["integer-piece", "integer-piece-longest"],
        LONGEST_INTEGER,
        FixedPoint::<_, i8>::new(model, scale),
        |index| f32::from_bits(integer_weight(index).cast_unsigned()),
    )
}

/// Counts this piece and, in the next round, the longest piece of all. A test compares the two.
#[inline(never)]
fn longest<M: Trainable<Target = u16>>(
    [name, longest]: [&str; 2],
    number: usize,
    model: M,
    weight: impl Fn(usize) -> f32,
) -> Option<()> {
    let samples = samples(TRAINED_ON, FEATURES)?;
    let mut vectors = Vectors::new();
    let invitation = invitation(&model)?;
    let mut board = session(&mut vectors, model);
    // Used in place: a moved value would be in RAM twice.
    let board = board.as_mut()?;
    let mut link = welcome(board);
    invite(board, &mut link, 1, &invitation, &weight)?;
    // The first piece writes to the flash, which does not exist here.
    for _ in 0..number {
        let _more = piece(board, &samples);
    }
    print(name, count(|| _ = piece(board, &samples)));
    while piece(board, &samples) == Progress::More {}
    (board.phase() == Phase::Sending).then_some(())?;
    if is_traced() {
        return Some(());
    }

    // Send all chunks of the update in turn.
    while !board.outgoing().is_empty() {
        board.sent();
    }
    invite(board, &mut link, 2, &invitation, &weight)?;
    let _record = piece(board, &samples);
    let (mut most, mut progress) = (0, Progress::More);
    while progress == Progress::More {
        let start = board::counter();
        progress = piece(board, &samples);
        most = most.max(board::counter().wrapping_sub(start));
    }
    let instructions = u64::from(most) * 1_000 / u64::from(board::COUNTS_PER_1000);
    print(longest, instructions as u32);
    Some(())
}

/// Runs a piece. Not inlined, so that it is in the flash once.
#[inline(never)]
fn piece<M: Trainable<Target = u16>>(
    board: &mut Board<'_, M>,
    samples: &SampleSlice<'_, u16>,
) -> Progress {
    board.train_some(samples, 1)
}

/// Memory of a session.
struct Vectors {
    global: [f32; PARAMETERS],
    local: [f32; PARAMETERS],
    update: [f32; PARAMETERS],
    order: [u32; SAMPLES],
    scratch: [f32; FEATURES + 10],
}

impl Vectors {
    const fn new() -> Self {
        Self {
            global: [0.0; PARAMETERS],
            local: [0.0; PARAMETERS],
            update: [0.0; PARAMETERS],
            order: [0; SAMPLES],
            scratch: [0.0; FEATURES + 10],
        }
    }
}

const KEY: [u8; 32] = [3; 32];

#[inline(never)]
fn session<M: Trainable>(vectors: &mut Vectors, model: M) -> Option<Board<'_, M>> {
    let ledger = Ledger::create(Forgetful::new(), [7; 8], Key::from_secret(KEY)).ok()?;
    let Vectors {
        global,
        local,
        update,
        order,
        scratch,
    } = vectors;
    let memory = Memory {
        global,
        work: Workspace {
            local,
            update,
            order,
            scratch,
        },
    };
    let identity = Identity {
        device: 0,
        root: Root::from_seed(1),
    };
    let nonces = stream(Purpose::SessionNonces);
    Session::new(identity, policy(), model, memory, ledger, nonces).ok()
}

/// Opens the session and returns the coordinator's end.
#[inline(never)]
fn welcome<M: Trainable>(board: &mut Board<'_, M>) -> Link<CoordinatorEnd> {
    board.set_window(MAX_WINDOW);
    board.timeout();
    let chain = ChainKey::new(Key::from_secret(KEY));
    // The nonce drawn by the session.
    let mut nonce = [0; 16];
    stream(Purpose::SessionNonces).fill_bytes(&mut nonce);
    let session = chain.session(0, &nonce, &[9; 16]);
    board.sent();
    let welcome = Greeting::Welcome(Welcome::new(&session, [9; 16], Ok(VERSION)));
    board.receive(welcome.encoded().as_slice());
    board.sent();
    Link::new(session.cipher())
}

/// Delivers the model of a round.
#[inline(never)]
fn invite<M: Trainable>(
    board: &mut Board<'_, M>,
    link: &mut Link<CoordinatorEnd>,
    round: u32,
    invitation: &Invitation,
    weight: &impl Fn(usize) -> f32,
) -> Option<()> {
    tell(
        board,
        link,
        round,
        &Message::Invitation(PackedInvitation::from(invitation).bytes()),
    );
    for (index, start) in (0..).zip((0..PARAMETERS).step_by(MODEL_CHUNK)) {
        let chunk: [f32; MODEL_CHUNK] = core::array::from_fn(|place| weight(start + place));
        let values = chunk.get(..MODEL_CHUNK.min(PARAMETERS - start))?;
        let values = Values::Floats(values);
        tell(board, link, round, &Message::ModelChunk { index, values });
    }
    (board.phase() == Phase::Training).then_some(())
}

/// Delivers a message. Not inlined, so that it is in the flash once.
#[inline(never)]
fn tell<M: Trainable>(
    board: &mut Board<'_, M>,
    link: &mut Link<CoordinatorEnd>,
    round: u32,
    message: &Message<'_>,
) {
    board.receive(link.seal(round, message).as_slice());
    board.sent();
}

/// Returns an invitation to train in batches of ten, with noise from the device.
fn invitation(model: &impl Trainable) -> Option<Invitation> {
    Some(Invitation {
        shape: model.shape()?,
        epochs: 1,
        batch_size: NonZeroU32::new(10)?,
        learning_rate: LearningRate::new(0.1).ok()?,
        weight_decay: Penalty::NONE,
        proximal: Penalty::NONE,
        clipping: Clipping::EveryStep,
        gradient_smoothing: None,
        grid: Grid::new(ClipNorm::new(0.3).ok()?, BITS).ok()?,
        noise: Sigma::new(1 << BITS, 1).ok(),
        bit: None,
        masks: None,
        request: None,
    })
}

/// Returns a policy that accepts any request, twice.
const fn policy() -> Policy {
    Policy {
        limits: Limits {
            budget: Budget(2),
            separation: Separation::NONE,
            max_jump: MaxJump::DEFAULT,
        },
        min_noise_multiplier: NoiseMultiplier::NONE,
        min_matrix_noise_multiplier: NoiseMultiplier::NONE,
        max_epochs: 1,
        hides_number: false,
        helpers: 0,
    }
}
