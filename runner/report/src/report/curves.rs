//! The report's curves over rounds: quality (accuracy or error, loss) of the model and of its
//! representations, ε, update norms, and clipped updates.

use super::experts;
use super::input::{Audience, ReportInput};
use super::page::{Figure, grid, paragraph, section};
use super::plot::{Band, Plot, Point, Rule, Scale, Series, Span, Tone};
use smolfed_engine::evaluation::assessment::Assessment;
use smolfed_engine::evaluation::quantiles::Quantiles;
use smolfed_engine::evaluation::samples::Evaluation;
use smolfed_engine::round::RoundRecord;
use smolfed_engine::tables::{ClipNormSetting, ClipTime};
use smolfed_release::number::{fixed, significant, upper};
use smolfed_release::provenance::Provenance;

/// A quality metric of the model, and its format.
struct Measure {
    title: &'static str,
    axis: &'static str,
    get: fn(&Evaluation) -> Option<f64>,
    words: fn(f64) -> String,
    /// The metric of a constant prediction, and its description in a caption.
    constant: fn(&Assessment) -> Option<f64>,
    constant_words: &'static str,
}

const ACCURACY: Measure = Measure {
    title: "Accuracy",
    axis: "accuracy, %",
    get: |evaluation| evaluation.accuracy.map(|share| 100.0 * share),
    words: |percent| format!("{} %", fixed(percent, 2)),
    constant: |figures| Some(100.0 * figures.classes.as_ref()?.accuracy_of_majority),
    constant_words: "always the most frequent class",
};
const RMSE: Measure = Measure {
    title: "Root mean squared error",
    axis: "rmse, in units of the target",
    get: |evaluation| evaluation.rmse,
    words: |rmse| significant(rmse, 4),
    constant: |figures| Some(figures.values?.rmse_of_mean),
    constant_words: "always the mean",
};
const LOSS: Measure = Measure {
    title: "Loss",
    axis: "mean loss",
    get: |evaluation| Some(evaluation.loss),
    words: |loss| significant(loss, 4),
    constant: |_| None,
    constant_words: "",
};

/// Returns accuracy (or rmse) and loss over rounds.
pub(super) fn learning(input: &ReportInput) -> String {
    let records = &input.records;
    let mut figures: Vec<String> = [ACCURACY, RMSE]
        .iter()
        .filter_map(|measure| quality(input, measure, None))
        .collect();
    figures.extend(probe_accuracy(records));
    let train = curve(records, |record| record.simulation_only.train_loss);
    let train = Series {
        label: "training".to_owned(),
        end: train.last().map_or(String::new(), |p| (LOSS.words)(p.y)),
        points: train,
        tone: Tone::Purple,
        dashed: true,
    };
    figures.extend(quality(input, &LOSS, Some(train)));
    figures.extend(experts::figures_of(input));
    let content = if figures.is_empty() {
        paragraph(match input.audience {
            Audience::Owner => "The model was never evaluated, and no device trained.",
            Audience::Public => "This page has no figures that epsilon covers.",
        })
    } else {
        grid(&figures)
    };
    section("Learning", &content)
}

/// Returns one metric on test and validation samples. `None` without any value.
fn quality(input: &ReportInput, measure: &Measure, more: Option<Series>) -> Option<String> {
    let records = &input.records;
    let part = |label: &str, tone, dashed, of: fn(&RoundRecord) -> Option<Evaluation>| {
        let points = curve(records, |record| of(record).and_then(|e| (measure.get)(&e)));
        Series {
            label: label.to_owned(),
            end: points
                .last()
                .map_or(String::new(), |p| (measure.words)(p.y)),
            points,
            tone,
            dashed,
        }
    };
    let validation = part("validation", Tone::Orange, true, |record| {
        record.simulation_only.validation
    });
    let of_test = input.test_origin();
    let test = part("test", Tone::Blue, !of_test.is_public(), |record| {
        record.test
    });
    let mut series: Vec<Series> = more.into_iter().collect();
    series.extend([validation, test]);
    series.retain(|series| !series.points.is_empty());
    if series.is_empty() {
        return None;
    }
    let private: Vec<&str> = series
        .iter()
        .rev()
        .filter(|series| series.dashed)
        .map(|series| series.label.as_str())
        .collect();
    let origin = match private.is_empty() {
        true => Provenance::Released,
        false => of_test.max(Provenance::SimulationOnly),
    };
    let mut caption = match private.as_slice() {
        [] => "On samples held out for testing, which no device trains on.".to_owned(),
        names => format!(
            "Dashed: on private samples of devices ({}), so in a simulation only.{}",
            names.join(" and "),
            if names.contains(&"training") {
                " The training loss is the cohort's mean over its last local epoch."
            } else {
                ""
            }
        ),
    };
    let constant = constant(input, measure, &series);
    if constant.is_some() {
        caption.push_str(" Dotted: the model that predicts ");
        caption.push_str(measure.constant_words);
        caption.push('.');
    }
    let figure = Figure {
        title: measure.title,
        caption: &caption,
        origin,
        caption_beside: false,
    };
    Some(figure.with_plot(Plot {
        x_label: "round".to_owned(),
        y_label: measure.axis.to_owned(),
        x_scale: Scale::Whole,
        x_reach: extent(records),
        rules: constant.into_iter().collect(),
        series,
        ..Plot::default()
    }))
}

/// Returns the result of a constant prediction on the samples of one of the curves.
fn constant(input: &ReportInput, measure: &Measure, series: &[Series]) -> Option<Rule> {
    let assessment = input.assessment.as_ref()?;
    let part = assessment.part.name();
    series.iter().find(|series| series.label == part)?;
    let figure = (measure.constant)(&assessment.figures)?;
    Some(Rule {
        label: "constant".to_owned(),
        end: (measure.words)(figure),
        y: figure,
    })
}

/// Returns the accuracy of nearest neighbours and of the probe over rounds.
fn probe_accuracy(records: &[RoundRecord]) -> Option<String> {
    type Get = fn(&RoundRecord) -> Option<f64>;
    let measures: [(&str, Tone, Get); 2] = [
        ("linear probe", Tone::Orange, |record| {
            record.simulation_only.probe_accuracy
        }),
        ("neighbours", Tone::Blue, |record| {
            record.simulation_only.knn_accuracy
        }),
    ];
    let series = measures.into_iter().filter_map(|(label, tone, get)| {
        let points = curve(records, |record| get(record).map(|share| 100.0 * share));
        Some(Series {
            label: label.to_owned(),
            end: format!("{} %", fixed(points.last()?.y, 2)),
            points,
            tone,
            dashed: false,
        })
    });
    let series: Vec<Series> = series.collect();
    if series.is_empty() {
        return None;
    }
    let figure = Figure {
        title: "Accuracy on frozen representations",
        caption: "Accuracy on held-out samples, predicted from representations alone: by the \
                  nearest neighbours among training samples, and by a linear model trained on \
                  these. The encoder itself has seen no label.",
        origin: Provenance::SimulationOnly,
        caption_beside: false,
    };
    Some(figure.with_plot(Plot {
        x_label: "round".to_owned(),
        y_label: "accuracy, %".to_owned(),
        x_scale: Scale::Whole,
        x_reach: extent(records),
        series,
        ..Plot::default()
    }))
}

/// Returns ε over rounds. `None` if it is infinite.
pub(super) fn epsilon(input: &ReportInput) -> Option<String> {
    let points = curve(&input.records, |record| record.epsilon);
    let last = points.last()?;
    let privacy = &input.config.privacy;
    let limit = privacy.epsilon.or(privacy.max_epsilon);
    let statement = input.statements.first();
    let is_bound = statement.is_some_and(|of| of.is_upper_bound() || of.is_bound_of_schedule());
    let spent = match is_bound {
        true => "Total spent by all rounds so far: a bound if the schedule was fixed beforehand.",
        false => "Total spent by all rounds so far.",
    };
    let caption = match limit {
        Some(_) => format!("{spent} A round that would exceed the limit does not start."),
        None => spent.to_owned(),
    };
    let figure = Figure {
        title: "Privacy spent",
        caption: &caption,
        origin: Provenance::Public,
        caption_beside: false,
    };
    Some(
        figure.with_plot(Plot {
            x_label: "round".to_owned(),
            y_label: "epsilon".to_owned(),
            x_scale: Scale::Whole,
            x_reach: extent(&input.records),
            y_reach: vec![0.0],
            rules: limit
                .map(|limit| Rule {
                    label: format!("limit {}", significant(limit, 4)),
                    end: String::new(),
                    y: limit,
                })
                .into_iter()
                .collect(),
            series: vec![Series {
                label: format!("spent {}", upper(last.y, 4)),
                points,
                ..Series::default()
            }],
            ..Plot::default()
        }),
    )
}

/// Returns update norms and the share of clipped steps over rounds.
pub(super) fn updates(input: &ReportInput) -> Vec<String> {
    [norms(input), clipped(input)]
        .into_iter()
        .flatten()
        .collect()
}

fn norms(input: &ReportInput) -> Option<String> {
    let points = curve(&input.records, |record| {
        record.simulation_only.update_norm.map(|norm| norm.median)
    });
    let last = points.last()?;
    let band = |low: fn(&Quantiles) -> f64, high: fn(&Quantiles) -> f64| Band {
        spans: input
            .records
            .iter()
            .filter_map(|record| {
                let norm = record.simulation_only.update_norm?;
                Some(Span {
                    x: number(record),
                    low: low(&norm),
                    high: high(&norm),
                })
            })
            .collect(),
        tone: Tone::Blue,
    };
    let figure = Figure {
        title: "Norms of the updates",
        caption: "L2 norms before the last clipping: the median of the cohort, the middle 80 % \
                  (dark band) and the whole range (light band).",
        origin: Provenance::SimulationOnly,
        caption_beside: false,
    };
    let constant = input
        .config
        .privacy
        .clip_norm
        .and_then(ClipNormSetting::fixed);
    let of_rounds = curve(&input.records, |record| record.clip_norm.map(f64::from));
    let adaptive = of_rounds.last().map(|last| Series {
        label: "clip norm".to_owned(),
        end: significant(last.y, 3),
        points: of_rounds.clone(),
        tone: Tone::Green,
        ..Series::default()
    });
    Some(
        figure.with_plot(Plot {
            x_label: "round".to_owned(),
            y_label: "L2 norm".to_owned(),
            x_scale: Scale::Whole,
            x_reach: extent(&input.records),
            y_reach: vec![0.0],
            bands: vec![band(|q| q.min, |q| q.max), band(|q| q.p10, |q| q.p90)],
            rules: constant
                .map(|clip_norm| Rule {
                    label: "clip norm".to_owned(),
                    end: significant(clip_norm, 3),
                    y: clip_norm,
                })
                .into_iter()
                .collect(),
            series: [Series {
                label: "median".to_owned(),
                end: significant(last.y, 3),
                points,
                ..Series::default()
            }]
            .into_iter()
            .chain(adaptive)
            .collect(),
            ..Plot::default()
        }),
    )
}

fn clipped(input: &ReportInput) -> Option<String> {
    input.config.privacy.clip_norm?;
    let points = curve(&input.records, |record| {
        Some(100.0 * record.simulation_only.clipped_share)
    });
    let last = points.last()?;
    let (axis, caption) = match input.config.train.clip {
        ClipTime::EveryStep => (
            "clipped local steps, %",
            "Share of local steps that left the ball around the global model and were projected.",
        ),
        ClipTime::Final => (
            "clipped updates, %",
            "Share of the cohort's updates whose norm was above the clip norm.",
        ),
    };
    let figure = Figure {
        title: "Clipping",
        caption,
        origin: Provenance::SimulationOnly,
        caption_beside: false,
    };
    Some(figure.with_plot(Plot {
        x_label: "round".to_owned(),
        y_label: axis.to_owned(),
        x_scale: Scale::Whole,
        x_reach: extent(&input.records),
        y_reach: vec![0.0],
        series: vec![Series {
            label: String::new(),
            end: format!("{} %", fixed(last.y, 1)),
            points,
            ..Series::default()
        }],
        ..Plot::default()
    }))
}

/// Returns the first and last round: all curves share their horizontal axis.
pub(super) fn extent(records: &[RoundRecord]) -> Vec<f64> {
    [records.first(), records.last()]
        .into_iter()
        .flatten()
        .map(number)
        .collect()
}

/// Returns the number of a round for readers, from 1.
fn number(record: &RoundRecord) -> f64 {
    number_of(record.round)
}

/// Returns the number for readers of a round counted from 0.
pub(super) fn number_of(round: u32) -> f64 {
    f64::from(round) + 1.0
}

/// Returns the values of the rounds that have one.
pub(super) fn curve(
    records: &[RoundRecord],
    get: impl Fn(&RoundRecord) -> Option<f64>,
) -> Vec<Point> {
    records
        .iter()
        .filter_map(|record| Some(Point::new(number(record), get(record)?)))
        .collect()
}
