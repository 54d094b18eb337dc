//! The relation of neighbouring data that a guarantee is about.

use serde::{Deserialize, Serialize};

/// Which two federations an adversary tries to tell apart. Epsilons under different relations are
/// not comparable and are never added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adjacency {
    /// One device takes part or not (its update is replaced by zero). Sensitivity of the sum: L.
    AddRemove,
    /// One device's data are replaced by any other data. Sensitivity of the sum: 2L.
    ReplaceOne,
}

impl Adjacency {
    /// The name in statements and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AddRemove => "add-remove",
            Self::ReplaceOne => "replace-one",
        }
    }
}
