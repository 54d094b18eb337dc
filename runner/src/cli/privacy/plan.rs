//! `smolfed plan`: the noise, the number of rounds or the cohort size for a target ε.

use std::io::{IsTerminal, Write};

use serde_json::{Value, json};

use super::account;
use super::correlated::Side;
use super::document::{Document, figure, milliseconds, without_a_figure};
use super::mechanism::{MechanismArgs, ParsedFlags};
use crate::cli::CliError;
use crate::cli::text::aligned;
use smolfed_accounting::accountant::{Accountant, Estimate};
use smolfed_accounting::calibrate::{CalibrationError, CalibrationProblem};
use smolfed_accounting::comparison::{Answer, Comparison};
use smolfed_accounting::event::{PrivacyEvent, TrustModel};
use smolfed_accounting::params::Epsilon;
use smolfed_release::number::significant;

/// Find the noise, the number of rounds or the cohort size for a target epsilon.
///
/// Give two of the three, and the command computes the third: --noise-multiplier (or --noise-std),
/// --rounds, and --cohort (or --sampling-rate). If no cohort is drawn (full or unsampled), give one
/// of the first two. For correlated noise, the command computes only the noise. The epsilon of the
/// result never exceeds the target.
#[derive(Debug, clap::Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  smolfed plan --epsilon 2 --devices 2000 --sampling poisson --sampling-rate 0.05 --rounds 200
  smolfed plan --epsilon 2 --devices 2000 --sampling poisson --cohort 100 --noise-multiplier 1
  smolfed plan --epsilon 6 --devices 1000 --sampling uniform --rounds 30 --noise-multiplier 2
  smolfed plan --epsilon 0.5 --devices 1000 --sampling poisson --cohort 100 --rounds 10 --answers
  smolfed plan --epsilon 2 --mechanism correlated --rounds 2052 --separation 342 \\
      --participations 6 --delta 1e-6 --svg errors.svg"
)]
pub(in crate::cli) struct Args {
    /// Set the target epsilon, which the epsilon of the result never exceeds.
    ///
    /// Without a target, only correlated noise can be planned, at noise multiplier 1.
    #[arg(long, value_name = "E", required_unless_present = "mechanism")]
    epsilon: Option<f64>,
    /// Include the standard error that the noise causes in answers to questions.
    #[arg(long, conflicts_with = "mechanism")]
    answers: bool,
    #[command(flatten)]
    mechanism: MechanismArgs,
}

/// A setting found for the target.
struct Found {
    /// The number, for machines.
    value: f64,
    /// The number as text, rounded towards more privacy.
    text: String,
    /// The event with this setting.
    event: PrivacyEvent,
    estimate: Estimate,
}

/// What is searched for.
#[derive(Clone, Copy)]
enum Unknown {
    Noise,
    Rounds,
    Cohort,
}

impl Unknown {
    /// The one that is not given.
    fn of(parsed: &ParsedFlags) -> Result<Self, CliError> {
        match (parsed.has_noise, parsed.has_rounds, parsed.has_cohort) {
            (false, true, true) => Ok(Self::Noise),
            (true, false, true) => Ok(Self::Rounds),
            (true, true, false) => Ok(Self::Cohort),
            (true, true, true) => Err(CliError::Usage(
                "nothing is left to compute: leave out --noise-multiplier, --rounds or --cohort, \
                 or use `smolfed account`"
                    .to_owned(),
            )),
            _ => Err(CliError::Usage(
                "only one quantity can be computed: give two of noise (--noise-multiplier), \
                 rounds (--rounds) and cohort (--cohort)"
                    .to_owned(),
            )),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Noise => "noise multiplier",
            Self::Rounds => "rounds",
            Self::Cohort => "cohort",
        }
    }

    fn search(self, problem: &CalibrationProblem<'_>) -> Result<Found, CalibrationError> {
        let event = problem.event;
        Ok(match self {
            Self::Noise => {
                let found = problem.noise_multiplier()?;
                Found {
                    value: found.value.get(),
                    text: format!("{:.6}", (found.value.get() * 1e6).ceil() / 1e6),
                    event: event.with_noise_multiplier(found.value),
                    estimate: found.estimate,
                }
            }
            Self::Rounds => {
                let found = problem.rounds()?;
                Found {
                    value: found.value as f64,
                    text: found.value.to_string(),
                    event: event.with_count(found.value),
                    estimate: found.estimate,
                }
            }
            Self::Cohort => {
                let found = problem.cohort()?;
                let rate = found.value.sampling_rate().unwrap_or(1.0);
                let cohort = (rate * f64::from(found.value.device_count())).round();
                Found {
                    value: cohort,
                    text: cohort.to_string(),
                    event: PrivacyEvent {
                        sampling: found.value,
                        ..event
                    },
                    estimate: found.estimate,
                }
            }
        })
    }
}

/// Runs the command.
pub(in crate::cli) fn run(
    args: &Args,
    out: &mut (impl Write + IsTerminal),
) -> Result<(), CliError> {
    let flags = &args.mechanism;
    let mut parsed = flags.parse()?;
    let setting = parsed.correlated.take();
    let (epsilon, setting) = match (args.epsilon, setting) {
        (Some(epsilon), setting) => (epsilon, setting),
        (None, Some(setting)) => return account::correlated(flags, &parsed, setting, out),
        (None, None) => {
            let text = "--epsilon is missing: give the target epsilon".to_owned();
            return Err(CliError::Usage(text));
        }
    };
    let target = Epsilon::new(epsilon);
    let target = target.map_err(|error| CliError::Usage(format!("--epsilon: {error}")))?;
    let unknown = Unknown::of(&parsed)?;
    let comparison = Comparison::of(&flags.accountants()?, |accountant: Accountant| {
        unknown.search(&CalibrationProblem {
            accountant,
            event: parsed.event,
            spent: &[],
            target,
            delta: parsed.delta,
        })
    });
    let Some(best) = best(&comparison) else {
        // That the target is out of reach says more than that an accountant is for other events.
        let is_out_of_reach =
            |error: &CalibrationError| matches!(error, CalibrationError::OutOfReach { .. });
        let reason = comparison
            .refused()
            .find(|(_, error)| is_out_of_reach(error))
            .or_else(|| comparison.refused().next());
        let reason = reason.map_or(String::new(), |(_, error)| error.to_string());
        return Err(CliError::Usage(reason));
    };
    // The cost of the tightest setting, by the accountant that found it.
    let cost = Comparison::of_events(&[best.estimate.accountant], &[best.event], parsed.delta);
    let mut document = Document::new(&cost, &[best.event], parsed.clip_norm)?;
    let noise = best.event.mechanism.noise_multiplier();
    let side = setting.map(|setting| setting.side(&best.event, noise, parsed.delta));
    let side = side.transpose()?;
    if let Some(side) = &side {
        document = document.with(side.notes.clone(), vec![side.plot()]);
    }
    document.draw(flags.svg.as_deref())?;
    let error = args.answers.then(|| standard_error(&best.event));
    if flags.json {
        let mut value = document.to_json();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("target_epsilon".to_owned(), json!(epsilon));
            fields.insert("searched".to_owned(), json!(unknown.name()));
            fields.insert("found".to_owned(), json!(best.value));
            let answers: Vec<Value> = comparison.answers.iter().map(answer_json).collect();
            fields.insert("accountants".to_owned(), json!(answers));
            if let Some(side) = &side {
                side.insert(fields);
            }
            if let Some(error) = error {
                fields.insert("standard_error".to_owned(), json!(error));
            }
        }
        writeln!(out, "{value}")?;
    } else {
        let above = side.as_ref().map_or(String::new(), Side::table);
        let mut table = above + &setting_table(unknown, &comparison);
        table += &error.map_or(String::new(), error_in_words);
        write!(out, "{}", document.to_text(&table, out.is_terminal()))?;
    }
    Ok(())
}

/// The standard error by noise of a mean or a share of one half, from the answers of one cohort.
fn standard_error(event: &PrivacyEvent) -> f64 {
    let cohort = event.sampling.expected_cohort();
    // Each device has the whole noise under local trust.
    let parties = match event.trust {
        TrustModel::Local => cohort,
        TrustModel::Central | TrustModel::Distributed(_) => 1.0,
    };
    event.mechanism.noise_multiplier().get() * parties.sqrt() / cohort
}

fn error_in_words(error: f64) -> String {
    format!(
        "\nNoise gives each answer a standard error of {}, for a mean or a share of one half over \
         a cohort whose devices all answer.",
        significant(error, 3)
    )
}

/// The first that is proved: the accountants are in the order of their tightness.
fn best(comparison: &Comparison<Found, CalibrationError>) -> Option<&Found> {
    let all = || comparison.found().map(|(_, found)| found);
    let proved = all().find(|found| found.estimate.is_upper_bound());
    proved.or_else(|| all().next())
}

fn setting_table(unknown: Unknown, comparison: &Comparison<Found, CalibrationError>) -> String {
    let head = [
        "accountant",
        unknown.name(),
        "epsilon",
        "what it is",
        "time",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (answer, found) in comparison.found() {
        rows.push(vec![
            answer.accountant.to_string(),
            found.text.clone(),
            figure(found.estimate.epsilon),
            found.estimate.kind.words().to_owned(),
            milliseconds(answer.elapsed),
        ]);
    }
    aligned(&rows) + &without_a_figure(comparison)
}

fn answer_json(answer: &Answer<Found, CalibrationError>) -> Value {
    let name = answer.accountant.name();
    match &answer.result {
        Ok(found) => json!({
            "accountant": name,
            "found": found.value,
            "epsilon": Some(found.estimate.epsilon).filter(|epsilon| epsilon.is_finite()),
            "kind": found.estimate.kind,
            "is_upper_bound": found.estimate.is_upper_bound(),
            "seconds": answer.elapsed.as_secs_f64(),
        }),
        Err(error) => json!({ "accountant": name, "refused": error.to_string() }),
    }
}
