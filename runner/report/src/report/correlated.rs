//! Correlated noise over rounds: the noise in a prefix sum, as in a model, next to other families'
//! noise at the same epsilon. It follows from the configuration and the privacy statement.

use smolfed_accounting::SamplingRate;
use smolfed_accounting::correlated::{Family, Participation, Strategy};

use super::input::ReportInput;
use super::page::Figure;
use super::plot::{Plot, Point, Scale, Series, Tone};
use smolfed_engine::config::Config;
use smolfed_release::SamplingScheme;
use smolfed_release::number::significant;
use smolfed_release::provenance::Provenance;
use smolfed_release::statement::PrivacyStatement;

/// Families compared with the one in use.
const OTHERS: [(Family, Tone); 2] = [
    (Family::Identity, Tone::Orange),
    (Family::Tree, Tone::Purple),
];
/// Points per curve: more are not visible.
const POINTS: usize = 400;

/// Returns the figures, or none for independent noise or no noise.
pub(super) fn figures_of(input: &ReportInput) -> Vec<String> {
    let statement = input.statements.first();
    let Some(statement) = statement.filter(|statement| statement.noise_multiplier > 0.0) else {
        return Vec::new();
    };
    let Some(participation) = participation(&input.config, statement) else {
        return Vec::new();
    };
    let multiplier = statement.noise_multiplier;
    let family = input.config.privacy.family();
    let rate = statement.sampling_rate;
    let drawn_at = rate.filter(|_| statement.sampling == SamplingScheme::BlockCyclic);
    let drawn_at = drawn_at.and_then(|rate| SamplingRate::new(rate).ok());
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

/// Returns the bound on a device's rounds for which the noise was planned, or `None` for
/// independent noise.
fn participation(config: &Config, statement: &PrivacyStatement) -> Option<Participation> {
    let separation = statement.separation?;
    // The statement has no maximum for devices drawn in turn, so the configured one is exact.
    let most = statement.max_participations;
    let most = most.or(config.privacy.participations);
    Participation::new(config.rounds, separation, most.unwrap_or(u32::MAX)).ok()
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

#[cfg(test)]
mod tests {
    use super::*;
    use smolfed_data::DataFolders;
    use smolfed_engine::config::DEFAULT;
    use smolfed_engine::run;

    /// The server plans the noise for fewer participations of devices that come in windows.
    #[test]
    fn the_strategy_is_that_of_the_run() {
        for (cohort, participations) in [
            ("{sampling=\"buffered\",cohort_size=8,staleness=1}", 3),
            ("{sampling=\"rotation\"}", 4),
            ("{sampling=\"block-cyclic\",cohort_size=8}", 4),
        ] {
            let settings = [
                "rounds=12",
                "data.devices=100",
                "privacy={mechanism=\"correlated\",separation=3,noise_multiplier=1,clip_norm=1}",
                &format!("cohort={cohort}"),
            ];
            let overrides = settings.map(|text| text.parse().unwrap());
            let config = Config::parse(DEFAULT, "the test", &overrides).unwrap();
            let folders = DataFolders::of_experiment(None);
            let (experiment, _) = run::prepare(config, &folders).unwrap();
            let statements = experiment.statements(12, &[]).unwrap();
            let found = participation(experiment.config(), &statements[0]);
            assert_eq!(found, experiment.allowed(), "{cohort}");
            assert_eq!(found.unwrap().participations(), participations);
        }
    }
}
