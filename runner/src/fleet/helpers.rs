//! The helpers of a fleet with masked updates, in processes elsewhere: asked over links, once a
//! round, all at the same time.
//!
//! Before a round begins every helper must answer, and say that it insists on what the privacy
//! statement counts on. A helper that is gone when the updates are there is tried again until the
//! time for it is over: the question is the same, so that one which had answered already gives the
//! same answer. A round without all answers comes to nothing, and costs no privacy.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use smolfed_core::crypto::Key;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::backoff::BackOff;
use super::service::Service;
use super::transport::{Address, Options};
use super::watch::stopping::Stopping;
use crate::entropy::{EntropyError, secret};
use crate::helper::link::{Link, LinkError, LinkKey, ephemeral};
use crate::helper::message::{HelperState, Question, Reply};
use crate::helper::seat::Process;
use crate::release::masked::{
    HelperAnswer, HelperError, HelperPolicy, HelperRefusal, Helpers, MaskedRound,
};

/// How long a helper has to answer a question without arithmetic.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a coordinator that waits looks whether it is to stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Rounds in a row that may be lost: each costs its share of epsilon, and what was refused three
/// times will be refused again.
const MAX_LOST: u32 = 3;

/// What a coordinator does while a helper cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum WhenMissing {
    /// Begins no round, and waits for it.
    #[default]
    Wait,
    /// Ends the run, which can be resumed; also after a round that was lost.
    Stop,
}

impl WhenMissing {
    /// Whether it is the default.
    #[must_use]
    pub fn is_wait(&self) -> bool {
        *self == Self::Wait
    }
}

/// How helpers are asked.
#[derive(Clone, Debug)]
pub struct HelperSettings {
    /// Where they are, by number.
    pub addresses: Vec<Address>,
    /// What connections need beside their addresses.
    pub options: Options,
    /// What happens while one cannot be reached.
    pub missing: WhenMissing,
    /// Time for the answer of a round.
    pub timeout: Duration,
}

/// The helpers of a fleet.
pub struct Elsewhere {
    runtime: Runtime,
    remotes: Vec<Remote>,
    /// What the privacy statement counts on.
    policy: HelperPolicy,
    missing: WhenMissing,
    timeout: Duration,
    stopping: Arc<Stopping>,
    /// Who shows how they are.
    service: Arc<Service>,
    /// Rounds that were lost one after the other, and why the last one was.
    lost: u32,
    failure: Option<HelperError>,
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Elsewhere({} helpers)", self.remotes.len())
    }
}

/// One helper, as the coordinator sees it.
struct Remote {
    number: u8,
    address: Address,
    options: Options,
    key: LinkKey,
    process: Process,
    link: Option<Link>,
}

/// Why a helper did not answer this time.
enum Failure {
    /// It may answer later.
    Missing(String),
    /// It will not.
    Refused(HelperRefusal),
}

impl Elsewhere {
    /// The helpers with these links, which must insist on this policy. Nothing is connected yet.
    ///
    /// # Errors
    /// What is wrong, in words.
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
            stopping,
            service,
            lost: 0,
            failure: None,
        })
    }

    /// Asks every helper how it is.
    fn greet(&mut self) -> Result<(), HelperError> {
        let asked = self.remotes.iter_mut().map(Remote::state);
        let states = self.runtime.block_on(join_all(asked));
        let connected = states.iter().filter(|state| state.is_ok()).count();
        let monitor = self.service.monitor();
        monitor.helpers_are(connected, self.remotes.len());
        for (remote, state) in self.remotes.iter().zip(states) {
            let state = state.map_err(|failure| failure.of(remote.number))?;
            fits(remote.number, &state, &self.policy)?;
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
                        tracing::info!(reason = "helper", "all helpers answer: the run goes on");
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
                self.runtime.block_on(sleep(LOOK_INTERVAL));
            }
        }
    }
}

impl Helpers for Elsewhere {
    fn ready(&mut self) -> Result<(), HelperError> {
        match self.failure.take() {
            Some(last) if self.missing == WhenMissing::Stop => return Err(last),
            Some(last) if self.lost >= MAX_LOST => {
                return Err(HelperError::Hopeless {
                    rounds: self.lost,
                    last: Box::new(last),
                });
            }
            Some(_) => {}
            None => self.lost = 0,
        }
        self.wait()
    }

    fn lost(&mut self, error: HelperError) {
        self.service.monitor().helper_failed(&reason(&error));
        self.lost += 1;
        self.failure = Some(error);
    }

    fn unmask(&mut self, round: &MaskedRound) -> Result<Vec<HelperAnswer>, HelperError> {
        let deadline = (Instant::now() + self.timeout).into_std();
        let deadline = Instant::from_std(self.stopping.deadline(deadline));
        // Even of a run that is to stop at once: an answer takes milliseconds.
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

/// The reason of a lost round in a few words, without numbers.
fn reason(error: &HelperError) -> String {
    match error {
        HelperError::Refused { refusal, .. } => refusal.name(),
        HelperError::Missing { .. } => "missing".to_owned(),
        HelperError::Implausible => "implausible".to_owned(),
        _ => "other".to_owned(),
    }
}

/// Whether a helper insists on what the privacy statement counts on.
fn fits(helper: u8, state: &HelperState, policy: &HelperPolicy) -> Result<(), HelperError> {
    let is_same_noise = state.noise_multiplier.to_bits() == policy.noise_multiplier.to_bits()
        && state.coefficients == policy.coefficients;
    let reason = if state.helpers != policy.helpers {
        format!(
            "it is one of {} helpers, and the experiment has {}",
            state.helpers, policy.helpers
        )
    } else if !is_same_noise {
        format!(
            "its noise multiplier is {}{}, and the experiment's statement counts on {}{}: serve the \
             experiment that the fleet was provisioned for",
            state.noise_multiplier,
            combined(&state.coefficients),
            policy.noise_multiplier,
            combined(&policy.coefficients),
        )
    } else if state.rounds_left == 0 {
        "it has answered in as many rounds as it may; `smolfed provision --helper-rounds` sets how \
         many"
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

impl Failure {
    fn of(self, helper: u8) -> HelperError {
        match self {
            Self::Missing(reason) => HelperError::Missing { helper, reason },
            Self::Refused(refusal) => HelperError::Refused { helper, refusal },
        }
    }
}

impl Remote {
    /// How the helper is.
    async fn state(&mut self) -> Result<HelperState, Failure> {
        let deadline = Instant::now() + HELLO_TIMEOUT;
        match self.link.is_some() {
            false => self.connect(deadline).await,
            true => match self.exchange(&Question::Ask, deadline).await {
                Ok(Reply::State(state)) => Ok(state),
                // The process that had this link is gone, perhaps for a new one.
                _ => self.connect(deadline).await,
            },
        }
    }

    /// Asks the question of a round until it is answered or refused, or the time is over.
    async fn ask(
        &mut self,
        round: &MaskedRound,
        deadline: Instant,
    ) -> Result<HelperAnswer, HelperError> {
        let helper = self.number;
        let request = round.request(helper);
        let width = request.terms.width;
        let question = Question::Request(request);
        let mut back_off = BackOff::new();
        loop {
            let failure = match self.answer(&question, deadline).await {
                Ok((answer, found)) if found == width && answer.round == round.number => {
                    return Ok(answer);
                }
                Ok(_) => return Err(HelperError::Unfit { helper }),
                Err(failure @ Failure::Refused(_)) => return Err(failure.of(helper)),
                Err(failure) => failure,
            };
            let pause = back_off.next_pause();
            if Instant::now() + pause >= deadline {
                return Err(failure.of(helper));
            }
            sleep(pause).await;
        }
    }

    async fn answer(
        &mut self,
        question: &Question,
        deadline: Instant,
    ) -> Result<(HelperAnswer, u8), Failure> {
        if self.link.is_none() {
            self.connect(deadline).await?;
        }
        match self.exchange(question, deadline).await? {
            Reply::Answer(answer, width) => Ok((answer, width)),
            Reply::Refusal(refusal) => Err(Failure::Refused(refusal)),
            Reply::Failed => Err(Failure::Missing(
                "it could not record its answer: see its log".to_owned(),
            )),
            Reply::State(_) | Reply::Busy => Err(self.broken(&LinkError::Message)),
        }
    }

    /// A new link, and how the helper is.
    async fn connect(&mut self, deadline: Instant) -> Result<HelperState, Failure> {
        self.link = None;
        let linked = async {
            let stream = self.address.connect(&self.options).await?;
            let mut link = Link::begin(stream, &self.key, ephemeral()?).await?;
            link.send(&Question::Hello(self.process).to_bytes()).await?;
            let reply = link.receive().await?;
            Ok::<_, LinkError>((link, reply))
        };
        let deadline = deadline.min(Instant::now() + HELLO_TIMEOUT);
        let linked = timeout_at(deadline, linked).await;
        let (link, reply) = match linked {
            Ok(Ok(linked)) => linked,
            Ok(Err(error)) => return Err(self.broken(&error)),
            Err(_) => return Err(Failure::Missing(self.at("nothing came from it in time"))),
        };
        match Reply::parse(&reply) {
            Ok(Reply::State(state)) => {
                self.link = Some(link);
                Ok(state)
            }
            Ok(Reply::Busy) => Err(Failure::Missing(
                self.at("another coordinator is connected to it"),
            )),
            _ => Err(self.broken(&LinkError::Message)),
        }
    }

    /// A question over the link, and its reply. A link that fails is given up.
    async fn exchange(&mut self, question: &Question, deadline: Instant) -> Result<Reply, Failure> {
        let Some(mut link) = self.link.take() else {
            return Err(Failure::Missing(self.at("there is no connection")));
        };
        let exchanged = async {
            link.send(&question.to_bytes()).await?;
            let reply = link.receive().await?;
            Reply::parse(&reply).map_err(|_| LinkError::Message)
        };
        let left = deadline.saturating_duration_since(Instant::now());
        match timeout(left, exchanged).await {
            Ok(Ok(reply)) => {
                self.link = Some(link);
                Ok(reply)
            }
            Ok(Err(error)) => Err(self.broken(&error)),
            Err(_) => Err(Failure::Missing(self.at("its answer did not come in time"))),
        }
    }

    fn broken(&mut self, error: &LinkError) -> Failure {
        self.link = None;
        let why = match error {
            LinkError::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                "it closed the connection: it stops, or its file is of another `smolfed provision`"
                    .to_owned()
            }
            LinkError::Io(error) => self.address.why(error),
            other => other.to_string(),
        };
        Failure::Missing(self.at(&why))
    }

    fn at(&self, why: &str) -> String {
        format!("{}: {why}", self.address)
    }
}
