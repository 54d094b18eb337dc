//! The options for the questions that devices answer (kinds, maximum number of answers, minimum
//! noise), in `smolfed provision` and for a device that runs here.

use smolfed_core::NoiseMultiplier;
use smolfed_core::question::Kinds;
use smolfed_core::session::QuestionPolicy;

use super::noise::device_noise;
use crate::cli::CliError;
use smolfed_engine::experiment::Experiment;
use smolfed_engine::question::AskedQuestion;
use smolfed_engine::tables::question::QuestionKind;

/// Questions that devices answer.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::cli) struct AnswerArgs {
    /// Answer questions of these kinds, for example evaluate,count.
    ///
    /// The kinds are evaluate, confusion, histogram, moments, presence, count, or all. Without the
    /// flag, `smolfed provision` allows none, and `smolfed device` follows its record.
    #[arg(long, value_name = "KIND,..", value_delimiter = ',', value_parser = kinds)]
    answers: Vec<Kinds>,
    /// Allow at most N answers from a device in its lifetime.
    ///
    /// By default, `smolfed provision` allows as many as the experiment asks for. `smolfed device`
    /// requires this option with --answers.
    #[arg(
        long,
        value_name = "N",
        requires = "answers",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    max_answers: Option<u32>,
    /// Require a noise multiplier of at least Z for a device's own noise on an answer.
    ///
    /// Under local trust, the default is the lowest noise of the experiment's questions for
    /// `smolfed provision`, and the minimum for updates for `smolfed device`. If the coordinator
    /// adds the noise, there is no minimum by default.
    #[arg(long, value_name = "Z", requires = "answers", value_parser = noise)]
    min_answer_noise: Option<NoiseMultiplier>,
}

/// All kinds, with their sets.
const KINDS: [(QuestionKind, Kinds); 6] = [
    (QuestionKind::Evaluate, Kinds::EVALUATE),
    (QuestionKind::Confusion, Kinds::CONFUSION),
    (QuestionKind::Histogram, Kinds::HISTOGRAM),
    (QuestionKind::Moments, Kinds::MOMENTS),
    (QuestionKind::Presence, Kinds::PRESENCE),
    (QuestionKind::Count, Kinds::COUNT),
];

fn kinds(text: &str) -> Result<Kinds, String> {
    let text = text.trim();
    if text == "all" {
        return Ok(Kinds::ALL);
    }
    let found = KINDS.iter().find(|(kind, _)| kind.name() == text);
    let names = || KINDS.map(|(kind, _)| kind.name()).join(", ");
    found
        .map(|(_, kinds)| *kinds)
        .ok_or_else(|| format!("expected {} or all", names()))
}

fn noise(text: &str) -> Result<NoiseMultiplier, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    NoiseMultiplier::new(number).map_err(|error| error.to_string())
}

impl AnswerArgs {
    /// The policy of a device that runs here, or `None` for the policy of its record.
    pub(in crate::cli) fn of_process(&self) -> Result<Option<QuestionPolicy>, CliError> {
        match (self.kinds(), self.max_answers) {
            (Kinds::NONE, _) => Ok(None),
            (_, None) => Err(CliError::Usage(
                "`--answers`: say how many with `--max-answers N`".to_owned(),
            )),
            (kinds, Some(max_answers)) => Ok(Some(QuestionPolicy {
                kinds,
                max_answers,
                min_noise_multiplier: self.min_answer_noise.unwrap_or(NoiseMultiplier::NONE),
            })),
        }
    }

    /// The policy of devices of an experiment.
    pub(super) fn of_experiment(
        &self,
        experiment: &Experiment,
    ) -> Result<QuestionPolicy, CliError> {
        let kinds = self.kinds();
        if kinds == Kinds::NONE {
            return Ok(QuestionPolicy::NONE);
        }
        let allowed = |asked: &&AskedQuestion| kinds.has(&asked.question);
        let asked = experiment.questions().iter().filter(allowed);
        let rounds = experiment.config().rounds;
        let count = |asked: &AskedQuestion| asked.side.schedule.count(rounds);
        let count = asked.clone().map(count).fold(0, u32::saturating_add);
        let max_answers = self.max_answers.unwrap_or(count);
        if max_answers == 0 {
            return Err(CliError::Usage(
                "`--answers`: the experiment asks no such question. Add `[[questions]]`, or say \
                 how many answers devices may give with `--max-answers N`"
                    .to_owned(),
            ));
        }
        let least = match experiment.privacy().mechanism.is_local() {
            true => asked
                .map(|asked| device_noise(&asked.side.event.mechanism))
                .reduce(|least, other| if other < least { other } else { least }),
            false => None,
        };
        let least = self.min_answer_noise.or(least);
        Ok(QuestionPolicy {
            kinds,
            max_answers,
            min_noise_multiplier: least.unwrap_or(NoiseMultiplier::NONE),
        })
    }

    fn kinds(&self) -> Kinds {
        self.answers
            .iter()
            .fold(Kinds::NONE, |all, of| all.with(*of))
    }
}
