//! Training methods, and their use of updates. A method is one file (or folder) and one entry in
//! the table at the end of this file.
//!
//! | module | contents |
//! | --- | --- |
//! | [`contract`] | the traits of a method: before a run, during a run, and on one thread |
//! | [`setup`] | the configuration for building a method |
//! | [`state`] | a method's state between rounds |
//! | `fedavg`, `fedprox` | one model for all devices |
//! | `personal` | common parts of methods with personal models |
//! | `pmtl`, `pp_sgd`, `dpfedmtl`, `local` | methods with personal models |
//! | `ask` | questions alone |
//! | `contrastive` | encoders trained without labels |
//! | [`remote`] | messages of real devices |
//! | [`supervised`], [`tuning`] | common parts of methods with labels |

mod ask;
pub mod contract;
pub mod contrastive;
mod dpfedmtl;
mod fedavg;
mod fedprox;
mod local;
pub mod personal;
mod pmtl;
mod pp_sgd;
pub mod remote;
pub mod setup;
pub mod state;
pub mod supervised;
pub mod tuning;

use contract::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setup::Setup;

use crate::check::ExperimentError;

/// The table of methods: name in files, constructor, and title for reports.
macro_rules! methods {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $build:path, $title:literal;)*) => {
        /// How the server and the devices learn.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum MethodName {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl MethodName {
            /// All methods.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Returns the name in files and on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns a title for reports.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$variant => $title,)*
                }
            }

            /// Builds the method for an experiment.
            ///
            /// # Errors
            /// [`ExperimentError`] for the first invalid key.
            pub fn build(self, setup: &Setup<'_>) -> Result<Box<dyn Method>, ExperimentError> {
                match self {
                    $(Self::$variant => $build(setup),)*
                }
            }
        }
    };
}

methods! {
    /// Private federated averaging.
    DpFed = "dp-fed", fedavg::plain, "DP-Fed: private federated averaging";
    /// Private federated averaging with Laplacian smoothing (Liang et al. 2020).
    DpFedLs = "dp-fed-ls", fedavg::smoothed,
        "DP-Fed-LS: private federated averaging with Laplacian smoothing";
    /// Private federated averaging, each device pulled back to the global model (Li et al. 2020).
    Fedprox = "fedprox", fedprox::build,
        "FedProx: private federated averaging, each device pulled back to the shared model";
    /// A personal model on each device, pulled to a shared one (Hu, Wu, Smith 2023).
    Pmtl = "pmtl", pmtl::build,
        "PMTL: a personal model on each device, pulled to the shared one";
    /// Shared layers below a private part of each device (Wu, Chen, Wang 2020).
    Dpfedmtl = "dpfedmtl", dpfedmtl::build,
        "DPFedMTL: shared layers below a private part of each device";
    /// A shared model and a personal offset to it (Bietti et al. 2022).
    PpSgd = "pp-sgd", pp_sgd::build, "PP-SGD: a shared model and a personal offset to it";
    /// Each device by itself: nothing is shared.
    Local = "local", local::build, "Local training: each device by itself, nothing is shared";
    /// Questions alone: nothing is trained.
    Ask = "ask", ask::build, "Only questions: nothing is trained";
    /// An encoder that learns without labels, with shared correlation matrices (Jing et al. 2024).
    Fedsc = "fedsc", contrastive::build::fedsc,
        "FedSC: an encoder without labels, with shared correlation matrices";
    /// The same without matrices: federated averaging of the spectral contrastive loss.
    FedavgSc = "fedavg-sc", contrastive::build::fedavg_sc,
        "FedAvg of the spectral contrastive loss: an encoder without labels";
    /// The same on all samples in one place, for comparison.
    CentralSc = "central-sc", contrastive::build::central_sc,
        "The spectral contrastive loss on all samples in one place";
}
