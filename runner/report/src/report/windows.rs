//! The report's section "Windows of time": updates by the age (staleness) of their model, and
//! wasted participations.

use super::curves::{curve, extent};
use super::input::ReportInput;
use super::page::{Column, Figure, grid, section, table};
use super::plot::{Plot, Scale, Series, Tone};
use crate::windows::{age_in_words, wasted_in_words};
use smolfed_engine::round::{RoundRecord, WindowTally};
use smolfed_release::number::{fixed, grouped};
use smolfed_release::provenance::Provenance;

/// Maximum number of age curves: more are indistinguishable from wasted participations.
const CURVES: usize = 5;

/// Returns the section, which is empty if rounds are not windows.
pub(super) fn section_of(input: &ReportInput) -> String {
    let Some(totals) = WindowTally::of_records(&input.records) else {
        return String::new();
    };
    let cards = [
        over_windows(&input.records, totals.ages.len(), input.size_origin()),
        all(&totals, input.size_origin()),
    ];
    section("Windows of time", &grid(&cards))
}

/// Plots updates by age, and wasted participations, in each window.
fn over_windows(records: &[RoundRecord], ages: usize, origin: Provenance) -> String {
    let shown = ages.min(CURVES);
    let of_ages = (0..shown).map(|age| {
        let is_rest = age + 1 == shown && ages > shown;
        let last = if is_rest { ages } else { age + 1 };
        let count = move |record: &RoundRecord| {
            record.wasted?;
            let of_age = record.ages.iter().take(last).skip(age);
            Some(f64::from(of_age.sum::<u32>()))
        };
        let label = match is_rest {
            true => format!("age {age} or more"),
            false => format!("age {age}"),
        };
        line(records, label, Tone::nth(age), count)
    });
    let wasted = line(records, "wasted".to_owned(), Tone::Grey, |record| {
        record.wasted.map(f64::from)
    });
    let figure = Figure {
        title: "Updates by age",
        caption: "Counted updates in each window. Age 0 is an update of the model of the same \
                  window, age 1 of the previous one. Dashed: participations spent without a \
                  counted update.",
        origin,
        caption_beside: false,
    };
    figure.with_plot(Plot {
        x_label: "window".to_owned(),
        y_label: "updates".to_owned(),
        x_scale: Scale::Whole,
        x_reach: extent(records),
        y_reach: vec![0.0],
        series: std::iter::once(Series {
            dashed: true,
            ..wasted
        })
        .chain(of_ages)
        .collect(),
        ..Plot::default()
    })
}

fn line(
    records: &[RoundRecord],
    label: String,
    tone: Tone,
    count: impl Fn(&RoundRecord) -> Option<f64>,
) -> Series {
    Series {
        label,
        points: curve(records, count),
        tone,
        ..Series::default()
    }
}

/// Returns the counts and shares of all windows together.
fn all(totals: &WindowTally, origin: Provenance) -> String {
    let shares = totals.shares();
    let share_of = |age: usize| match shares.get(age) {
        Some(share) => format!("{} %", fixed(100.0 * share, 1)),
        None => "–".to_owned(),
    };
    let of_ages = totals.ages.iter().enumerate();
    let rows: Vec<Vec<String>> = of_ages
        .map(|(age, count)| vec![age_in_words(age), grouped(*count), share_of(age)])
        .collect();
    let head = [
        ("age of the model", Column::Words),
        ("updates", Column::Number),
        ("share", Column::Number),
    ];
    let caption = format!(
        "Wasted participations: {} of {}, {}. They were spent without a counted update: it came \
         too late, or was lost.",
        grouped(totals.wasted),
        grouped(totals.arrived() + totals.wasted),
        wasted_in_words(totals)
    );
    let figure = Figure {
        title: "All windows",
        caption: &caption,
        origin,
        caption_beside: false,
    };
    figure.around(&table("ages", &head, &rows))
}
