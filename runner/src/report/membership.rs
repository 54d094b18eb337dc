//! The attack on membership: its curve for one model or for several.

use super::ReportInput;
use super::page::Figure;
use super::plot::{Plot, Point, Series, Tone};
use crate::audit::membership::Attack;
use crate::number::fixed;

/// The curves of several models, each with its area.
#[must_use]
pub fn roc_plot(attacks: &[Attack]) -> Plot {
    let guessing = Series {
        label: "guessing".to_owned(),
        points: vec![Point::new(0.0, 0.0), Point::new(1.0, 1.0)],
        tone: Tone::Grey,
        dashed: true,
        ..Series::default()
    };
    let curve = |(index, Attack { model, roc }): (usize, &Attack)| Series {
        label: model.clone(),
        end: fixed(roc.area, 3),
        points: roc.points.iter().map(|[x, y]| Point::new(*x, *y)).collect(),
        tone: Tone::nth(index),
        dashed: false,
    };
    Plot {
        title: "Membership inference".to_owned(),
        description: "Hit rate over false-alarm rate of the threshold attack on the loss; beside \
                      each name the area under its curve."
            .to_owned(),
        x_label: "false-alarm rate".to_owned(),
        y_label: "hit rate".to_owned(),
        series: [guessing]
            .into_iter()
            .chain(attacks.iter().enumerate().map(curve))
            .collect(),
        ..Plot::default()
    }
}

/// The figure of one run; empty where no examples were kept back.
pub(super) fn figure_of(input: &ReportInput) -> Option<String> {
    let Attack { roc, .. } = input.membership.first()?;
    let caption = format!(
        "Calling an example with a small loss a training example; an area under the curve of 0.5 is \
         guessing. {} training examples of devices against {} that no device held. What an attack \
         reaches is no bound on what a better one can.",
        roc.members, roc.others
    );
    let figure = Figure {
        title: "Which examples were trained on?",
        caption: &caption,
        simulation_only: true,
        caption_beside: true,
    };
    Some(figure.of(roc_plot(&input.membership)))
}
