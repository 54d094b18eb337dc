//! The tables of an experiment file, typed. Methods are built from them. The whole file is
//! [`crate::config`], and `[data]` is [`smolfed_data::config`].

pub mod cohort;
pub mod contrast;
pub mod model;
mod number_or_name;
pub mod personalise;
pub mod privacy;
pub mod question;
pub mod server;
pub mod simulation;
pub mod time_span;
pub mod train;

pub use cohort::{CohortConfig, CohortSampling, Denominator, Weighting};
pub use contrast::{AlphaName, AugmentConfig, ContrastConfig, ExchangeTime, MatrixPrivacyConfig};
pub use model::{ActivationName, LayerConfig, ModelConfig, ModelKind, Pair};
pub use personalise::{
    FineTuneKind, NoiseScale, NoiseTime, PersonaliseConfig, PmtlUpdateName, PrivatePart,
};
pub use privacy::{
    AdaptiveConfig, ClipNormSetting, MechanismName, PrivacyConfig, SecretSeed, SelectionConfig,
    TrialSeed, TrialsName,
};
pub use question::{AskedSamples, QuestionConfig, QuestionKind};
pub use server::ServerConfig;
pub use simulation::{ArithmeticName, FeatureFormat, FeatureType, SimulationConfig};
pub use train::{ClipTime, LearningRateSetting, TrainConfig};
