//! Masked sums: the coordinator adds up updates that it cannot read, and helpers that have seen no
//! update remove the masks from the sum, and add noise to it.
//!
//! ```text
//! device       y_i = q_i + Σ_j u_ij mod 2^w, with a tag for each helper            [`device`]
//! coordinator  Y = Σ_i y_i: uniform to whoever knows no mask                        sum
//! helper j     M_j = Σ_i u_ij - Z_j, once a round, for a list of devices with tags  [`party`]
//! coordinator  Y - Σ_j M_j = Σ_i q_i + Σ_j Z_j                                      [`round`]
//!              + Z_c, centred modulo 2^w: the release                               sum
//! ```
//!
//! With correlated noise, Y is a combination of the masked sums of several rounds, and M_j the same
//! combination of the sums of the masks, minus Z_j. No party holds an exact sum of any round.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`device`] | a simulated device's masks and tags |
//! | [`request`] | the request to a helper, and its answer |
//! | [`policy`] | the requirements of a helper |
//! | [`party`] | a helper: its keys, its record, its answer |
//! | [`party_noise`] | the noise that a party subtracts from its view |
//! | `tags` | the tags of many devices |
//! | [`record`] | the answers of a helper, which survive a restart |
//! | [`refusal`] | the reasons why a helper does not answer |
//! | [`combination`] | combinations of the sums of several rounds |
//! | [`error`] | the reasons why a round fails |
//! | [`round`] | the coordinator's side: asking local or remote helpers |

pub mod combination;
pub mod device;
pub mod error;
pub mod party;
pub mod party_noise;
pub mod policy;
pub mod record;
pub mod refusal;
pub mod request;
pub mod round;
mod tags;

pub use combination::Combination;
pub use device::{Asked, DeviceMasks};
pub use error::HelperError;
pub use party::{HelperParty, Prepared};
pub use party_noise::Party;
pub use policy::HelperPolicy;
pub use record::AnswerRecord;
pub use refusal::HelperRefusal;
pub use request::{Attendee, HelperAnswer, HelperRequest, Listed};
pub use round::{Helpers, LocalHelpers, MaskedRound};

#[cfg(test)]
mod tests;
