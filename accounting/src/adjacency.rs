//! The neighbouring relation of a guarantee (adjacency): one device is added or removed, or its
//! data are replaced.

use serde::{Deserialize, Serialize};

/// The difference between the two federations that an adversary tries to distinguish. Epsilons
/// under different relations are not comparable and are never added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adjacency {
    /// One device takes part or not (its update is replaced by zero). Sensitivity of the sum: L.
    AddRemove,
    /// One device's data are replaced by any other data. Sensitivity of the sum: 2L.
    ReplaceOne,
}

impl Adjacency {
    /// Returns the name in statements and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AddRemove => "add-remove",
            Self::ReplaceOne => "replace-one",
        }
    }
}
