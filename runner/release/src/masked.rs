//! Masked sums: the coordinator adds up updates that it cannot read, and helpers that have seen no
//! update take the masks off the sum, under noise of their own.
//!
//! ```text
//! device       y_i = q_i + Σ_j u_ij mod 2^w, with a tag for each helper            [`device`]
//! coordinator  Y = Σ_i y_i: uniform to whoever knows no mask                        sum
//! helper j     M_j = Σ_i u_ij - Z_j, once a round, for a list of devices with tags  [`party`]
//! coordinator  Y - Σ_j M_j = Σ_i q_i + Σ_j Z_j                                      [`round`]
//!              + Z_c, centred modulo 2^w: the release                               sum
//! ```
//!
//! With correlated noise Y is a combination of the masked sums of several rounds, and M_j the same
//! combination of the sums of the masks, less Z_j. Nobody holds an exact sum of any round.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`device`] | a simulated device's masks and tags |
//! | [`request`] | what a helper is asked, and its answer |
//! | [`policy`] | what a helper insists on |
//! | [`party`] | a helper: its keys, its record, its answer |
//! | [`party_noise`] | what a party takes off what it sees |
//! | `tags` | the tags of many devices |
//! | [`record`] | what a helper has answered, which outlives it |
//! | [`refusal`] | why a helper does not answer |
//! | [`combination`] | how the sums of several rounds are combined |
//! | [`error`] | why a round comes to nothing |
//! | [`round`] | the coordinator's side: asking the helpers, wherever they are |

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
