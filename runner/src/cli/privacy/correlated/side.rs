//! Families of correlated noise side by side, and the cost (ε) of independent noise with the same
//! error.

use serde_json::{Map, Value, json};

use crate::cli::CliError;
use crate::cli::privacy::document::figure;
use crate::cli::text::aligned;
use smolfed_accounting::accountant::Accountant;
use smolfed_accounting::correlated::{Family, Strategy};
use smolfed_accounting::event::{Mechanism, PrivacyEvent, Sampling};
use smolfed_accounting::params::{Delta, NoiseMultiplier, ParamError, SamplingRate};
use smolfed_release::number::{significant, upper};
use smolfed_report::report::plot::{Plot, Point, Scale, Series, Tone};

/// What the families are compared under.
pub(super) struct Comparer {
    /// The event of the best family.
    pub(super) event: PrivacyEvent,
    pub(super) noise: NoiseMultiplier,
    pub(super) delta: Delta,
    pub(super) rate: SamplingRate,
}

impl Comparer {
    pub(super) fn row(&self, family: Family, strategy: Strategy) -> Result<Row, CliError> {
        let devices = self.event.sampling.device_count();
        let participation = strategy.participation();
        let independent = strategy.independent_multiplier(self.noise);
        let independent = independent.map_err(refused)?;
        let grid_bits = match self.event.mechanism {
            Mechanism::Correlated { grid_bits, .. } => grid_bits,
            _ => smolfed_core::quantize::DEFAULT_BITS as u8,
        };
        let mechanism = Mechanism::DiscreteGaussian {
            noise_multiplier: independent,
            grid_bits,
        };
        let cost = |accountant: Accountant, event: PrivacyEvent| {
            let event = PrivacyEvent {
                devices_per_user: self.event.devices_per_user,
                ..event
            };
            let found = accountant.epsilon(&[event], self.delta);
            let found = found.map_err(|error| CliError::Usage(error.to_string()));
            found.map(|estimate| estimate.epsilon)
        };
        let of = |sampling| PrivacyEvent::new(mechanism, sampling, participation.rounds().into());
        let unsampled = Sampling::unsampled(devices, participation.participations());
        let poisson = Sampling::poisson(devices, self.rate);
        let own = PrivacyEvent::correlated(&strategy, self.noise, grid_bits, devices);
        let own = PrivacyEvent {
            trust: self.event.trust,
            ..own.map_err(refused)?
        };
        // The same noise if everybody knew who was drawn.
        let undrawn = strategy.sampling_rate().map(|_| {
            let everybody = SamplingRate::new(1.0)?;
            let sampling = Sampling::block_cyclic(devices, participation.separation(), everybody)?;
            Ok(PrivacyEvent { sampling, ..own })
        });
        let undrawn = undrawn.transpose().map_err(refused)?;
        Ok(Row {
            epsilon: match undrawn {
                None => cost(Accountant::Gdp, own)?,
                Some(_) => cost(Accountant::Pld, own)?,
            },
            undrawn: undrawn
                .map(|event| cost(Accountant::Gdp, event))
                .transpose()?,
            unsampled: cost(Accountant::Gdp, of(unsampled.map_err(refused)?))?,
            poisson: cost(Accountant::Pld, of(poisson.map_err(refused)?))?,
            independent,
            family,
            strategy,
        })
    }
}

pub(super) fn refused(error: ParamError) -> CliError {
    CliError::Usage(format!("--mechanism correlated: {error}"))
}

/// A family, and independent noise with the same rmse.
pub(super) struct Row {
    family: Family,
    strategy: Strategy,
    /// ε of the family.
    epsilon: f64,
    /// ε of the same noise without the draw of block-cyclic sampling.
    undrawn: Option<f64>,
    /// z of independent noise.
    independent: NoiseMultiplier,
    /// ε of that without sampling.
    unsampled: f64,
    /// ε of that with Poisson sampling.
    poisson: f64,
}

/// Families side by side, each with what independent noise of the same error costs.
pub(in crate::cli::privacy) struct Side {
    pub(super) rows: Vec<Row>,
    /// What the statement is about.
    pub(super) chosen: (Family, Strategy),
    /// k as it was given.
    pub(super) asked: u32,
    /// Whether the number of devices is given.
    pub(super) has_devices: bool,
    pub(super) noise: NoiseMultiplier,
    /// τ of the Poisson sampling.
    pub(super) rate: SamplingRate,
    /// Sentences for the statement.
    pub(in crate::cli::privacy) notes: Vec<String>,
}

impl Side {
    /// The table of families.
    pub(in crate::cli::privacy) fn table(&self) -> String {
        let rate = significant(self.rate.get(), 3);
        let head = [
            "family",
            "sensitivity",
            "rmse",
            "max error",
            "epsilon",
            "independent, no sampling",
            &format!("independent, poisson {rate}"),
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for row in &self.rows {
            rows.push(vec![
                row.family.to_string(),
                upper(row.strategy.sensitivity(), 6),
                upper(row.strategy.rmse(), 6),
                upper(row.strategy.max_error(), 6),
                figure(row.epsilon),
                figure(row.unsampled),
                figure(row.poisson),
            ]);
        }
        if self.rows.iter().any(|row| row.undrawn.is_some()) {
            let column = self
                .rows
                .iter()
                .map(|row| row.undrawn.map_or(String::new(), figure));
            let column = std::iter::once("the same, no sampling".to_owned()).chain(column);
            for (row, cell) in rows.iter_mut().zip(column) {
                row.insert(5, cell);
            }
        }
        format!(
            "{}\nErrors of the sum of all rounds so far, in clip norms, for noise multiplier 1. \
             Last two columns: epsilon of independent noise with the rmse of the family at noise \
             multiplier {}. Below: `{}`.\n\n",
            aligned(&rows),
            upper(self.noise.get(), 6),
            self.chosen.0
        )
    }

    /// The fields of the chosen family, and all of them.
    pub(in crate::cli::privacy) fn insert(&self, fields: &mut Map<String, Value>) {
        let (family, strategy) = &self.chosen;
        let participation = strategy.participation();
        let chosen = json!({
            "family": family,
            "sensitivity": strategy.sensitivity(),
            "sensitivity_squared_65536": strategy.sensitivity_squared().to_string(),
            "is_sensitivity_exact": strategy.is_sensitivity_exact(),
            "rmse": strategy.rmse(),
            "max_error": strategy.max_error(),
            "kept_sums": strategy.kept_sums(),
            "separation": participation.separation(),
            "participations": participation.participations(),
            "participations_asked": self.asked,
            "poisson_sampling_rate": self.rate,
            "families": self.rows.iter().map(row_json).collect::<Vec<_>>(),
        });
        if let Value::Object(chosen) = chosen {
            fields.extend(chosen);
        }
        if !self.has_devices {
            fields.insert("devices".to_owned(), Value::Null);
        }
    }

    /// The error of the sum of all rounds so far, over the rounds.
    pub(in crate::cli::privacy) fn plot(&self) -> Plot {
        let tones = [
            Tone::Grey,
            Tone::Ochre,
            Tone::Purple,
            Tone::Green,
            Tone::Blue,
            Tone::Orange,
        ];
        let curves = self.rows.iter().zip(tones.iter().cycle());
        let series = curves.map(|(row, tone)| {
            let stds = row.strategy.prefix_stds();
            let points = stds.iter().enumerate();
            let noise = self.noise.get();
            Series {
                label: row.family.to_string(),
                tone: *tone,
                points: points
                    .map(|(round, std)| Point::new((round + 1) as f64, noise * std))
                    .collect(),
                ..Series::default()
            }
        });
        Plot {
            title: "Error over rounds".to_owned(),
            description: format!(
                "Standard deviation of the noise in the sum of all rounds so far, for each \
                 family of correlated noise, at noise multiplier {}.",
                upper(self.noise.get(), 6)
            ),
            x_label: "rounds".to_owned(),
            y_label: "noise std of the sum so far, in clip norms".to_owned(),
            x_scale: Scale::Whole,
            y_scale: Scale::Log,
            series: series.collect(),
            ..Plot::default()
        }
    }
}

fn row_json(row: &Row) -> Value {
    let finite = |epsilon: f64| Some(epsilon).filter(|epsilon| epsilon.is_finite());
    json!({
        "family": row.family,
        "sensitivity": row.strategy.sensitivity(),
        "is_sensitivity_exact": row.strategy.is_sensitivity_exact(),
        "rmse": row.strategy.rmse(),
        "max_error": row.strategy.max_error(),
        "epsilon": finite(row.epsilon),
        "epsilon_without_sampling": row.undrawn.and_then(finite),
        "independent_noise_multiplier": row.independent,
        "independent_unsampled_epsilon": finite(row.unsampled),
        "independent_poisson_epsilon": finite(row.poisson),
    })
}
