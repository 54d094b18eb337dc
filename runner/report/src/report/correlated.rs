//! Correlated noise over rounds: the noise in a prefix sum, as in a model, next to other families'
//! noise at the same epsilon. It follows from the configuration alone.

use smolfed_accounting::SamplingRate;
use smolfed_accounting::correlated::{Family, Participation, Strategy};

use super::input::ReportInput;
use super::page::Figure;
use super::plot::{Plot, Point, Scale, Series, Tone};
use smolfed_engine::tables::MechanismName;
use smolfed_release::SamplingScheme;
use smolfed_release::number::significant;
use smolfed_release::provenance::Provenance;

/// Families compared with the one in use.
const OTHERS: [(Family, Tone); 2] = [
    (Family::Identity, Tone::Orange),
    (Family::Tree, Tone::Purple),
];
/// Points per curve: more are not visible.
const POINTS: usize = 400;

/// Returns the figures, or none for independent noise or no noise.
pub(super) fn figures_of(input: &ReportInput) -> Vec<String> {
    let config = &input.config;
    let privacy = &config.privacy;
    let statement = input.statements.first();
    let multiplier = statement.map(|statement| statement.noise_multiplier);
    let multiplier = multiplier.filter(|multiplier| *multiplier > 0.0);
    let (MechanismName::Correlated, Some(multiplier)) = (privacy.mechanism, multiplier) else {
        return Vec::new();
    };
    let participations = privacy.participations.unwrap_or(u32::MAX);
    let separation = privacy.separation.unwrap_or(1);
    let participation = Participation::new(config.rounds, separation, participations);
    let Ok(participation) = participation else {
        return Vec::new();
    };
    let family = privacy.family.unwrap_or(Family::BandedOptimalMean);
    let drawn_at = statement.and_then(|statement| match statement.sampling {
        SamplingScheme::BlockCyclic => SamplingRate::new(statement.sampling_rate?).ok(),
        _ => None,
    });
    let others = OTHERS.into_iter().filter(|(other, _)| *other != family);
    let families = others.chain([(family, Tone::Blue)]);
    let planned = families.filter_map(|(family, tone)| {
        let strategy = Strategy::plan(family, participation).ok()?;
        // A family that does not support the sampling is omitted.
        let strategy = match drawn_at {
            None => strategy,
            Some(rate) => strategy.block_cyclic(rate).ok()?,
        };
        let stds = strategy.prefix_stds().into_iter();
        let stds: Vec<f64> = stds.map(|std| std * multiplier).collect();
        Some((family, tone, stds))
    });
    let planned: Vec<(Family, Tone, Vec<f64>)> = planned.collect();
    let used = planned.last().into_iter();
    let prefix = used.map(|(family, _, stds)| curve(*family, Tone::Blue, stds));
    vec![
        Figure {
            title: "Noise in the sum of all rounds so far",
            caption: "Standard deviation, in clip norms, of the noise in the estimated sum of all \
                      updates up to a round, by families with the same epsilon: \"identity\" is \
                      independent noise in every round.",
            origin: Provenance::Public,
            caption_beside: false,
        }
        .with_plot(plot(
            planned
                .iter()
                .map(|(family, tone, stds)| curve(*family, *tone, stds)),
        )),
        Figure {
            title: "Noise of the family in use",
            caption: "Noise is added to combinations of several rounds, so much of it cancels in \
                      their sum.",
            origin: Provenance::Public,
            caption_beside: false,
        }
        .with_plot(plot(prefix)),
    ]
}

fn plot(series: impl Iterator<Item = Series>) -> Plot {
    Plot {
        x_label: "round".to_owned(),
        y_label: "noise std, in clip norms".to_owned(),
        x_scale: Scale::Whole,
        y_reach: vec![0.0],
        series: series.collect(),
        ..Plot::default()
    }
}

fn curve(family: Family, tone: Tone, stds: &[f64]) -> Series {
    let step = stds.len().div_ceil(POINTS).max(1);
    let last = stds.len().saturating_sub(1);
    let points = stds.iter().enumerate();
    let points = points.filter(|(round, _)| round % step == 0 || *round == last);
    Series {
        label: family.name().to_owned(),
        end: stds
            .last()
            .map_or(String::new(), |std| significant(*std, 3)),
        points: points
            .map(|(round, std)| Point::new(round as f64, *std))
            .collect(),
        tone,
        dashed: false,
    }
}
