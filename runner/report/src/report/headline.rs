//! The top of the report: the experiment and its method, the figure that judges its quality, the
//! privacy spent, and the privacy statement.

use super::html::escape;
use super::input::{Audience, ReportInput};
use super::page::{BADGE, badge, paragraph, prose, section};
use smolfed_accounting::TrustModel;
use smolfed_engine::evaluation::devices::{DeviceReport, Which};
use smolfed_engine::method::MethodName;
use smolfed_engine::round::RoundRecord;
use smolfed_engine::tables::CohortSampling;
use smolfed_release::number::{counted, fixed, grouped, significant, upper};
use smolfed_release::provenance::Provenance;
use smolfed_release::statement::{PrivacyStatement, Subject};

/// Returns name, method, the main figures, and the privacy statement in words.
pub(super) fn headline(input: &ReportInput) -> String {
    let config = &input.config;
    let mut text = format!(
        "<header>\n<p class=\"kicker\">smolfed report</p>\n<h1>{}</h1>\n\
         <p class=\"lead\">{}</p>\n</header>\n",
        escape(&config.name),
        escape(&method(input))
    );
    let done = input.records.len();
    if done < config.rounds as usize {
        text.push_str(&format!(
            "<p class=\"notice\">This run stopped after {done} of {} rounds. \
             <code>smolfed run --resume</code> with this directory continues it, unless the next \
             round would exceed its limit on ε.</p>\n",
            config.rounds
        ));
    }
    let arithmetic = config.simulation.arithmetic;
    if let Some(caution) = arithmetic.caution() {
        text.push_str(&format!(
            "<p class=\"notice\">Devices trained in <code>{}</code> arithmetic: {caution}. The \
             results are those of <code>f32</code> up to rounding, and the privacy statement does \
             not depend on it.</p>\n",
            arithmetic.name()
        ));
    }
    let tiles = [quality(input), epsilon(input), cohort(input)];
    text.push_str(&format!(
        "<div class=\"tiles\">\n{}</div>\n",
        tiles.concat()
    ));
    let words = match input.statements.first() {
        // The first on each subject. The others are in the section about spent privacy.
        Some(first) => {
            let of_matrices = input.statements.iter().find(|s| s.subject != first.subject);
            let statements = [Some(first), of_matrices].into_iter().flatten();
            let words = statements.map(|statement| paragraph(&statement.in_words()));
            words.collect()
        }
        None => {
            paragraph("There is no privacy statement: it is written when the run ends or stops.")
        }
    };
    let is_sound = input.statements.first().is_some_and(is_guarantee);
    let content = format!(
        "<div class=\"card statement{}\">{words}</div>\n",
        if is_sound { "" } else { " open" },
    );
    text + &section("The privacy statement", &content)
}

fn method(input: &ReportInput) -> String {
    let config = &input.config;
    let mut words = config.method.title().to_owned();
    let factor = config.server.smoothing_factor;
    if config.method == MethodName::DpFedLs {
        words.push_str(", factor ");
        words.push_str(&significant(factor, 4));
    } else if factor > 0.0 {
        words.push_str(", with Laplacian smoothing, factor ");
        words.push_str(&significant(factor, 4));
    }
    if let Some(denoiser) = config.server.denoiser.words() {
        words.push_str(", with ");
        words.push_str(denoiser);
    }
    if config.privacy.trust == TrustModel::Local {
        words.push_str(", each device adding its own noise");
    }
    if let TrustModel::Distributed(_) = config.privacy.trust {
        words.push_str(", each update masked");
    }
    words
}

/// Returns a figure with its name and details. `more` is markup.
fn tile(name: &str, value: &str, more: &str) -> String {
    format!(
        "<div class=\"card tile\"><span class=\"name\">{}</span>\
         <span class=\"value\">{}</span><span class=\"more\">{more}</span></div>\n",
        escape(name),
        escape(value)
    )
}

/// Returns the quality of representations, for an encoder without an accuracy.
fn encoder_quality(input: &ReportInput) -> String {
    let newest_first = input.records.iter().rev();
    let figure = |record: &RoundRecord| Some((record.round, record.simulation_only.knn_accuracy?));
    match newest_first.filter_map(figure).next() {
        Some((round, accuracy)) => tile(
            "Accuracy of the nearest neighbours",
            &format!("{} %", fixed(100.0 * accuracy, 2)),
            &format!("after round {} {BADGE}", round + 1),
        ),
        None => tile("Quality", "–", "the model was not evaluated"),
    }
}

/// Returns the figure that judges the method, from the models that devices would use.
fn quality(input: &ReportInput) -> String {
    let of_devices = input.devices.as_ref();
    match of_devices.and_then(own_models) {
        Some(tile) => tile,
        None => shared_quality(input),
    }
}

/// Returns the models of the devices, if the method has personal models.
fn own_models(report: &DeviceReport) -> Option<String> {
    let which = [Which::Tuned, Which::Own].into_iter();
    let (which, spread) = which
        .filter_map(|which| Some((which, report.spread(which)?)))
        .next()?;
    let words = |figure: f64| match report.is_error {
        true => significant(figure, 4),
        false => format!("{} %", fixed(100.0 * figure, 2)),
    };
    let others = [Which::Shared, Which::Alone]
        .into_iter()
        .filter_map(|other| {
            let mean = report.spread(other)?.mean;
            Some(format!("{} {}", report.words(other), words(mean)))
        });
    let others: Vec<String> = others.collect();
    let beside = match others.as_slice() {
        [] => String::new(),
        others => format!("; {}", others.join(", ")),
    };
    let name = match report.is_error {
        true => "RMSE on a device",
        false => "Accuracy on a device",
    };
    let more = format!(
        "{}, mean over {} devices{} {BADGE}",
        report.words(which),
        grouped(report.devices.len() as u64),
        escape(&beside)
    );
    Some(tile(name, &words(spread.mean), &more))
}

/// Returns the quality of the shared model.
fn shared_quality(input: &ReportInput) -> String {
    let newest_first = || input.records.iter().rev();
    let test = newest_first().find_map(|record| Some((record, record.test?)));
    let validation =
        newest_first().find_map(|record| Some((record.round, record.simulation_only.validation?)));
    let (part, note, round, evaluation) = match (test, validation) {
        (Some((record, test)), _) => ("Test", badge(input.test_origin()), record.round, test),
        (None, Some((round, validation))) => ("Validation", BADGE, round, validation),
        (None, None) => return encoder_quality(input),
    };
    let (name, value) = match (evaluation.accuracy, evaluation.rmse) {
        (Some(accuracy), _) => ("accuracy", format!("{} %", fixed(100.0 * accuracy, 2))),
        (None, Some(rmse)) => ("rmse", significant(rmse, 4)),
        (None, None) => ("loss", significant(evaluation.loss, 4)),
    };
    let loss = significant(evaluation.loss, 4);
    let rounds = grouped(u64::from(round) + 1);
    let r2 = r2(input, &part.to_lowercase(), round);
    let r2 = r2.map_or(String::new(), |r2| format!("R² {}, ", significant(r2, 4)));
    let more = format!("after round {rounds}, {r2}loss {loss} {note}");
    tile(&format!("{part} {name}"), &value, more.trim_end())
}

/// Returns R² of the final model on held-out samples of this part, if `round` is the last one.
fn r2(input: &ReportInput, part: &str, round: u32) -> Option<f64> {
    let assessment = input.assessment.as_ref()?;
    let is_final = input.records.last()?.round == round && assessment.part.name() == part;
    assessment.figures.values?.r2.filter(|_| is_final)
}

fn epsilon(input: &ReportInput) -> String {
    let name = "Privacy spent";
    // The statement below includes infinite ε. The card shows a finite one if there is any.
    let finite = input.statements.iter().find(|s| s.epsilon.is_finite());
    let Some(statement) = finite.or(input.statements.first()) else {
        let last = input.records.last();
        let value = last.map_or("–".to_owned(), |record| {
            format!("ε {}", upper(record.epsilon.unwrap_or(f64::INFINITY), 4))
        });
        return tile(name, &value, "so far; the statement is not written yet");
    };
    let delta = significant(statement.delta.get(), 3);
    if statement.epsilon.is_infinite() {
        return tile(
            name,
            "ε ∞",
            &format!("at δ = {delta}: no privacy guarantee at all"),
        );
    }
    let planned = statement
        .epsilon_planned
        .filter(|_| statement.is_bound_of_schedule());
    let planned = planned.map_or(String::new(), |planned| {
        format!(", {} for the whole plan", upper(planned, 4))
    });
    let (worth, conditions) = (statement.worth(), statement.conditions_in_brief());
    let worth = prose(&format!("{worth}{conditions}{planned}"));
    let of_matrices = statement.subject == Subject::CorrelationMatrices;
    let (name, unprotected) = match (of_matrices, input.statements.first()) {
        (true, Some(first)) if first.epsilon.is_infinite() => {
            ("Privacy of the matrices", "; the encoder is not protected")
        }
        (true, _) => ("Privacy of the matrices", ""),
        (false, _) => (name, ""),
    };
    let more = format!(
        "at δ = {delta} for one {}: {worth} (<code>{}</code>, {}){unprotected}",
        statement.protected(),
        escape(statement.accountant.name()),
        statement.adjacency.name()
    );
    tile(name, &format!("ε {}", upper(statement.epsilon, 4)), &more)
}

fn cohort(input: &ReportInput) -> String {
    let config = &input.config;
    let scheme = match config.cohort.sampling {
        CohortSampling::Uniform => "a fixed number, drawn at random",
        CohortSampling::Poisson => "each one by chance (Poisson)",
        CohortSampling::Full => "all of them in every round",
        CohortSampling::Arrival => "those that are available",
        CohortSampling::Buffered => "those whose updates arrive in a window of time",
        CohortSampling::Rotation => "all of them in turn",
        CohortSampling::BlockCyclic => "in turn, each one by chance (block-cyclic)",
    };
    let statement = input.statements.first();
    let is_public = input.audience == Audience::Public;
    let of_devices = Provenance::of_device_count(&input.statements);
    let devices = statement.map(|statement| statement.devices);
    let devices = devices.filter(|_| !is_public || of_devices.is_public());
    let origin = input.size_origin();
    let drawn = input.records.iter().map(|record| record.cohort as u64);
    let is_hidden = is_public && !origin.is_public();
    let size = match (is_hidden, config.cohort.sampling) {
        (true, _) if devices.is_none() => "–".to_owned(),
        (true, _) => expected(statement),
        (_, CohortSampling::Poisson | CohortSampling::BlockCyclic) => {
            let mean = drawn.sum::<u64>() as f64 / input.records.len().max(1) as f64;
            fixed(mean, 1)
        }
        _ => grouped(drawn.max().unwrap_or(0)),
    };
    let value = match devices {
        Some(devices) => format!("{size} of {}", grouped(u64::from(devices))),
        None => size,
    };
    let rounds = counted(input.records.len() as u64, "round");
    let more = match is_hidden {
        true => format!("expected; {scheme}; {rounds}"),
        false if is_public => format!("{scheme}; {rounds}"),
        false => {
            let seconds: f64 = input.records.iter().map(|record| record.seconds).sum();
            let seconds = significant(seconds, 3);
            let origin = origin.max(of_devices).max(Provenance::SimulationOnly);
            format!("{scheme}; {rounds} in {seconds} s {}", badge(origin))
        }
    };
    tile("Devices a round", &value, more.trim_end())
}

/// Returns the expected size of a cohort, which is public.
fn expected(statement: Option<&PrivacyStatement>) -> String {
    let size = statement.and_then(|statement| {
        let parts = f64::from(statement.separation.unwrap_or(1));
        Some(statement.sampling_rate? * f64::from(statement.devices) / parts)
    });
    size.map_or("–".to_owned(), |size| fixed(size, 1))
}

/// Returns whether an ε is proved and finite.
fn is_guarantee(statement: &PrivacyStatement) -> bool {
    statement.is_upper_bound() && statement.epsilon.is_finite()
}
