//! The attack on membership: its curve for one model or for several.

use super::input::ReportInput;
use super::page::Figure;
use super::plot::{Plot, Point, Series, Tone};
use smolfed_engine::membership::Attack;
use smolfed_release::number::fixed;
use smolfed_release::provenance::Provenance;

/// Returns the curves of several models, each with its area.
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
        description: "Hit rate over false-alarm rate of the threshold attack on the loss; next to \
                      each name is the area under its curve. Simulation only: on private samples \
                      of devices."
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

/// Returns the figure of one run. `None` if no examples were held out.
pub(super) fn figure_of(input: &ReportInput) -> Option<String> {
    let Attack { roc, .. } = input.membership.first()?;
    let caption = format!(
        "The attack takes an example with a small loss for a training example; an area under the \
         curve of 0.5 is guessing. {} training examples of devices against {} that no device held. \
         A better attack may reach more.",
        roc.members, roc.others
    );
    let figure = Figure {
        title: "Which examples were trained on?",
        caption: &caption,
        origin: Provenance::SimulationOnly,
        caption_beside: true,
    };
    Some(figure.with_plot(roc_plot(&input.membership)))
}
