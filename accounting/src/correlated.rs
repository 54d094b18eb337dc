//! Correlated noise, for fleets that cannot draw their cohorts at random.
//!
//! Without sampling, independent noise pays for every round in which a device may take part.
//! Correlated noise pays once for the whole run and adds up more slowly over rounds. The only
//! assumption on who takes part is (k, b) [`Participation`].
//!
//! * **Mechanism.** Row t of X is round t's clipped sum. A model consists of prefix sums A X, with
//!   A lower-triangular with ones. With C lower-triangular, the server releases Y = C X + Z, Z
//!   independent with std z s L, and the estimate X̂ = C⁻¹ Y = X + C⁻¹ Z is post-processing
//!   ([`Decoder`]). A prefix sum of X̂ has err_t times the variance of an entry of Z: with C
//!   Toeplitz and B the coefficients of 1 / ((1 - x) C(x)), err_t = Σ_{s<=t} B_s².
//! * **Sensitivity** s: the largest || Σ C[:, i] u_i || over the rounds i of one device and updates
//!   u_i of norm at most 1. Coefficients are multiples of 1/256, so that C X is exact in integers
//!   on a grid 256 times finer, and s² is an integer.
//! * **Privacy** is that of one Gaussian mechanism: μ = 1/z if the updates of a device become
//!   zeros, 2/z if they become others.
//!
//! Sources: Choquette-Choo et al. 2022, 2023 (arXiv:2211.06530, 2306.08153) for (k, b)
//! participation and banded factorisation; Kalinin, Lampert 2024 (arXiv:2405.13763), Theorem 2, for
//! the sensitivity of non-increasing Toeplitz matrices; Pillutla et al. 2025 (arXiv:2506.08201) for
//! the field.
//!
//! # Updates that depend on earlier releases
//!
//! Later updates depend on earlier releases through the model, and so may the rounds in which a
//! device takes part. The guarantee covers this, also for discrete noise:
//!
//! 1. C is lower-triangular and Z_t is fresh. Given the releases before round t, the messages of
//!    the other devices are the same with or without the device, and Y_t is discrete Gaussian noise
//!    around centres that differ by δ_t = Σ_s m_{t-s} q_s, q_s the device's integer updates: δ_t is
//!    an integer vector, and a function of the past.
//! 2. On every path, for any dependence of the updates, the device took part in a (k, b) pattern
//!    with updates inside the ball. So Σ_t |δ_t|² <= s² (256 · 2^g)² in steps of the finer grid.
//! 3. Discrete Gaussian noise of std ν steps is, up to a factor 1 ± 4 exp(-2π² 3²) in every
//!    probability, real Gaussian noise of variance ν² - 3² with randomised rounding to integers
//!    (`Mechanism::continuous_multiplier`). Rounding commutes with the integer shift δ_t and its
//!    coins are independent of the data, so the release of round t is a post-processing of a real
//!    Gaussian release with the same shift, and so is the whole interaction: anyone who sees the
//!    real releases can round them and compute the next step.
//! 4. For real Gaussians of one std whose shifts are chosen adaptively but whose squares add up to
//!    at most s² on every path, the composition is as private as a single Gaussian release of
//!    sensitivity s: a filter for Gaussian differential privacy (Smith, Thakurta 2022,
//!    arXiv:2210.17520; for zCDP, Feldman, Zrnic 2021, arXiv:2008.11193; for continuous noise and
//!    matrix mechanisms, Denisov et al. 2022, arXiv:2202.08312). The factors of 3 multiply to less
//!    than 1 ± 1e-58 over 10¹⁰ parameters and 10⁷ rounds.
//!
//! A run that stops, or restarts from an empty history, only loses entries of columns, so the bound
//! holds.
//!
//! # Block-cyclic sampling
//!
//! Correlated noise needs no sampling, but gains from it. The population is split into b parts,
//! fixed beforehand and possibly public, and round t draws each device of part t mod b
//! independently with probability τ, in secret ([`Strategy::block_cyclic`]). With at most b bands,
//! n rounds are then as private as ⌈n / b⌉ compositions of a Gaussian mechanism of sensitivity |c|,
//! c a column of C, with Poisson sampling at rate τ (Choquette-Choo et al. 2023, arXiv:2306.08153).
//! To draw S of N devices in a round, τ is b S / N and not S / N. The argument, for a device of
//! part p, against an attacker who knows p:
//!
//! 1. The coin of the device in round p + ib affects only the releases Y_t of the b rounds from
//!    there on, a block, as C has at most b bands. Releases before round p do not depend on the
//!    device. So every release is in one block, there are at most ⌈n / b⌉ of them, and the last may
//!    be truncated, which only removes entries.
//! 2. The coins and the noise of all others are independent of the device and of its coins. Fix
//!    them: a bound for every value of them holds for their mixture, as divergences are jointly
//!    convex.
//! 3. Within a block, given all earlier releases, the update u that the device would send is fixed
//!    before the coin is drawn. Let a_t be the release of round t by the others without noise, a
//!    function of the releases before t. Then W_t = Y_t - a_t is a bijection of the block's
//!    releases, known to the attacker, with W = Z without the device and W = Z + B c ⊗ u with it, B
//!    the coin of probability τ: noise against a mixture of noise and noise shifted by |c| |u|,
//!    which is the Poisson-sampled Gaussian mechanism. (If u depends on earlier coins, through
//!    state on the device, it is a mixture of such mixtures against the same noise, which is no
//!    worse.) a_t includes the dependence of others' later updates on releases inside the block.
//! 4. This holds after every past, so blocks compose adaptively, and accountants of Poisson
//!    sampling apply. Discrete noise is a rounding of real noise as in 3 above: c ⊗ u is an integer
//!    vector.
//!
//! τ = 1 means no sampling: ⌈n / b⌉ compositions with noise z |c| have μ = √⌈n / b⌉ / z, the same
//! as one release of sensitivity √⌈n / b⌉ |c|. The same guarantee remains if the draw is not
//! secret. A user's devices may be in different parts, and their blocks would overlap. For users
//! with several devices nothing that relies on the draw is claimed.
//!
//! # Trust
//!
//! A trusted server keeps exact sums of past rounds and combines them before it adds noise. Under
//! distributed trust the server combines masked sums, and each helper the sums of their masks,
//! modulo 2^w: after subtracting the helpers' answers the same combination is left, with the noise
//! of all parties, and no party holds an exact sum. Against a coalition only the noise of the
//! others counts ([`distributed`](crate::distributed)), and parties know who takes part, so the
//! draw does not amplify against them. Under local trust each device would have to send
//! combinations of its past updates with noise in every later round, also if it does not take part:
//! that is a different mechanism, and no epsilon is claimed for it.
//!
//! ```
//! use smolfed_accounting::correlated::{Family, Participation, Strategy};
//! use smolfed_accounting::{Accountant, Delta, NoiseMultiplier, PrivacyEvent};
//!
//! // 200 rounds; a device takes part at most 10 times, and every 20th round at most.
//! let participation = Participation::new(200, 20, 10)?;
//! let strategy = Strategy::plan(Family::BandedOptimalMean, participation)?;
//! assert!(strategy.rmse() < 9.99);
//! assert!(Strategy::plan(Family::Identity, participation)?.rmse() > 31.7);
//!
//! let noise_multiplier = NoiseMultiplier::new(2.0)?;
//! let event = PrivacyEvent::correlated(&strategy, noise_multiplier, 20, 1_000)?;
//! let estimate = Accountant::AnalyticGaussian.epsilon(&[event], Delta::new(1e-5)?)?;
//! assert_eq!(format!("{:.3}", estimate.epsilon), "1.993");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blt;
mod decoder;
mod error;
mod family;
mod lbfgs;
mod optimise;
mod participation;
mod sensitivity;
mod series;
mod strategy;
mod toeplitz;
mod tree;

pub use blt::Blt;
pub use decoder::Decoder;
pub use error::CorrelatedError;
pub use family::Family;
pub use participation::Participation;
pub use sensitivity::{COEFFICIENT_UNIT, MAX_COEFFICIENT, MAX_ROUNDS};
pub(crate) use strategy::fine_steps;
pub use strategy::{SUM_LIMIT, Strategy, StrategyKind};
pub use toeplitz::Toeplitz;
pub use tree::Tree;

#[cfg(test)]
mod block_cyclic;
#[cfg(test)]
mod tests;
