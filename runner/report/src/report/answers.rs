//! The report's section "Answers" to the questions of a run: curves over rounds, the newest
//! figures, and pictures of tables and shares.

use std::fmt::Write;

use super::class_table::{ClassCell, MAX_CLASSES, MAX_CONFUSIONS, class_table};
use super::curves::{extent, number_of};
use super::html::escape;
use super::input::ReportInput;
use super::page::{Column, Figure, grid, paragraph, section, table};
use super::plot::{Band, Plot, Point, Scale, Series, Span, Tone};
use crate::answers::{
    AnswerOfRound, all, answered_in_words, confidence_in_words, has_quartiles, interval_in_words,
    is_share, latest, leading,
};
use smolfed_engine::question::{Answer, Estimate};
use smolfed_engine::round::origin_of;
use smolfed_engine::tables::question::QuestionKind;
use smolfed_release::number::{fixed, grouped, significant};
use smolfed_release::provenance::Provenance;

/// Maximum number of bars in one picture.
const MAX_BARS: usize = 64;

/// The meaning of an estimate and of its interval.
const MEANING: &str = "Devices answered these questions about their own samples, and each answer \
    was released with noise. An estimate includes this noise. Its interval covers the released \
    noise and the spread over devices, and each interval holds individually with the stated \
    confidence, not all of them jointly. Every device has the same weight.";

/// Returns the section, which is empty for a run without answers.
pub(super) fn section_of(input: &ReportInput) -> String {
    let newest = latest(&input.records);
    if newest.is_empty() {
        return String::new();
    }
    let page = AnswerPage { input };
    let mut figures: Vec<String> = newest
        .iter()
        .flat_map(|found| page.curves(found.answer))
        .collect();
    figures.extend(newest.iter().filter_map(|found| page.picture(found)));
    let content = paragraph(MEANING) + &page.overview(&newest) + &grid(&figures);
    section("Answers", &content)
}

/// Shared data of the section's figures.
struct AnswerPage<'a> {
    input: &'a ReportInput,
}

impl AnswerPage<'_> {
    fn origin(&self) -> Provenance {
        let with_any = self.input.records.iter().filter(|x| !x.answers.is_empty());
        let origins = with_any.map(|record| origin_of("answers", &record.origin));
        origins.max().unwrap_or(Provenance::Released)
    }

    fn figure(&self, title: &str, caption: &str, content: &str) -> String {
        let figure = Figure {
            title,
            caption,
            origin: self.origin(),
            caption_beside: false,
        };
        figure.around(content)
    }

    /// Returns a table of the newest answer to each question, by its leading figures.
    fn overview(&self, newest: &[AnswerOfRound<'_>]) -> String {
        let rows = newest.iter().flat_map(|found| {
            leading(found.answer).into_iter().map(|estimate| {
                vec![
                    found.answer.name.clone(),
                    estimate.name.clone(),
                    value_in_words(found.answer, estimate),
                    ends_in_words(found.answer, estimate),
                    confidence_in_words(found.answer.confidence),
                    devices_in_words(found.answer),
                    grouped(u64::from(found.round) + 1),
                ]
            })
        });
        let head = [
            ("question", Column::Words),
            ("figure", Column::Words),
            ("estimate", Column::Number),
            ("interval", Column::Words),
            ("confidence", Column::Number),
            ("devices", Column::Number),
            ("after round", Column::Number),
        ];
        let caption = "The newest answer to each question. Devices are those that answered, as an \
                       estimate with its interval. Of several shares, the largest is shown.";
        let content = table("figures", &head, &rows.collect::<Vec<_>>());
        self.figure("The newest answers", caption, &content)
    }

    /// Returns a curve of each leading figure, if the question was asked more than once.
    fn curves(&self, answer: &Answer) -> Vec<String> {
        let is_of_shares = matches!(
            answer.kind,
            QuestionKind::Histogram | QuestionKind::Presence
        );
        // The largest share may differ in each round.
        if is_of_shares && !has_quartiles(answer) {
            return Vec::new();
        }
        let figures = leading(answer).into_iter().zip(0..);
        let curves = figures.filter_map(|(estimate, index)| self.curve(answer, estimate, index));
        curves.collect()
    }

    /// Returns one figure over rounds, with its interval as a band.
    fn curve(&self, newest: &Answer, estimate: &Estimate, index: usize) -> Option<String> {
        let percent = is_share(newest, estimate);
        let scaled = |x: f64| if percent { 100.0 * x } else { x };
        let found: Vec<(f64, &Estimate)> = all(&self.input.records)
            .filter(|of| of.answer.question == newest.question)
            .filter_map(|of| Some((number_of(of.round), of.answer.estimates.get(index)?)))
            .collect();
        let points = found.iter().filter_map(|(x, of)| {
            let y = scaled(of.value?);
            Some(Point::new(*x, y))
        });
        let spans = found.iter().filter_map(|(x, of)| {
            let [low, high] = of.interval;
            let (low, high) = (scaled(low?), scaled(high?));
            Some(Span { x: *x, low, high })
        });
        let (points, tone) = (points.collect::<Vec<_>>(), Tone::nth(index));
        if points.len() < 2 {
            return None;
        }
        let confidence = confidence_in_words(newest.confidence);
        let caption = format!(
            "Estimates under noise, with their intervals at a confidence of {confidence} as a \
             band."
        );
        let title = format!("{}: {}", newest.name, estimate.name);
        let figure = Figure {
            title: &title,
            caption: &caption,
            origin: self.origin(),
            caption_beside: false,
        };
        let unit = if percent { ", %" } else { "" };
        Some(figure.with_plot(Plot {
            x_label: "round".to_owned(),
            y_label: format!("{}{unit}", estimate.name),
            x_scale: Scale::Whole,
            x_reach: extent(&self.input.records),
            bands: vec![Band {
                spans: spans.collect(),
                tone,
            }],
            series: vec![Series {
                label: String::new(),
                end: value_in_words(newest, estimate),
                points,
                tone,
                dashed: false,
            }],
            ..Plot::default()
        }))
    }

    /// Returns the picture of an answer with more figures than the leading ones.
    fn picture(&self, found: &AnswerOfRound<'_>) -> Option<String> {
        let (answer, round) = (found.answer, grouped(u64::from(found.round) + 1));
        let confidence = confidence_in_words(answer.confidence);
        let name = &answer.name;
        match answer.kind {
            QuestionKind::Evaluate | QuestionKind::Count => None,
            QuestionKind::Confusion => {
                let classes = Classes::of(answer)?;
                let caption = format!(
                    "Shares of all samples in percent, with noise, after round {round}. Rows are \
                     true classes, and columns are predicted ones. Darker cells have a larger \
                     share of the class. Intervals have a confidence of {confidence}."
                );
                let content = self.confusion(&classes);
                Some(self.figure(&format!("{name}: classes"), &caption, &content))
            }
            QuestionKind::Histogram | QuestionKind::Presence => {
                let of = match answer.kind {
                    QuestionKind::Presence => "devices with samples in each bin",
                    _ => "samples in each bin",
                };
                let caption = format!(
                    "Shares of {of}, after round {round}. Bars are estimates under noise. Lines \
                     are their intervals at a confidence of {confidence}."
                );
                Some(self.figure(&format!("{name}: shares"), &caption, &self.bars(answer)))
            }
            QuestionKind::Moments => {
                let caption = format!(
                    "Means and standard deviations over samples with noise, after round {round}. \
                     Intervals have a confidence of {confidence}."
                );
                Some(self.figure(&format!("{name}: figures"), &caption, &estimates(answer)))
            }
        }
    }

    /// Returns the name of a class for readers, from `class 3`.
    fn class_name(&self, name: &str) -> Option<String> {
        let number = name.strip_prefix("class ")?.parse::<usize>().ok()?;
        let names = &self.input.model.as_ref()?.class_names;
        names.get(number).cloned()
    }

    fn bars(&self, answer: &Answer) -> String {
        let shares = answer.estimates.iter().filter(|x| is_share(answer, x));
        let shares: Vec<&Estimate> = shares.collect();
        let ends = shares.iter().flat_map(|x| [x.value, x.interval[1]]);
        let largest = ends.flatten().fold(0.0, f64::max);
        let full = if largest > 0.0 { largest.min(1.0) } else { 1.0 };
        // NaN has no length.
        let place = |share: f64| match share > 0.0 {
            true => 100.0 * (share / full).min(1.0),
            false => 0.0,
        };
        let mut text = "<div class=\"scroll\"><table class=\"bars\"><thead><tr>\
            <th scope=\"col\">bin</th><td></td><th scope=\"col\" class=\"number\">share</th>\
            <th scope=\"col\">interval</th></tr></thead><tbody>\n"
            .to_owned();
        for share in shares.iter().take(MAX_BARS) {
            let name = self.class_name(&share.name);
            let name = name.as_ref().unwrap_or(&share.name);
            let [low, high] = share.interval;
            let (low, high) = (place(low.unwrap_or(0.0)), place(high.unwrap_or(full)));
            let width = place(share.value.unwrap_or(0.0));
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "<tr><th scope=\"row\">{}</th><td class=\"bar\">\
                 <svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
                 <rect class=\"share\" x=\"0\" y=\"0\" width=\"{width:.2}\" height=\"10\"/>\
                 <path class=\"whisker\" vector-effect=\"non-scaling-stroke\" \
                 d=\"M{low:.2} 2V8M{low:.2} 5H{high:.2}M{high:.2} 2V8\"/></svg></td>\
                 <td class=\"number\">{}</td><td>{}</td></tr>",
                escape(name),
                value_in_words(answer, share),
                ends_in_words(answer, share)
            );
        }
        text.push_str("</tbody></table></div>\n");
        if shares.len() > MAX_BARS {
            let all = shares.len();
            let more = format!("The first {MAX_BARS} of {all}. All are in metrics.jsonl.");
            text.push_str(&paragraph(&more));
        }
        text
    }

    fn confusion(&self, classes: &Classes<'_>) -> String {
        let name = |class: usize| {
            let name = self.class_name(&format!("class {class}"));
            name.unwrap_or_else(|| class.to_string())
        };
        let of_classes = (0..classes.count).map(|class| {
            let words = |of: &Estimate| {
                let value = value_in_words(classes.answer, of);
                [value, ends_in_words(classes.answer, of)]
            };
            let [recall, precision] =
                [classes.recall, classes.precision].map(|of| words(&of[class]));
            let figures = recall.into_iter().chain(precision);
            std::iter::once(name(class)).chain(figures).collect()
        });
        let head = [
            ("class", Column::Words),
            ("recall", Column::Number),
            ("interval", Column::Words),
            ("precision", Column::Number),
            ("interval", Column::Words),
        ];
        let of_classes = table("figures", &head, &of_classes.collect::<Vec<_>>());
        let cells = match classes.count <= MAX_CLASSES {
            true => class_table(&classes.cells_of_table(), name),
            false => classes.most_frequent(name),
        };
        cells + &of_classes
    }
}

/// The parts of an answer about classes.
struct Classes<'a> {
    answer: &'a Answer,
    count: usize,
    recall: &'a [Estimate],
    precision: &'a [Estimate],
    /// Ordered by true class.
    cells: &'a [Estimate],
}

impl<'a> Classes<'a> {
    /// Accuracy, recall and precision of C classes, and C × C cells are (C + 1)² figures.
    fn of(answer: &'a Answer) -> Option<Self> {
        let all = answer.estimates.len();
        let count = all.isqrt().checked_sub(1).filter(|count| *count > 0)?;
        if (count + 1).pow(2) != all {
            return None;
        }
        let (_, rest) = answer.estimates.split_first()?;
        let (recall, rest) = rest.split_at_checked(count)?;
        let (precision, cells) = rest.split_at_checked(count)?;
        Some(Self {
            answer,
            count,
            recall,
            precision,
            cells,
        })
    }

    fn cells_of_table(&self) -> Vec<Vec<ClassCell>> {
        let rows = self.cells.chunks_exact(self.count);
        let rows = rows.map(|row| {
            let all: f64 = row.iter().filter_map(|cell| cell.value).sum();
            let cell = |of: &Estimate| ClassCell {
                share: match (of.value, all > 0.0) {
                    (Some(value), true) => (value / all).clamp(0.0, 1.0),
                    _ => 0.0,
                },
                text: of.value.map_or("–".to_owned(), |x| fixed(100.0 * x, 1)),
                title: Some(ends_in_words(self.answer, of)),
            };
            row.iter().map(cell).collect()
        });
        rows.collect()
    }

    /// Returns the largest cells with a wrong prediction.
    fn most_frequent(&self, name: impl Fn(usize) -> String) -> String {
        let cells = self.cells.iter().enumerate();
        let places = cells.map(|(at, cell)| (at / self.count, at % self.count, cell));
        let mut wrong: Vec<_> = places.filter(|(truth, found, _)| truth != found).collect();
        let value = |cell: &Estimate| cell.value.unwrap_or(0.0);
        wrong.sort_by(|a, b| value(b.2).total_cmp(&value(a.2)));
        let rows = wrong
            .iter()
            .take(MAX_CONFUSIONS)
            .map(|(truth, found, cell)| {
                vec![
                    name(*truth),
                    name(*found),
                    value_in_words(self.answer, cell),
                    ends_in_words(self.answer, cell),
                ]
            });
        let head = [
            ("class", Column::Words),
            ("predicted as", Column::Words),
            ("share", Column::Number),
            ("interval", Column::Words),
        ];
        table("figures", &head, &rows.collect::<Vec<_>>())
    }
}

/// Returns a table of all figures of an answer.
fn estimates(answer: &Answer) -> String {
    let rows = answer.estimates.iter().take(2 * MAX_BARS).map(|estimate| {
        vec![
            estimate.name.clone(),
            value_in_words(answer, estimate),
            ends_in_words(answer, estimate),
        ]
    });
    let head = [
        ("figure", Column::Words),
        ("estimate", Column::Number),
        ("interval", Column::Words),
    ];
    table("figures", &head, &rows.collect::<Vec<_>>())
}

/// Returns a figure of an answer in words, with shares in percent.
fn words(answer: &Answer, estimate: &Estimate, value: f64) -> String {
    match is_share(answer, estimate) {
        true => format!("{} %", fixed(100.0 * value, 1)),
        false => significant(value, 3),
    }
}

fn value_in_words(answer: &Answer, estimate: &Estimate) -> String {
    let value = estimate.value;
    value.map_or("–".to_owned(), |value| words(answer, estimate, value))
}

fn ends_in_words(answer: &Answer, estimate: &Estimate) -> String {
    interval_in_words(estimate.interval, |end| words(answer, estimate, end))
}

/// Returns the number of devices that answered, with its interval.
fn devices_in_words(answer: &Answer) -> String {
    let ends = interval_in_words(answer.answered.interval, |end| fixed(end, 0));
    format!("{} ({ends})", answered_in_words(answer))
}
