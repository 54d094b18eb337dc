//! The coordinator of the core's tests, as the peer of a device behind the interface for C.

use std::collections::VecDeque;

use smolfed_c::{sf_status::*, *};
use smolfed_core::crypto::Key;
use smolfed_core::fixed_point::{FeatureFormat, FeatureScale};
use smolfed_core::harness;
use smolfed_core::mask::Tag;
use smolfed_core::model::ModelKind;
use smolfed_core::wire::Direction;
use smolfed_core::wire::cobs::Decoder;
use smolfed_core::wire::frame::{Encoded, Frame};
use smolfed_core::wire::greeting::{Greeting, Hello, Name, Welcome};
use smolfed_core::wire::keys::{Chain, ChainKey, SessionKey};
use smolfed_core::wire::link::{CoordinatorEnd, Link, read};
use smolfed_core::wire::message::{
    Decline, Invitation, MODEL_CHUNK, Message, ModelShape, PackedInvitation, UpdatePart, Values,
};
use smolfed_core::wire::refusal::{Refusal, Refusals};

#[allow(dead_code, reason = "other tests read more of it")]
#[path = "../../../core/src/session/tests/coordinator.rs"]
mod coordinator;

use coordinator::Coordinator;

use super::board::{CLASSES, FEATURES, KEY, PLACES};

/// Type of the features of a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Features {
    F32,
    I8,
    I16,
}

/// A kind of model, as both sides name it.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static sf_kind,
    pub(crate) model: ModelKind,
    pub(crate) features: Features,
}

macro_rules! kinds {
    ($($kind:ident: $Model:ident, $Features:ident;)*) => {
        /// Every kind of the header.
        pub(crate) const KINDS: [Kind; 9] = [$(Kind {
            name: stringify!($kind),
            kind: &$kind,
            model: ModelKind::$Model,
            features: Features::$Features,
        }),*];
    };
}

kinds! {
    sf_softmax_f32: Softmax, F32;
    sf_softmax_i8: Softmax, I8;
    sf_softmax_i16: Softmax, I16;
    sf_logistic_f32: Logistic, F32;
    sf_logistic_i8: Logistic, I8;
    sf_logistic_i16: Logistic, I16;
    sf_linear_f32: Linear, F32;
    sf_linear_i8: Linear, I8;
    sf_linear_i16: Linear, I16;
}

impl Kind {
    /// Scores of a sample.
    pub(crate) fn outputs(&self) -> usize {
        match self.model {
            ModelKind::Softmax => CLASSES.into(),
            _ => 1,
        }
    }

    /// Binary places of its features.
    pub(crate) fn places(&self) -> u8 {
        match self.features {
            Features::I16 => 12,
            _ => PLACES,
        }
    }

    fn shape(&self) -> ModelShape {
        let scale = FeatureScale::new::<i16>(self.places()).expect("valid places");
        ModelShape {
            kind: self.model,
            features: FEATURES as u16,
            outputs: self.outputs() as u16,
            network: None,
            integer: match self.features {
                Features::F32 => None,
                Features::I8 => Some(FeatureFormat::of::<i8>(scale)),
                Features::I16 => Some(FeatureFormat::of::<i16>(scale)),
            },
        }
    }

    /// A model as it is on the line: integers have the bits of numbers.
    fn parameters(&self) -> Vec<f32> {
        let numbers = 0..self.outputs() * (FEATURES + 1);
        match self.features {
            Features::F32 => numbers.map(|number| number as f32 * 0.01).collect(),
            _ => numbers
                .map(|number| f32::from_bits(100 * number as u32))
                .collect(),
        }
    }
}

/// The coordinator of one device.
pub(crate) struct Peer(Coordinator);

impl Peer {
    pub(crate) fn new(kind: &Kind) -> Self {
        Self::with_chain(kind, ChainKey::new(Key::from_secret(KEY)))
    }

    /// The coordinator that has this key of the device.
    pub(crate) fn with_chain(kind: &Kind, chain: ChainKey) -> Self {
        let invitation = Invitation {
            shape: kind.shape(),
            ..harness::invitation(None)
        };
        Self(Coordinator::new(chain, 0, invitation, kind.parameters()))
    }

    /// Invites the device to a round.
    pub(crate) fn invite(&mut self, round: u32) {
        self.0.round = round;
        self.0.next = 0;
        self.0.done = false;
        self.0.declined = None;
        self.0.invite();
    }

    /// Whether the whole update of the last round has come.
    pub(crate) fn is_done(&self) -> bool {
        self.0.done
    }

    /// The integers of the last update.
    #[allow(dead_code, reason = "not all tests compare them")]
    pub(crate) fn update(&self) -> &[i64] {
        &self.0.integers
    }

    /// Why the device declined the last round.
    pub(crate) fn declined(&self) -> Option<Decline> {
        self.0.declined
    }

    /// Passes frames both ways until nobody has any, and trains in pieces of two samples. `piece`
    /// is called before each. It returns the frames for the device.
    ///
    /// # Safety
    /// The device is open.
    pub(crate) unsafe fn exchange(
        &mut self,
        device: *mut sf_device,
        mut piece: impl FnMut(),
    ) -> Vec<u8> {
        let mut frames = Vec::new();
        // SAFETY: as of this function.
        unsafe { self.take(device) };
        let mut waiting = VecDeque::from(self.frames());
        while let Some(frame) = waiting.pop_front() {
            // SAFETY: as of this function, and the bytes of the frame are there.
            unsafe {
                give(device, &frame);
                self.take(device);
                let mut has_more = is_training(device);
                while has_more {
                    piece();
                    assert_eq!(sf_train_some(device, 2, &raw mut has_more), SF_OK);
                }
                self.take(device);
            }
            frames.extend(frame);
            waiting.extend(self.frames());
        }
        frames
    }

    /// The frames for the device that nobody has passed on yet.
    pub(crate) fn frames(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.outgoing)
    }

    /// Takes everything that the device sends.
    ///
    /// # Safety
    /// The device is open.
    pub(crate) unsafe fn take(&mut self, device: *mut sf_device) {
        loop {
            let (mut bytes, mut count) = (std::ptr::null(), 0);
            // SAFETY: as for this function. The bytes stay until the next call.
            unsafe {
                assert_eq!(sf_outgoing(device, &raw mut bytes, &raw mut count), SF_OK);
                if count == 0 {
                    return;
                }
                self.0.receive(std::slice::from_raw_parts(bytes, count));
                assert_eq!(sf_sent(device), SF_OK);
            }
        }
    }
}

/// Gives a frame to the device.
///
/// # Safety
/// The device is open.
pub(crate) unsafe fn give(device: *mut sf_device, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let mut taken = 0;
        // SAFETY: as of this function, and the bytes are there.
        let status = unsafe { sf_receive(device, bytes.as_ptr(), bytes.len(), &raw mut taken) };
        assert!(status == SF_OK && taken > 0, "no progress");
        bytes = bytes.get(taken..).expect("no more than there is");
    }
}

/// # Safety
/// The device is open.
pub(crate) unsafe fn is_training(device: *mut sf_device) -> bool {
    let mut phase = sf_phase::SF_SILENT;
    // SAFETY: as of this function.
    assert_eq!(unsafe { sf_phase_of(device, &raw mut phase) }, SF_OK);
    phase == sf_phase::SF_TRAINING
}
