//! Orders of rank 0 to the other ranks.
//!
//! An order is a broadcast of JSON, followed by one of bytes: the parameters of a round or the
//! checkpoint from which the run resumes.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::method::contract::Store;
use crate::ranks::{Communicator, decode, encode};
use smolfed_release::saved::Saved;

/// An order of rank 0 to the other ranks.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Order {
    /// Start or resume. Without a run directory, there are no device states.
    Begin(Option<Begin>),
    /// Train a part of a cohort.
    Round(Round),
    /// Write the device states to disk, for the checkpoint after this number of rounds.
    Save(u32),
    /// Leave.
    End,
}

/// The starting point of a run.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Begin {
    /// The file for the states of devices, on a folder that all ranks share.
    pub(super) device_states: PathBuf,
    /// Name of the run.
    pub(super) run: String,
    /// Number of completed rounds, if there is a checkpoint.
    pub(super) rounds: Option<u32>,
    /// State of the method in it.
    #[serde(skip)]
    pub(super) saved: Saved,
}

/// A round, for a rank that has the experiment and the data.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Round {
    /// The round.
    pub(super) round: u32,
    /// The number that names its random streams.
    pub(super) number: u32,
    /// L, if updates are clipped. It may be adaptive.
    pub(super) clip_norm: Option<f32>,
    /// The devices whose updates may enter the sum, or `None` if all may.
    pub(super) admitted: Option<Vec<u32>>,
    /// All devices that take part.
    pub(super) cohort: Vec<u32>,
    /// The shared parameters.
    #[serde(skip)]
    pub(super) global: Vec<f32>,
}

impl Begin {
    /// Creates the starting point of rank 0.
    ///
    /// # Errors
    /// The reason why the other ranks cannot be told.
    pub(super) fn from_store(store: &Store<'_>) -> Result<Self, String> {
        let path = std::path::absolute(store.device_states);
        Ok(Self {
            device_states: path.map_err(|error| error.to_string())?,
            run: store.run.to_owned(),
            rounds: store.checkpoint.map(|(rounds, _)| rounds),
            saved: store
                .checkpoint
                .map(|(_, saved)| saved.clone())
                .unwrap_or_default(),
        })
    }

    /// Returns the storage for the method on another rank.
    pub(super) fn store(&self) -> Store<'_> {
        Store {
            device_states: Path::new(&self.device_states),
            run: &self.run,
            checkpoint: self.rounds.map(|rounds| (rounds, &self.saved)),
            is_follower: true,
        }
    }
}

impl Order {
    /// Sends the order to the other ranks, on rank 0.
    pub(super) fn give(&self, ranks: &dyn Communicator) {
        ranks.broadcast(encode(self));
        if self.has_bytes() {
            ranks.broadcast(self.bytes());
        }
    }

    /// Waits for the next order of rank 0, on another rank.
    ///
    /// # Errors
    /// A description of the problem.
    pub(super) fn next(ranks: &dyn Communicator) -> Result<Self, String> {
        let mut order: Self = decode(&ranks.broadcast(Vec::new()))?;
        if order.has_bytes() {
            order.fill(&ranks.broadcast(Vec::new()))?;
        }
        Ok(order)
    }

    const fn has_bytes(&self) -> bool {
        matches!(self, Self::Begin(Some(_)) | Self::Round(_))
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Round(round) => {
                let parameters = round.global.iter();
                parameters.flat_map(|value| value.to_le_bytes()).collect()
            }
            // The checkpoint format can hold everything that came from a checkpoint.
            Self::Begin(Some(begin)) => begin.saved.encode().unwrap_or_default(),
            Self::Begin(None) | Self::Save(_) | Self::End => Vec::new(),
        }
    }

    fn fill(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self {
            Self::Round(round) => {
                let words = bytes.as_chunks::<4>().0.iter();
                round.global = words.map(|word| f32::from_le_bytes(*word)).collect();
            }
            Self::Begin(Some(begin)) => begin.saved = Saved::decode(bytes)?,
            Self::Begin(None) | Self::Save(_) | Self::End => {}
        }
        Ok(())
    }
}
