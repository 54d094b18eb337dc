//! The helpers of a fleet with masked updates, in other processes. The coordinator asks all of them
//! at the same time over links, once per round.
//!
//! Before a round begins, every helper must answer and confirm that it enforces the policy of the
//! privacy statement. If a helper disappears before the updates are complete, the coordinator
//! retries it until the deadline. The question stays the same, so a helper that has already
//! answered gives the same answer, unless it has restarted: then it refuses. A round without all
//! answers fails, and is charged nevertheless.
//!
//! A helper that refuses because of one device's tag or ledger would refuse every list with that
//! device, so the coordinator quarantines the device. A helper that lies about it keeps a device
//! out, which it could also do by refusing. It learns nothing.

mod remote;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use smolfed_core::crypto::Key;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use super::backoff::BackOff;
use super::keys::error::KeysError;
use super::quarantine::{Quarantine, report};
use super::service::Service;
use super::transport::{Address, Options};
use crate::helper_link::link::LinkKey;
use crate::helper_link::message::HelperState;
use crate::stopping::Stopping;
use remote::{HELLO_TIMEOUT, Remote};
use smolfed_release::entropy::{EntropyError, secret};
use smolfed_release::masked::{
    HelperAnswer, HelperError, HelperPolicy, HelperRefusal, Helpers, MaskedRound,
};

/// Interval at which a waiting coordinator checks whether it is to stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of consecutive lost rounds. Each costs its share of epsilon, and a fourth attempt
/// would be refused like the first three.
const MAX_LOST: u32 = 3;

/// What a coordinator does while a helper cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum WhenMissing {
    /// Waits, and begins no round until the helper can be reached.
    #[default]
    Wait,
    /// Ends the run if a helper is unreachable or a round is lost. `--resume` continues it.
    Stop,
}

impl WhenMissing {
    /// Returns whether it is the default.
    #[must_use]
    pub fn is_wait(&self) -> bool {
        *self == Self::Wait
    }
}

/// Settings for asking helpers.
#[derive(Clone, Debug)]
pub struct HelperSettings {
    /// Addresses of the helpers, by number.
    pub addresses: Vec<Address>,
    /// Settings of connections besides the addresses.
    pub options: Options,
    /// Behaviour while a helper cannot be reached.
    pub missing: WhenMissing,
    /// Time limit for the answer of a round.
    pub timeout: Duration,
    /// The keys of the fleet. The file of quarantined devices is next to them.
    pub keys: PathBuf,
    /// 0 disables quarantine.
    pub strikes: u32,
}

/// The helpers of a fleet.
pub struct RemoteHelpers {
    runtime: Runtime,
    remotes: Vec<Remote>,
    /// The policy assumed by the privacy statement.
    policy: HelperPolicy,
    missing: WhenMissing,
    timeout: Duration,
    keys: PathBuf,
    strikes: u32,
    stopping: Arc<Stopping>,
    /// Number of the last requested round.
    round: u32,
    /// Publishes the state of the helpers.
    service: Arc<Service>,
    /// Whether a round was requested since the last wait for helpers.
    has_asked: bool,
    /// Number of consecutive lost rounds, and the reason for the last one.
    lost: u32,
    failure: Option<HelperError>,
}

impl fmt::Debug for RemoteHelpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteHelpers({} helpers)", self.remotes.len())
    }
}

impl RemoteHelpers {
    /// Returns the helpers with these links, which must enforce this policy. Connects nothing yet.
    ///
    /// # Errors
    /// A description of the problem.
    pub fn new(
        settings: &HelperSettings,
        links: impl Iterator<Item = (u8, Key)>,
        policy: HelperPolicy,
        stopping: Arc<Stopping>,
        service: Arc<Service>,
    ) -> Result<Self, String> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let random = secret().map_err(|error: EntropyError| error.to_string())?;
        let process = random.first_chunk().copied().unwrap_or_default();
        let remotes = links.zip(&settings.addresses);
        let remotes = remotes.map(|((number, key), address)| Remote {
            number,
            address: address.clone(),
            options: settings.options.clone(),
            key: LinkKey {
                key,
                helper: number,
            },
            process,
            link: None,
        });
        Ok(Self {
            remotes: remotes.collect(),
            runtime,
            policy,
            missing: settings.missing,
            timeout: settings.timeout,
            keys: settings.keys.clone(),
            strikes: settings.strikes,
            stopping,
            round: 0,
            service,
            has_asked: false,
            lost: 0,
            failure: None,
        })
    }

    /// Asks every helper for its state.
    fn greet(&mut self) -> Result<(), HelperError> {
        let asked = self.remotes.iter_mut().map(Remote::state);
        let states = self.runtime.block_on(join_all(asked));
        let connected = states.iter().filter(|state| state.is_ok()).count();
        let monitor = self.service.monitor();
        monitor.helpers_are(connected, self.remotes.len());
        for (remote, state) in self.remotes.iter().zip(states) {
            let state = state.map_err(|failure| failure.into_error(remote.number))?;
            fits(remote.number, &state, &self.policy)?;
        }
        Ok(())
    }

    /// Quarantines a device. The coordinator reads the file before the next round.
    fn exclude(&self, device: u32, refusal: &HelperRefusal) -> Result<(), KeysError> {
        let mut quarantine = Quarantine::open(&self.keys, self.strikes)?;
        let reason = format!("a helper refuses: {}", refusal.in_public());
        if quarantine.exclude(device, self.round, reason) {
            quarantine.save()?;
            report(device);
        }
        Ok(())
    }

    /// Waits until every helper answers, or the run is to stop.
    fn wait(&mut self) -> Result<(), HelperError> {
        let mut back_off = BackOff::new();
        let mut is_reported = false;
        loop {
            let missing = match self.greet() {
                Err(missing @ HelperError::Missing { .. }) => missing,
                other => {
                    if is_reported && other.is_ok() {
                        tracing::info!(reason = "helper", "all helpers answer: the run continues");
                    }
                    return other;
                }
            };
            if self.missing == WhenMissing::Stop || self.stopping.is_asked() {
                return Err(missing);
            }
            if !is_reported {
                tracing::warn!(
                    reason = "helper",
                    "{missing}; no round begins until it does"
                );
                is_reported = true;
            }
            let end = Instant::now() + back_off.next_pause();
            while Instant::now() < end && !self.stopping.is_asked() {
                std::thread::sleep(LOOK_INTERVAL);
            }
        }
    }
}

impl Helpers for RemoteHelpers {
    fn ready(&mut self) -> Result<(), HelperError> {
        let has_asked = std::mem::take(&mut self.has_asked);
        match self.failure.take() {
            Some(last) if self.missing == WhenMissing::Stop => return Err(last),
            Some(last) if self.lost >= MAX_LOST => {
                return Err(HelperError::Hopeless {
                    rounds: self.lost,
                    last: Box::new(last),
                });
            }
            Some(_) => {}
            None if has_asked => self.lost = 0,
            // The same round, which has waited for devices meanwhile.
            None => {}
        }
        self.wait()
    }

    fn lost(&mut self, error: HelperError) {
        if let HelperError::Refused { refusal, .. } = &error
            && let Some(device) = refusal.of_device()
            && let Err(error) = self.exclude(device, refusal)
        {
            tracing::error!(reason = "quarantine", "{error}");
        }
        self.service.monitor().helper_failed(&reason(&error));
        self.lost += 1;
        self.failure = Some(error);
    }

    fn unmask(&mut self, round: &MaskedRound) -> Result<Vec<HelperAnswer>, HelperError> {
        (self.round, self.has_asked) = (round.number, true);
        let deadline = (Instant::now() + self.timeout).into_std();
        let deadline = Instant::from_std(self.stopping.deadline(deadline));
        // Even in a run that is to stop at once: an answer takes milliseconds.
        let deadline = deadline.max(Instant::now() + HELLO_TIMEOUT);
        let asked = self.remotes.iter_mut();
        let asked = asked.map(|remote| remote.ask(round, deadline));
        let answers = self.runtime.block_on(join_all(asked));
        let connected = self.remotes.iter().filter(|remote| remote.link.is_some());
        let monitor = self.service.monitor();
        monitor.helpers_are(connected.count(), self.remotes.len());
        let answers: Vec<HelperAnswer> = answers.into_iter().collect::<Result<_, _>>()?;
        Ok(answers)
    }
}

/// Returns the reason for a lost round in a few words, without numbers.
fn reason(error: &HelperError) -> String {
    match error {
        HelperError::Refused { refusal, .. } => refusal.name(),
        HelperError::Missing { .. } => "missing".to_owned(),
        HelperError::Implausible => "implausible".to_owned(),
        _ => "other".to_owned(),
    }
}

/// Checks that a helper enforces the policy of the privacy statement.
fn fits(helper: u8, state: &HelperState, policy: &HelperPolicy) -> Result<(), HelperError> {
    let is_same_noise = state.noise_multiplier.to_bits() == policy.noise_multiplier.to_bits()
        && state.coefficients == policy.coefficients;
    let reason = if state.helpers != policy.helpers {
        format!(
            "it is one of {} helpers, but the experiment has {}",
            state.helpers, policy.helpers
        )
    } else if !is_same_noise {
        format!(
            "its noise multiplier is {}{}, but the experiment's statement assumes {}{}: serve the \
             experiment that the fleet was provisioned for",
            state.noise_multiplier,
            combined(&state.coefficients),
            policy.noise_multiplier,
            combined(&policy.coefficients),
        )
    } else if state.rounds_left == 0 {
        "it has answered in its maximum number of rounds, which `smolfed provision \
         --helper-rounds` sets"
            .to_owned()
    } else {
        return Ok(());
    };
    Err(HelperError::Unsuited { helper, reason })
}

fn combined(coefficients: &[i64]) -> &'static str {
    match coefficients {
        [] => "",
        _ => " with correlated noise",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> HelperPolicy {
        HelperPolicy {
            helpers: 1,
            noise_multiplier: 1.5,
            min_cohort: 2,
            max_rounds: 5,
            participations: 5,
            separation: 1,
            coefficients: Vec::new(),
        }
    }

    #[test]
    fn a_helper_must_insist_on_what_the_statement_counts_on() {
        let state = HelperState {
            rounds_left: 1,
            helpers: 1,
            noise_multiplier: 1.5,
            ..HelperState::default()
        };
        assert_eq!(fits(0, &state, &policy()), Ok(()));
        for (other, expected) in [
            (
                HelperState {
                    noise_multiplier: 1.4,
                    ..state.clone()
                },
                "its noise multiplier is 1.4, but",
            ),
            (
                HelperState {
                    coefficients: vec![256, -1],
                    ..state.clone()
                },
                "1.5 with correlated noise, but",
            ),
            (
                HelperState {
                    helpers: 2,
                    ..state.clone()
                },
                "one of 2 helpers, but the experiment has 1",
            ),
            (
                HelperState {
                    rounds_left: 0,
                    ..state
                },
                "its maximum number of rounds",
            ),
        ] {
            let error = fits(0, &other, &policy()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn reasons_of_lost_rounds_name_no_device() {
        let refused = HelperError::Refused {
            helper: 0,
            refusal: smolfed_release::masked::HelperRefusal::Tag { device: 17 },
        };
        assert_eq!(reason(&refused), "tag");
        assert_eq!(reason(&HelperError::Implausible), "implausible");
    }
}
