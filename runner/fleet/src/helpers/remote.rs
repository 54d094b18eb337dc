//! One helper as the coordinator sees it: a link, opened when needed, and questions that are
//! repeated (retried) until the deadline.

use tokio::time::{Duration, Instant, sleep, timeout, timeout_at};

use crate::backoff::BackOff;
use crate::helper_link::Process;
use crate::helper_link::link::{Link, LinkError, LinkKey, ephemeral};
use crate::helper_link::message::{HelperState, Question, Reply};
use crate::transport::{Address, Options};
use smolfed_release::masked::{HelperAnswer, HelperError, HelperRefusal, MaskedRound};

/// Time limit for a question without arithmetic.
pub(super) const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// One helper, as the coordinator sees it.
pub(super) struct Remote {
    pub(super) number: u8,
    pub(super) address: Address,
    pub(super) options: Options,
    pub(super) key: LinkKey,
    pub(super) process: Process,
    pub(super) link: Option<Link>,
}

/// Reason why a helper did not answer this time.
pub(super) enum Failure {
    /// It may answer later.
    Missing(String),
    /// It will not answer.
    Refused(HelperRefusal),
}

impl Failure {
    /// Converts to an error of the helper with this number.
    pub(super) fn into_error(self, helper: u8) -> HelperError {
        match self {
            Self::Missing(reason) => HelperError::Missing { helper, reason },
            Self::Refused(refusal) => HelperError::Refused { helper, refusal },
        }
    }
}

impl Remote {
    /// Returns the state of the helper.
    pub(super) async fn state(&mut self) -> Result<HelperState, Failure> {
        let deadline = Instant::now() + HELLO_TIMEOUT;
        match self.link.is_some() {
            false => self.connect(deadline).await,
            true => match self.exchange(&Question::Ask, deadline).await {
                Ok(Reply::State(state)) => Ok(state),
                // The process at the other end is gone, perhaps replaced by a new one.
                _ => self.connect(deadline).await,
            },
        }
    }

    /// Asks the question of a round until it is answered or refused, or until the deadline.
    pub(super) async fn ask(
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
                Err(failure @ Failure::Refused(_)) => return Err(failure.into_error(helper)),
                Err(failure) => failure,
            };
            let pause = back_off.next_pause();
            if Instant::now() + pause >= deadline {
                return Err(failure.into_error(helper));
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

    /// Opens a new link, and returns the state of the helper.
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

    /// Asks a question over the link, and returns its reply. Drops a link that fails.
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
            Err(_) => Err(Failure::Missing(
                self.at("its answer did not arrive in time"),
            )),
        }
    }

    fn broken(&mut self, error: &LinkError) -> Failure {
        self.link = None;
        let why = match error {
            LinkError::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                "it closed the connection: it is stopping, or its file is from another `smolfed \
                 provision`"
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
