//! The families of mechanisms for correlated noise (matrix mechanisms), by name: independent noise,
//! the binary tree, square roots, and banded matrices.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::CorrelatedError;

/// The table of families, each with its name in files and on the command line.
macro_rules! families {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// The correlation of the noise of rounds: the matrix C that is applied before noise is
        /// added.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "&'static str")]
        pub enum Family {
            $($(#[$doc])* $variant,)*
        }

        impl Family {
            /// All families, the simplest first.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Returns the name in files and on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

families! {
    /// Independent noise in every round: C is the identity.
    Identity = "identity";
    /// A binary tree over the rounds with independent noise in every node, decoded by the online
    /// estimate of Honaker 2015: DP-FTRL of Kairouz et al. 2021 (arXiv:2103.00039).
    Tree = "tree";
    /// The square root of the matrix of prefix sums, in which every round uses all earlier ones:
    /// Fichtenberger, Henzinger, Upadhyay 2022 (arXiv:2202.11205).
    SquareRoot = "square-root";
    /// The first b coefficients of the square root.
    SquareRootBanded = "square-root-banded";
    /// The b coefficients with the smallest mean squared error over the rounds: banded matrix
    /// factorisation, Choquette-Choo et al. 2023 (arXiv:2306.08153).
    BandedOptimalMean = "banded-optimal-mean";
    /// The b coefficients with the smallest maximum error of a round.
    BandedOptimalMax = "banded-optimal-max";
}

impl Family {
    /// Returns whether a release combines the sums of at most b rounds, for any number of rounds.
    #[must_use]
    pub const fn is_banded(self) -> bool {
        !matches!(self, Self::Tree | Self::SquareRoot)
    }

    /// Returns the names of the banded families, for sentences.
    pub(super) fn banded_names() -> String {
        let banded = Self::ALL.into_iter().filter(|family| family.is_banded());
        banded.map(Self::name).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Family {
    type Err = CorrelatedError;

    fn from_str(name: &str) -> Result<Self, CorrelatedError> {
        let known = Self::ALL.into_iter().find(|family| family.name() == name);
        known.ok_or_else(|| CorrelatedError::Family {
            name: name.to_owned(),
            known: Self::ALL.map(Self::name).join(", "),
        })
    }
}

impl TryFrom<String> for Family {
    type Error = CorrelatedError;

    fn try_from(name: String) -> Result<Self, CorrelatedError> {
        name.parse()
    }
}

impl From<Family> for &'static str {
    fn from(family: Family) -> Self {
        family.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for family in Family::ALL {
            assert_eq!(family.to_string().parse(), Ok(family));
            let text = serde_json::to_string(&family).unwrap();
            assert_eq!(serde_json::from_str::<Family>(&text).unwrap(), family);
        }
        let error = "blt".parse::<Family>().unwrap_err().to_string();
        assert!(error.contains("`blt`") && error.contains("banded-optimal-max"));
        assert!(serde_json::from_str::<Family>("\"Identity\"").is_err());
    }
}
