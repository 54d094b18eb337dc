//! From a sensor's counts to the model, in both arithmetics: features computed on a board with the
//! core lead to the same model as features computed by the simulation.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::config::Config;
use crate::run::{self, Control};
use smolfed_core::window::{Feature, Measure, Recipe, Scale};
use smolfed_data::DataFolders;

const EXPERIMENT: &str = "name = \"counts\"
method = \"dp-fed\"
rounds = 3

[data]
source = \"csv\"
path = \"counts.csv\"
label = \"label\"
device_column = \"device\"
classes = [\"slow\", \"fast\"]

[cohort]
sampling = \"full\"

[train]
epochs = 2
batch_size = 5
learning_rate = 0.5

[privacy]
noise_multiplier = 0
clip_norm = 1.0
";

const LENGTH: usize = 16;
const CHANNELS: usize = 2;
const DEVICES: usize = 5;
const WINDOWS: usize = 6;
/// Binary places of a feature.
const FRACTION: u8 = 5;
/// Counts per unit, as a power of two.
const UNIT_BITS: u8 = 11;

fn recipe() -> Recipe {
    let features = [Feature::Mean, Feature::Deviation, Feature::Minimum];
    Recipe::new(LENGTH, &features, &[1, 3, 9], Measure::Amplitude).unwrap()
}

/// Returns a count: waves of a class, multiples of 32 in the first channel, whose features have
/// halves.
fn count(window: usize, channel: usize, step: usize) -> i16 {
    let class = window % 2;
    let wave = [0, 700, 1_000, 700, 0, -700, -1_000, -700][step * (1 + class) % 8];
    match channel {
        0 => (wave / 32 + window as i16 * 3 - 40) * 32,
        _ => wave * 3 + (window * 89 + step * 37) as i16 % 300,
    }
}

fn label(window: usize) -> &'static str {
    ["slow", "fast"][window % 2]
}

/// Returns the bits of the model of a run on this table.
fn model(table: &str, settings: &[&str]) -> Vec<u32> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("counts.csv"), table).unwrap();
    let overrides: Vec<_> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let config = Config::parse(EXPERIMENT, "the test", &overrides).unwrap();
    let folders = DataFolders::of_experiment(Some(&dir.path().join("counts.toml")));
    let (experiment, federation) = run::prepare(config, &folders).unwrap();
    let control = Control {
        stop: &AtomicBool::new(false),
        checkpoint_every: Duration::MAX,
        on_round: &mut |_| {},
    };
    let result = run::execute(&experiment, &federation, None, control).unwrap();
    result.model.iter().map(|x| x.to_bits()).collect()
}

/// Returns the recordings, from which the simulation computes features.
fn recordings() -> String {
    let mut rows = String::from("device,series,label,x,y\n");
    for window in 0..DEVICES * WINDOWS {
        let (device, label) = (window / WINDOWS, label(window));
        for step in 0..LENGTH {
            let (x, y) = (count(window, 0, step), count(window, 1, step));
            rows += &format!("{device},{window},{label},{x},{y}\n");
        }
    }
    rows
}

/// Returns a table of a board's features for each window.
fn table(features: impl Fn(usize) -> Vec<f32>) -> String {
    let count = CHANNELS * recipe().feature_count();
    let names: Vec<String> = (0..count).map(|at| format!("f{at}")).collect();
    let mut rows = format!("device,label,{}\n", names.join(","));
    for window in 0..DEVICES * WINDOWS {
        let values: Vec<String> = features(window).iter().map(f32::to_string).collect();
        let (device, label) = (window / WINDOWS, label(window));
        rows += &format!("{device},{label},{}\n", values.join(","));
    }
    rows
}

/// Computes the features as firmware in integers: counts, and their scale.
fn in_integers(window: usize) -> Vec<f32> {
    let recipe = recipe();
    let mut features = vec![0; CHANNELS * recipe.feature_count()];
    let sample = |channel, step| count(window, channel, step);
    let mut work = vec![0; recipe.work_count()];
    recipe
        .counts_into(sample, &mut work, &mut features)
        .unwrap();
    let scale = Scale::new(0, 1, UNIT_BITS - FRACTION).unwrap();
    let unit = f32::from(1_u16 << FRACTION);
    let integers = features.iter().map(|x| scale.to_i8(*x).0);
    integers.map(|x| f32::from(x) / unit).collect()
}

/// Computes the features as firmware in `f32`.
fn in_numbers(window: usize) -> Vec<f32> {
    let recipe = recipe();
    let mut features = vec![0.0; CHANNELS * recipe.feature_count()];
    let sample = |channel, step| f32::from(count(window, channel, step));
    let mut work = vec![0.0; recipe.work_count()];
    recipe
        .features_into(sample, &mut work, &mut features)
        .unwrap();
    let unit = f32::from(1_u16 << UNIT_BITS);
    features.iter().map(|x| x / unit).collect()
}

#[test]
fn a_board_and_the_simulator_have_the_same_model_of_the_same_counts() {
    let window = concat!(
        "data.window={length=16,features=[\"mean\",\"deviation\",\"minimum\"],",
        "bands=[1,3,9],measure=\"amplitude\"}"
    );
    let simulated = [
        "data.series_column=series",
        "data.scale={mean=0,std=2048}",
        window,
    ];
    let integers = [
        "simulation.arithmetic=integer",
        "simulation.integer={features=\"i8\",fraction=5}",
    ];
    let found = model(&table(in_numbers), &["data.scale=none"]);
    assert_eq!(found, model(&recordings(), &simulated));
    let found = model(
        &table(in_integers),
        &[&integers[..], &["data.scale=none"]].concat(),
    );
    let counts = [&integers[..], &simulated, &["data.window.counts=[1]"]].concat();
    assert_eq!(found, model(&recordings(), &counts));
    assert!(found.iter().any(|x| *x != 0), "nothing was learned");
}
