//! The sweep file: an experiment and its table `[sweep]`, read and checked once.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};

use super::SweepError;
use super::grid::{self, Cell, Dimension, Level};
use super::layout::Layout;
use super::metric::Metric;
use smolfed_engine::config::file::read;
use smolfed_engine::config::{Config, ConfigError, Override, sentence};

/// Limit on runs, beyond any intended sweep.
const MAX_RUNS: usize = 1_000_000;

/// The table of a sweep (docs/sweeps.md). Only `smolfed sweep` accepts it.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Sweep")]
struct RawSweep {
    /// Consecutive seeds, starting with the experiment's `seed`, or a list of seeds.
    ///
    /// Default: 1.
    seeds: RawSeeds,
    /// The figure in the table. Alternatives: `test_loss`, `validation_accuracy`,
    /// `validation_rmse`, `validation_loss`. Averaged over devices: `device_accuracy`,
    /// `device_rmse`, `device_validation_..`, `device_shared_..`, `device_alone_..`. Without
    /// labels: `knn_accuracy`, `validation_knn_accuracy`.
    ///
    /// Default: `test_accuracy` or `test_rmse`.
    metric: Option<Metric>,
    /// Further figures, each in its own column, for tables without `columns`.
    ///
    /// Default: none.
    also: Vec<Metric>,
    /// The key of the rows, `"variant"` for the variants. Each value of a further key gets its own
    /// table.
    ///
    /// Default: the first key.
    rows: Option<String>,
    /// The key of the columns, `"variant"` for the variants.
    ///
    /// Default: the second key.
    columns: Option<String>,
    /// The label of a row. A second table shows how the other rows differ from it, paired by seed.
    compare_with: Option<String>,
    /// Keys to tune in each cell. The table shows the best values and their results.
    /// `"private"`: a private selection among the candidates of `[sweep.private]`.
    ///
    /// Default: none.
    choose: RawChoose,
    /// The validation figure for the choice, such as `"device_validation_accuracy"`.
    choose_by: Option<Metric>,
    /// The candidates of private selections, with the keys `grid` and `variants`.
    ///
    /// Default: none.
    private: RawPrivate,
    /// An ablation: each variant adds its change to those above it.
    cumulative: bool,
    /// Rounds between evaluations in `results.jsonl`. 0: only after the last round.
    evaluate_every: u32,
    /// Dotted keys of the experiment, each with a list of values. Every combination is a cell.
    ///
    /// Default: none.
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    grid: Table,
    /// Settings that change together: `[[sweep.variants]]` with a `label` and `set = { .. }`. Each
    /// variant is combined with every cell of `grid`.
    ///
    /// Default: none.
    variants: Vec<RawVariant>,
}

impl Default for RawSweep {
    fn default() -> Self {
        Self {
            seeds: RawSeeds::Count(1),
            metric: None,
            also: Vec::new(),
            rows: None,
            columns: None,
            compare_with: None,
            choose: RawChoose::Keys(Vec::new()),
            choose_by: None,
            private: RawPrivate::default(),
            cumulative: false,
            evaluate_every: 0,
            grid: Table::new(),
            variants: Vec::new(),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number of seeds or a list of seeds")]
enum RawSeeds {
    Count(u32),
    List(Vec<u64>),
}

/// Keys to choose by validation, or another way of choosing settings.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a list of keys, or \"private\"")]
enum RawChoose {
    Keys(Vec<String>),
    How(How),
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum How {
    Private,
}

/// `[sweep.private]`: the candidates of private selections.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct RawPrivate {
    #[schemars(with = "BTreeMap<String, Vec<serde_json::Value>>")]
    grid: Table,
    variants: Vec<RawVariant>,
}

impl RawPrivate {
    fn is_empty(&self) -> bool {
        self.grid.is_empty() && self.variants.is_empty()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawVariant {
    label: String,
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    set: Table,
}

/// A sweep ready to expand: cells times seeds.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The name of the experiment.
    pub name: String,
    /// Identifies the experiment below the sweep: results are only continued under the same
    /// fingerprint.
    pub fingerprint: String,
    /// The seeds, at least one, all different.
    pub seeds: Vec<u64>,
    /// The figure in the table. `None` for the first available one.
    pub metric: Option<Metric>,
    /// Additional figures, if the table does not use columns for a dimension.
    pub also: Vec<Metric>,
    /// The settings that differ between cells.
    pub dimensions: Vec<Dimension>,
    /// Every combination.
    pub cells: Vec<Cell>,
    /// Indices of dimensions of which only the best level is shown.
    pub choose: Vec<usize>,
    /// The deciding figure. `None` if there is nothing to choose.
    pub choose_by: Option<Metric>,
    /// Settings from which each run draws at random, trial by trial, and keeps the best: every run
    /// is a private selection. `None` if runs are single.
    pub candidates: Option<Vec<Cell>>,
    /// Whether each variant also has the settings of the earlier ones.
    pub is_cumulative: bool,
    pub(super) layout: Layout,
    base: Table,
    evaluate_every: u32,
}

/// Returns the JSON schema of experiment and sweep files.
#[must_use]
pub fn schema() -> serde_json::Value {
    Config::schema_with::<RawSweep>("sweep")
}

impl Sweep {
    /// Reads a sweep file and applies overrides in order. `seeds` replaces `sweep.seeds`.
    ///
    /// # Errors
    /// [`SweepError`] names the file and the key or line.
    pub fn load(
        path: &Path,
        overrides: &[Override],
        seeds: Option<u32>,
    ) -> Result<Self, SweepError> {
        let origin = path.display().to_string();
        let text = read(path)?;
        Self::parse(&text, &origin, overrides, seeds)
    }

    /// Parses the text of a sweep file. `origin` names it in errors.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn parse(
        text: &str,
        origin: &str,
        overrides: &[Override],
        seeds: Option<u32>,
    ) -> Result<Self, SweepError> {
        let mut base: Table =
            toml::from_str(text).map_err(|error| refused(origin, &error, text))?;
        for item in overrides {
            item.apply(&mut base)?;
        }
        let refuse = |key: &str, reason: String| SweepError::Table {
            origin: origin.to_owned(),
            key: key.to_owned(),
            reason,
        };
        let table = base.remove("sweep").ok_or_else(|| SweepError::NoSweep {
            origin: origin.to_owned(),
        })?;
        let fingerprint = fingerprint(&base, table.get("private"));
        let raw: RawSweep = table
            .try_into()
            .map_err(|error| refused(&format!("{origin}: [sweep]"), &error, ""))?;
        let of_cells = dimensions("sweep", &raw.grid, &raw.variants, raw.cumulative);
        let dimensions = of_cells.map_err(|(key, reason)| refuse(&key, reason))?;
        let candidates = candidates(&raw, &dimensions);
        let candidates = candidates.map_err(|(key, reason)| refuse(&key, reason))?;
        if candidates.is_some() {
            figures_of_selections(&raw).map_err(|(key, reason)| refuse(&key, reason))?;
        }
        let choose = chosen(&raw, &dimensions).map_err(|(key, reason)| refuse(key, reason))?;
        let is_shown = |(index, _): &(usize, &Dimension)| !choose.contains(index);
        let shown = dimensions.iter().enumerate().filter(is_shown);
        let shown: Vec<Dimension> = shown.map(|(_, dimension)| dimension.clone()).collect();
        let layout = Layout::new(&shown, raw.rows.as_deref(), raw.columns.as_deref())
            .and_then(|layout| layout.comparing_with(&shown, raw.compare_with.as_deref()));
        let layout = layout.map_err(|(key, reason)| refuse(key, reason))?;
        if layout.columns.is_some() && !raw.also.is_empty() {
            let reason =
                "further figures need a table with only rows: leave `sweep.columns` out".to_owned();
            return Err(refuse("sweep.also", reason));
        }
        let raw_seeds = seeds.map_or(raw.seeds, RawSeeds::Count);
        let seeds = numbers(raw_seeds, &base).map_err(|reason| refuse("sweep.seeds", reason))?;
        let levels = dimensions.iter().map(|dimension| dimension.levels.len());
        let runs = levels.fold(seeds.len(), usize::saturating_mul);
        if runs > MAX_RUNS {
            let reason =
                format!("makes more than {MAX_RUNS} runs: start with fewer values or seeds");
            return Err(refuse("sweep", reason));
        }
        let sweep = Self {
            name: String::new(),
            fingerprint,
            seeds,
            metric: raw.metric,
            also: raw.also,
            cells: grid::cells(&dimensions),
            dimensions,
            choose_by: raw.choose_by.filter(|_| !choose.is_empty()),
            choose,
            candidates,
            is_cumulative: raw.cumulative,
            layout,
            base,
            evaluate_every: raw.evaluate_every,
        };
        // Checks everything possible without the data before the first run.
        if sweep.has_ledger()? {
            let reason = "belongs to single runs: a sweep compares settings under the same seeds, \
                          whose noise is the same, and no ledger can add that up";
            return Err(refuse("privacy.ledger", reason.to_owned()));
        }
        let name = sweep.config(&sweep.cells[0], 0)?.name;
        Ok(Self { name, ..sweep })
    }

    /// Returns whether a cell keeps a ledger.
    fn has_ledger(&self) -> Result<bool, SweepError> {
        for cell in &self.cells {
            if self.config(cell, 0)?.privacy.ledger.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the experiment of a cell's candidate under one seed, as a trial not yet drawn.
    ///
    /// # Errors
    /// As [`Self::config`].
    pub fn candidate(
        &self,
        cell: &Cell,
        candidate: &Cell,
        seed: u64,
    ) -> Result<Config, SweepError> {
        let settings = cell.settings.iter().chain(&candidate.settings);
        let together = Cell {
            levels: Vec::new(),
            settings: settings.cloned().collect(),
        };
        let mut config = self.config(&together, seed)?;
        config.privacy.selection.get_or_insert_default();
        Ok(config)
    }

    /// Returns the experiment of a cell under one seed.
    ///
    /// # Errors
    /// [`SweepError::Setting`] if a key is unknown or of the wrong type, which [`Self::parse`]
    /// excludes.
    pub fn config(&self, cell: &Cell, seed: u64) -> Result<Config, SweepError> {
        let setting = |reason| SweepError::Setting {
            settings: cell.describe(),
            reason,
        };
        let table = cell.apply(&self.base).map_err(setting)?;
        let config: Result<Config, toml::de::Error> = table.try_into();
        let config = config.map_err(|error| setting(refused("the experiment", &error, "")))?;
        Ok(Config {
            seed,
            evaluate_every: self.evaluate_every,
            ..config
        })
    }

    /// Returns the folder of a private selection's chosen run, within the results.
    #[must_use]
    pub fn chosen_name(&self, cell: usize, seed: u64) -> String {
        match self.cells.len() * self.seeds.len() {
            1 => "chosen".to_owned(),
            _ => format!("chosen-{}-{seed}", cell + 1),
        }
    }

    /// Returns the `[data]` table as written, in one line.
    #[must_use]
    pub fn data_in_words(&self) -> String {
        let pairs = |name: &str| {
            let table = self.base.get(name).and_then(Value::as_table)?;
            let pairs = table.iter().map(|(key, value)| format!("{key} = {value}"));
            Some(pairs.collect::<Vec<_>>().join(", "))
        };
        let features = pairs("features").map(|pairs| format!("; features: {pairs}"));
        pairs("data").unwrap_or_default() + &features.unwrap_or_default()
    }
}

/// Returns the error for an invalid text or table.
fn refused(origin: &str, error: &toml::de::Error, text: &str) -> ConfigError {
    ConfigError::Parse {
        origin: origin.to_owned(),
        message: sentence(error, text),
    }
}

/// A key and its problem.
type Wrong = (String, String);

/// Returns the dimensions chosen by validation.
fn chosen(raw: &RawSweep, dimensions: &[Dimension]) -> Result<Vec<usize>, (&'static str, String)> {
    let keys = match &raw.choose {
        RawChoose::Keys(keys) => keys.as_slice(),
        RawChoose::How(How::Private) => &[],
    };
    match (keys.is_empty(), raw.choose_by) {
        (true, Some(_)) => {
            let reason = "has no effect without `sweep.choose`, a list of keys to tune";
            return Err(("sweep.choose_by", reason.to_owned()));
        }
        (false, None) => {
            let reason = "needs `sweep.choose_by`, for example \"device_validation_accuracy\"";
            return Err(("sweep.choose", reason.to_owned()));
        }
        _ => {}
    }
    let place = |name: &String| {
        let found = dimensions
            .iter()
            .position(|dimension| dimension.name == *name);
        found.ok_or_else(|| {
            (
                "sweep.choose",
                format!("has \"{name}\", which the grid does not have"),
            )
        })
    };
    keys.iter().map(place).collect()
}

/// Returns every combination of the candidates of private selections.
fn candidates(raw: &RawSweep, cells: &[Dimension]) -> Result<Option<Vec<Cell>>, Wrong> {
    const TABLE: &str = "sweep.private";
    match (&raw.choose, raw.private.is_empty()) {
        (RawChoose::Keys(_), true) => return Ok(None),
        (RawChoose::Keys(_), false) => {
            let reason = "has no effect without `sweep.choose` = \"private\"".to_owned();
            return Err((TABLE.to_owned(), reason));
        }
        (RawChoose::How(How::Private), true) => {
            let reason = "needs candidates: give `sweep.private.grid`, for example \
                          \"privacy.clip_norm\" = [0.1, 0.3, 1]"
                .to_owned();
            return Err(("sweep.choose".to_owned(), reason));
        }
        (RawChoose::How(How::Private), false) => {}
    }
    let drawn = dimensions(TABLE, &raw.private.grid, &raw.private.variants, false)?;
    let keys = |dimensions: &[Dimension]| -> Vec<String> {
        let levels = dimensions.iter().flat_map(|dimension| &dimension.levels);
        let settings = levels.flat_map(|level| &level.settings);
        settings.map(|(key, _)| key.clone()).collect()
    };
    let of_cells = keys(cells);
    for key in keys(&drawn) {
        let reason = if of_cells.iter().any(|other| overlap(&key, other)) {
            "is also set by the grid or a variant of the sweep: leave it to one of them"
        } else if overlap(&key, "data") || overlap(&key, "features") {
            "cannot be selected: all trials are on the same data"
        } else if overlap(&key, "privacy.selection") {
            "cannot be selected: it is part of the selection"
        } else {
            continue;
        };
        return Err((format!("{TABLE}: {key}"), reason.to_owned()));
    }
    let drawn = grid::cells(&drawn);
    match u32::try_from(drawn.len()) {
        Ok(count) if count as usize <= MAX_RUNS => Ok(Some(drawn)),
        _ => Err((
            TABLE.to_owned(),
            format!("has more than {MAX_RUNS} candidates"),
        )),
    }
}

/// Refuses figures that private selections lack: the score is such a figure with noise, and the
/// figure would also be released without noise.
fn figures_of_selections(raw: &RawSweep) -> Result<(), Wrong> {
    let metrics = raw.metric.iter().map(|metric| ("sweep.metric", metric));
    let also = raw.also.iter().map(|metric| ("sweep.also", metric));
    match metrics
        .chain(also)
        .find(|(_, metric)| !metric.is_of_test_samples())
    {
        None => Ok(()),
        Some((key, metric)) => Err((
            key.to_owned(),
            format!(
                "has \"{metric}\", which no noise covers: a private selection shows \
                 test_accuracy, test_rmse or test_loss"
            ),
        )),
    }
}

/// Returns whether two dotted keys are equal, or one is a table that contains the other.
fn overlap(one: &str, other: &str) -> bool {
    let mut pairs = one.split('.').zip(other.split('.'));
    pairs.all(|(one, other)| one == other)
}

/// Returns the dimensions of the table `at`: the variants first, then the grid in the order of the
/// file.
fn dimensions(
    at: &str,
    grid: &Table,
    raw_variants: &[RawVariant],
    is_cumulative: bool,
) -> Result<Vec<Dimension>, Wrong> {
    let mut dimensions = Vec::new();
    if !raw_variants.is_empty() {
        dimensions.push(variants(at, raw_variants, is_cumulative)?);
    } else if is_cumulative {
        let reason = "adds up variants, but there are none".to_owned();
        return Err((format!("{at}.cumulative"), reason));
    }
    for (key, value) in dotted(grid) {
        let wrong = |reason: &str| (format!("{at}.grid.{key}"), reason.to_owned());
        let Value::Array(values) = value else {
            return Err(wrong("is one value: give a list, like [1, 2]"));
        };
        if values.is_empty() {
            return Err(wrong("is empty: give at least one value"));
        }
        let taken = dimensions.iter().flat_map(|d: &Dimension| &d.levels);
        if taken
            .flat_map(|l| &l.settings)
            .any(|(other, _)| *other == key)
        {
            return Err(wrong("is also set by a variant: leave it to one of them"));
        }
        let dimension = Dimension::of_key(&key, &values);
        unique(&dimension).map_err(|label| wrong(&format!("has {label} twice")))?;
        dimensions.push(dimension);
    }
    let keys = dimensions.iter().flat_map(|d| &d.levels);
    let mut keys = keys.flat_map(|level| &level.settings).map(|(key, _)| key);
    match keys.find(|key| *key == "seed" || *key == "name" || *key == "evaluate_every") {
        None => Ok(dimensions),
        Some(key) => Err((key.clone(), "cannot be swept: see `sweep.seeds`".to_owned())),
    }
}

fn variants(at: &str, raw: &[RawVariant], is_cumulative: bool) -> Result<Dimension, Wrong> {
    let mut sum = Vec::new();
    let levels = raw.iter().map(|variant| {
        let own: Vec<(String, Value)> = dotted(&variant.set);
        if is_cumulative {
            sum.extend(own.iter().cloned());
        }
        Level {
            label: variant.label.clone(),
            settings: if is_cumulative { sum.clone() } else { own },
        }
    });
    let dimension = Dimension {
        name: Dimension::VARIANTS.to_owned(),
        levels: levels.collect(),
    };
    unique(&dimension).map_err(|label| {
        (
            format!("{at}.variants"),
            format!("has the label {label} twice"),
        )
    })?;
    Ok(dimension)
}

/// Checks that row names are unique.
fn unique(dimension: &Dimension) -> Result<(), String> {
    let labels: Vec<&String> = dimension.levels.iter().map(|level| &level.label).collect();
    let twice = (1..labels.len()).find(|index| labels[..*index].contains(&labels[*index]));
    twice.map_or(Ok(()), |index| Err(labels[index].clone()))
}

/// Returns dotted keys and their values. `"a.b" = ..` and `a.b = ..` mean the same, although TOML
/// makes tables of the second. Under a quoted key with a dot, a table is a value.
fn dotted(table: &Table) -> Vec<(String, Value)> {
    let mut pairs = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) if !key.contains('.') => {
                let inner = dotted(inner).into_iter();
                pairs.extend(inner.map(|(rest, value)| (format!("{key}.{rest}"), value)));
            }
            other => pairs.push((key.clone(), other.clone())),
        }
    }
    pairs
}

/// Returns the seeds. A count starts from the experiment's own seed.
fn numbers(seeds: RawSeeds, base: &Table) -> Result<Vec<u64>, String> {
    let first = base.get("seed").and_then(Value::as_integer).unwrap_or(0);
    let first = u64::try_from(first).unwrap_or(0);
    let seeds: Vec<u64> = match seeds {
        RawSeeds::Count(count) => (first..).take((count as usize).min(MAX_RUNS + 1)).collect(),
        RawSeeds::List(seeds) => seeds,
    };
    let mut known = HashSet::new();
    match seeds.iter().find(|seed| !known.insert(**seed)) {
        Some(seed) => Err(format!("has {seed} twice")),
        None if seeds.is_empty() => Err("has no seeds: give at least one".to_owned()),
        None => Ok(seeds),
    }
}

/// Returns a name for the common part of all runs, independent of the order of its keys.
fn fingerprint(base: &Table, candidates: Option<&Value>) -> String {
    let mut base = base.clone();
    base.extend(candidates.map(|candidates| ("sweep.private".to_owned(), candidates.clone())));
    for key in ["name", "seed", "evaluate_every"] {
        base.remove(key);
    }
    // JSON sorts keys.
    let text = serde_json::to_string(&serde_json::to_value(&base).unwrap_or_default());
    format!(
        "{:08x}",
        crc32fast::hash(text.unwrap_or_default().as_bytes())
    )
}

#[cfg(test)]
mod tests;
