use smolfed_core::question::Target;
use smolfed_core::stream::Root;

use super::answers::answer_here;
use super::ratio::{Interval, Noise, Ratio, Sums, deviates, onto_simplex};
use super::scale::ReleasedScale;
use super::{Answer, AskedQuestion, Inquiry};
use crate::config::{Config, Override};
use crate::experiment::Experiment;
use smolfed_data::DataFolders;
use smolfed_data::dataset::DeviceBuffer;
use smolfed_data::federation::{Federation, Unscaled};
use smolfed_data::{Dataset, Targets};
use smolfed_release::sum::ReleaseAt;

/// Simulations per question.
const SIMULATIONS: u64 = 400;
/// Number of simulations whose interval must cover the truth: 96 %. At a true 99 %, fewer are
/// covered with a probability of 9 · 10⁻⁷.
const COVERED: u64 = 384;

const CLASSES: &str = "method = \"dp-fed\"\nrounds = 1\nseed = 3\n[data]\nsource = \
                       \"synthetic\"\ndevices = 200\nsamples_per_device = 8\nfeatures = 3\n\
                       classes = 3\ntest = 4\nvalidation = 0\n[cohort]\nsampling = \"uniform\"\n\
                       cohort_size = 80\n[privacy]\nclip_norm = 0.5\nnoise_multiplier = 1.5\n\
                       delta = 1e-3\n[[questions]]\nkind = \"evaluate\"\nloss_bound = 3\n\
                       [[questions]]\nkind = \"confusion\"\n[[questions]]\nkind = \
                       \"histogram\"\n[[questions]]\nkind = \"histogram\"\nfeature = 1\nedges = \
                       [-1, 0, 0.5, 2]\n[[questions]]\nkind = \"moments\"\nbounds = [-2, \
                       3]\n[[questions]]\nkind = \"presence\"\n[[questions]]\nkind = \
                       \"count\"\n";

const VALUES: &str = "method = \"dp-fed\"\nrounds = 1\nseed = 3\n[data]\nsource = \
                      \"memory\"\ntask = \"regression\"\npartition = \"iid\"\ndevices = \
                      200\nscale = \"none\"\ntest = 0\n[cohort]\nsampling = \
                      \"poisson\"\ncohort_size = 80\n[privacy]\nclip_norm = \
                      0.5\nnoise_multiplier = 1.5\ndelta = 1e-3\n[model]\nkind = \
                      \"linear\"\n[[questions]]\nkind = \"evaluate\"\nloss_bound = \
                      4\n[[questions]]\nkind = \"histogram\"\nedges = [-1, 0, \
                      1]\n[[questions]]\nkind = \"presence\"\nfeature = 2\nedges = [1.5]\n";

/// Returns eight samples with values for each of 200 devices.
fn values() -> Dataset {
    let count = 1_600;
    let number = |i: usize| (i as f32 * 0.618_034).fract() * 4.0 - 2.0;
    let features: Vec<f32> = (0..3 * count).map(number).collect();
    let targets = features
        .chunks(3)
        .map(|x| x[0] / 2.0 - x[1] + x[2] * x[2] / 4.0);
    let targets = Targets::Values(targets.collect());
    Dataset::new(features, 3, targets).unwrap()
}

fn experiment(text: &str, settings: &[&str]) -> (Experiment, Federation) {
    let overrides: Vec<Override> = settings.iter().map(|s| s.parse().unwrap()).collect();
    let config = Config::parse(text, "test", &overrides).unwrap();
    let folders = DataFolders::new(Vec::new());
    let federation = match text == VALUES {
        true => Federation::of_samples(values(), 0, &config.data, config.seed),
        false => Federation::new(&config.data, &folders, config.seed),
    };
    let federation = federation.unwrap();
    let experiment = Experiment::new(config, &federation).unwrap();
    (experiment, federation)
}

/// Returns a model that is right about some samples.
fn model(experiment: &Experiment) -> Vec<f32> {
    let count = experiment.task().parameter_count();
    (0..count)
        .map(|i| ((i * 7 % 5) as f32 - 2.0) / 3.0)
        .collect()
}

/// Simulates a question. Returns the answer and the devices that answered.
fn simulate(
    (experiment, federation): (&Experiment, &Federation),
    asked: &AskedQuestion,
    seed: u64,
    absent: u32,
) -> (Answer, Vec<u32>) {
    let root = Root::from_seed(seed);
    let number = 1;
    let mut cohort = asked.attendance.cohort(&root, 0, number);
    // This many of ten devices are absent, different ones in each simulation.
    let is_absent = |device: u32| {
        let mixed = (u64::from(device) + 1).wrapping_mul(seed * 2 + 0x9E37_79B9_7F4A_7C15);
        (mixed >> 33) % 10 < u64::from(absent)
    };
    let size = cohort.len();
    cohort.retain(|device| !is_absent(*device));
    let model = model(experiment);
    let inquiry = Inquiry {
        asked,
        task: experiment.task(),
        model: &model,
        format: experiment.method.properties().arithmetic.feature_format(),
        training: experiment.training(),
        root: &root,
        round: 0,
        number,
    };
    let (sum, outcomes) = answer_here(&inquiry, None, federation, &cohort);
    assert!(outcomes.iter().all(smolfed_release::Outcome::is_trained));
    let at = ReleaseAt {
        number,
        learning_rate: 1.0,
        cohort_size: size,
    };
    (
        asked.answer(&sum.release(&asked.release, &root, &at)),
        cohort,
    )
}

/// A sample with its true evaluation.
struct Seen {
    features: Vec<f64>,
    target: Target,
    predicted: usize,
    loss: f64,
}

/// Evaluates all samples of all devices by the model, in `f64`.
fn seen(experiment: &Experiment, federation: &Federation) -> Vec<Vec<Seen>> {
    let model = model(experiment);
    let outputs = experiment.task().output_count();
    let has_classes = federation.class_count().is_some();
    let mut buffer = DeviceBuffer::default();
    let device = |device: u32, buffer: &mut DeviceBuffer| {
        let view = federation.device(device, buffer);
        let target = |row: usize| match has_classes {
            true => Target::Class(view.label(row)),
            false => Target::Value(view.value(row)),
        };
        let rows = 0..view.len();
        rows.map(|row| see(&model, outputs, view.features(row), target(row)))
            .collect()
    };
    (0..federation.device_count())
        .map(|id| device(id, &mut buffer))
        .collect()
}

fn see(model: &[f32], outputs: usize, features: &[f32], target: Target) -> Seen {
    let features: Vec<f64> = features.iter().copied().map(f64::from).collect();
    let width = features.len();
    let score = |output: usize| {
        let weights = &model[output * width..(output + 1) * width];
        let products = weights
            .iter()
            .zip(&features)
            .map(|(w, x)| f64::from(*w) * x);
        products.sum::<f64>() + f64::from(model[outputs * width + output])
    };
    let scores: Vec<f64> = (0..outputs).map(score).collect();
    let (predicted, loss) = match target {
        Target::Class(class) if outputs == 1 => {
            let sign = f64::from(class) * 2.0 - 1.0;
            (
                usize::from(scores[0] > 0.0),
                (-sign * scores[0]).exp().ln_1p(),
            )
        }
        Target::Value(value) => (0, (scores[0] - f64::from(value)).powi(2)),
        Target::Class(class) => {
            let best = (0..outputs)
                .rev()
                .max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
            let total: f64 = scores.iter().map(|score| score.exp()).sum();
            (best.unwrap(), total.ln() - scores[usize::from(class)])
        }
    };
    Seen {
        features,
        target,
        predicted,
        loss,
    }
}

/// Returns the mean over devices of the mean over their samples.
fn mean(devices: &[Vec<Seen>], of: impl Fn(&Seen) -> f64) -> f64 {
    let of_device =
        |samples: &Vec<Seen>| samples.iter().map(&of).sum::<f64>() / samples.len() as f64;
    devices.iter().map(of_device).sum::<f64>() / devices.len() as f64
}

fn is(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}

fn class(sample: &Seen) -> usize {
    match sample.target {
        Target::Class(class) => class.into(),
        Target::Value(_) => usize::MAX,
    }
}

/// Returns the feature, or the value, of a histogram.
fn counted(feature: Option<usize>) -> impl Fn(&Seen) -> f64 {
    move |sample| match (feature, sample.target) {
        (Some(feature), _) => sample.features[feature],
        (None, Target::Value(value)) => f64::from(value),
        (None, Target::Class(class)) => f64::from(class),
    }
}

/// Returns the true value of an estimate, from all devices.
fn truth(
    question: usize,
    name: &str,
    devices: &[Vec<Seen>],
    edges: (Option<usize>, &[f64]),
) -> f64 {
    let number = |at: usize| {
        let words: Vec<&str> = name.split(' ').collect();
        words[at].parse::<usize>().unwrap()
    };
    let share = |of: &dyn Fn(&Seen) -> bool| mean(devices, |x| is(of(x)));
    let (feature, edges) = edges;
    let value = counted(feature);
    let quantile = |q: f64| {
        let mut all: Vec<f64> = devices.iter().flatten().map(&value).collect();
        all.sort_by(f64::total_cmp);
        all[(q * all.len() as f64) as usize]
    };
    let bin = |x: &Seen| edges.iter().filter(|edge| value(x) >= **edge).count();
    let clipped = |x: &Seen, feature: usize| x.features[feature].clamp(-2.0, 3.0);
    match (question, name) {
        (_, "accuracy") => share(&|x| x.predicted == class(x)),
        (_, "loss") => mean(devices, |x| x.loss.min(3.0)),
        (_, "squared error") => mean(devices, |x| x.loss.min(4.0)),
        (_, "median") => quantile(0.5),
        (_, "lower quartile") => quantile(0.25),
        (_, "upper quartile") => quantile(0.75),
        (_, name) if name.starts_with("recall") => {
            let c = number(3);
            let right = share(&|x| class(x) == c && x.predicted == c);
            right / share(&|x| class(x) == c)
        }
        (_, name) if name.starts_with("precision") => {
            let c = number(3);
            let right = share(&|x| class(x) == c && x.predicted == c);
            right / share(&|x| x.predicted == c)
        }
        (_, name) if name.contains(" as class ") => {
            let (truth, predicted) = (number(1), number(4));
            share(&|x| class(x) == truth && x.predicted == predicted)
        }
        (_, name) if name.starts_with("mean of") => mean(devices, |x| clipped(x, number(3))),
        (_, name) if name.starts_with("deviation") => {
            let square = mean(devices, |x| clipped(x, number(3)).powi(2));
            let mean = mean(devices, |x| clipped(x, number(3)));
            (square - mean * mean).sqrt()
        }
        (_, name) if name.starts_with("class ") => share(&|x| class(x) == number(1)),
        (_, name) => {
            let names = bin_names(edges);
            let wanted = names.iter().position(|found| found == name).unwrap();
            share(&|x| bin(x) == wanted)
        }
    }
}

fn bin_names(edges: &[f64]) -> Vec<String> {
    let inner = edges
        .windows(2)
        .map(|pair| format!("{} to {}", pair[0], pair[1]));
    let first = std::iter::once(format!("below {}", edges[0]));
    let last = std::iter::once(format!("{} and above", edges[edges.len() - 1]));
    first.chain(inner).chain(last).collect()
}

/// Returns the share of devices with a sample in a bin.
fn presence(name: &str, devices: &[Vec<Seen>], (feature, edges): (Option<usize>, &[f64])) -> f64 {
    let value = counted(feature);
    let is_in = |x: &Seen| match name.strip_prefix("class ") {
        Some(number) => class(x) == number.parse::<usize>().unwrap(),
        None => {
            let bin = edges.iter().filter(|edge| value(x) >= **edge).count();
            bin_names(edges)[bin] == name
        }
    };
    let has = |samples: &&Vec<Seen>| samples.iter().any(is_in);
    devices.iter().filter(has).count() as f64 / devices.len() as f64
}

/// Counts how often the intervals of each estimate cover the truth.
fn covered(text: &str, settings: &[&str], absent: u32) -> Vec<(String, u64)> {
    let (experiment, federation) = experiment(text, settings);
    let devices = seen(&experiment, &federation);
    let mut counts = Vec::new();
    for (table, asked) in experiment
        .config()
        .questions
        .iter()
        .zip(experiment.questions())
    {
        let edges = table.edges.clone().unwrap_or_default();
        let edges = (table.feature.map(usize::from), &edges[..]);
        let mut of_question: Vec<(String, u64)> = Vec::new();
        for seed in 0..SIMULATIONS {
            let place = (&experiment, &federation);
            let (answer, cohort) = simulate(place, asked, seed, absent);
            let present = cohort.len() as f64;
            let all = std::iter::once(&answer.answered).chain(&answer.estimates);
            for (at, estimate) in all.enumerate() {
                let name = estimate.name.as_str();
                let truth = match (asked.kind().name(), name) {
                    (_, "answered") | ("count", _) => present,
                    // These targets have the unit of the data.
                    (_, "rmse") => truth(at, "squared error", &devices, edges).sqrt(),
                    ("presence", name) => presence(name, &devices, edges),
                    (_, name) => truth(at, name, &devices, edges),
                };
                if of_question.len() <= at {
                    of_question.push((format!("{}: {name}", asked.name), 0));
                }
                of_question[at].1 += u64::from(estimate.covers(truth));
            }
        }
        counts.extend(of_question);
    }
    counts
}

fn are_covered(text: &str, settings: &[&str], absent: u32) {
    for (name, count) in covered(text, settings, absent) {
        assert!(count >= COVERED, "{name}: {count} of {SIMULATIONS}");
    }
}

/// Acceptance test with 400 simulations of every question. An interval with a nominal 99 % covers
/// the truth, which the test computes independently, in at least 96 % of them.
#[test]
fn intervals_cover_the_truth() {
    are_covered(CLASSES, &[], 0);
    are_covered(VALUES, &[], 0);
}

/// The same test with 30 % of the drawn devices absent: ratios do not count them.
#[test]
fn intervals_cover_the_truth_while_devices_are_absent() {
    are_covered(CLASSES, &[], 3);
    are_covered(VALUES, &[], 3);
}

/// The same test with each device adding its own noise, and with all devices asked.
#[test]
fn intervals_cover_the_truth_under_local_trust_and_of_all_devices() {
    let local = ["privacy.trust=\"local\"", "privacy.noise_multiplier=0.2"];
    are_covered(CLASSES, &local, 3);
    are_covered(CLASSES, &["cohort={sampling=\"full\"}"], 3);
}

/// The estimates improve with less noise. Without noise, and with all devices asked, they are
/// exact.
#[test]
fn answers_of_all_devices_without_noise_are_exact() {
    for text in [CLASSES, VALUES] {
        is_exact(text, &[], 1e-4);
    }
    is_exact(CLASSES, &TWO_CLASSES, 1e-4);
}

/// Devices that store features as integers evaluate rounded features and weights.
#[test]
fn answers_of_devices_with_integers_are_nearly_exact() {
    const I16: &str = "simulation.integer={features=\"i16\",fraction=12}";
    const I8: &str = "simulation.integer={features=\"i8\",fraction=5}";
    for (format, tolerance) in [(I16, 0.01), (I8, 0.05)] {
        let integers = ["simulation.arithmetic=\"integer\"", format];
        for text in [CLASSES, VALUES] {
            is_exact(text, &integers, tolerance);
        }
        is_exact(CLASSES, &[&TWO_CLASSES[..], &integers].concat(), tolerance);
    }
}

/// Settings for logistic regression.
const TWO_CLASSES: [&str; 2] = ["data.classes=2", "model.kind=\"logistic\""];

/// Checks that all devices without noise give the accuracy and loss of all samples.
fn is_exact(text: &str, settings: &[&str], tolerance: f64) {
    let without_noise = ["cohort={sampling=\"full\"}", "privacy.noise_multiplier=0"];
    let (experiment, federation) = experiment(text, &[&without_noise[..], settings].concat());
    let devices = seen(&experiment, &federation);
    let place = (&experiment, &federation);
    let evaluate = &experiment.questions()[0];
    let (answer, _) = simulate(place, evaluate, 1, 0);
    let first = &answer.estimates[1];
    let exact = truth(0, &first.name, &devices, (None, &[]));
    let [low, high] = first.interval.map(Option::unwrap);
    assert!(
        (first.value.unwrap() - exact).abs() < tolerance,
        "{first:?} {exact}"
    );
    assert!(high - low < 1e-3, "{first:?}");
    assert!((answer.answered.value.unwrap() - 200.0).abs() < 1e-3);
}

#[test]
fn deviates_are_those_of_a_gaussian() {
    for (confidence, expected) in [(0.99, 2.575_829_303_5), (0.95, 1.959_963_984_5)] {
        assert!((deviates(confidence) - expected).abs() < 1e-9);
    }
}

fn ratio(values: &[f64], std: f64, population: f64) -> Interval {
    let noise = Noise { std, population };
    Ratio::share([0], [0, 1]).of(&Sums { values, noise }, 2.0)
}

#[test]
fn a_ratio_without_noise_or_unseen_devices_is_a_point() {
    let found = ratio(&[30.0, 70.0], 0.0, 100.0);
    assert!((found.value - 0.3).abs() < 1e-12);
    assert!((found.high - found.low) < 1e-9, "{found:?}");
    // 100 of 10,000 devices: two deviations of at most sqrt(0.3 * 0.7 * 0.99 / 100).
    let found = ratio(&[30.0, 70.0], 0.0, 10_000.0);
    assert!((found.low - 0.218).abs() < 2e-3 && (found.high - 0.398).abs() < 2e-3);
}

#[test]
fn a_denominator_that_may_be_zero_leaves_everything_open() {
    for values in [[1.0, 1.0], [-3.0, 1.0], [0.0, 0.0], [3.0, -2.9]] {
        let found = ratio(&values, 10.0, 100.0);
        assert_eq!((found.low, found.high), (0.0, 1.0), "{values:?}");
        assert!((0.0..=1.0).contains(&found.value));
    }
}

#[test]
fn shares_are_projected_onto_those_that_add_up_to_one() {
    assert_eq!(onto_simplex(&[0.2, 0.3, 0.5]), [0.2, 0.3, 0.5]);
    assert_eq!(onto_simplex(&[2.0, 0.0]), [1.0, 0.0]);
    let found = onto_simplex(&[0.7, 0.5, 0.0]);
    assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!((found[0] - 0.6).abs() < 1e-12 && found[2] == 0.0);
    let found = onto_simplex(&[0.0, 0.0]);
    assert_eq!(found, [0.5, 0.5]);
}

#[test]
fn a_scale_has_the_unit_of_constants_and_leaves_categories() {
    let question = "questions=[{kind=\"moments\",bounds=[-8,8],noise_multiplier=1e-4}]";
    let (experiment, federation) = experiment(CLASSES, &[question]);
    let asked = &experiment.questions()[0];
    let (answer, _) = simulate((&experiment, &federation), asked, 5, 0);
    let of = |unscaled: &Unscaled| {
        let answers = std::slice::from_ref(&answer);
        ReleasedScale::of(experiment.questions(), answers, unscaled).unwrap()
    };
    let scale = of(&plain());
    // Pixels of up to 16, and a category.
    let pixels = Unscaled {
        unit: 16.0,
        indicators: vec![false, true, false],
    };
    let found = of(&pixels);
    assert_eq!(
        found.mean,
        [scale.mean[0] / 16.0, 0.0, scale.mean[2] / 16.0]
    );
    assert_eq!(
        found.std,
        [scale.std[0] / 16.0, 1.0 / 16.0, scale.std[2] / 16.0]
    );
    let pressure = ReleasedScale {
        mean: vec![101_325.26, 0.25],
        std: vec![5.034_56, 123_456.7],
    };
    let text = "data.scale={mean=[101325.260,0.2],std=[5.035,123456.7]}";
    assert_eq!(pressure.to_string(), text);
}

/// Returns features as they are in a file.
const fn plain() -> Unscaled {
    Unscaled {
        unit: 1.0,
        indicators: Vec::new(),
    }
}

/// The moments of [`CLASSES`] with almost no noise, and of one feature with much.
#[test]
fn the_scale_is_that_of_the_samples_or_no_smaller_than_the_noise() {
    let question = "questions=[{kind=\"moments\",bounds=[-8,8],noise_multiplier=1e-4}]";
    let (experiment, federation) = experiment(CLASSES, &[question, "cohort={sampling=\"full\"}"]);
    let asked = &experiment.questions()[0];
    let (answer, _) = simulate((&experiment, &federation), asked, 5, 0);
    let plain = plain();
    let scale = ReleasedScale::of(
        experiment.questions(),
        std::slice::from_ref(&answer),
        &plain,
    )
    .unwrap();
    let samples: Vec<Seen> = seen(&experiment, &federation)
        .into_iter()
        .flatten()
        .collect();
    for feature in 0..3 {
        let of = |power| {
            let values = samples
                .iter()
                .map(|seen| seen.features[feature].powi(power));
            values.sum::<f64>() / samples.len() as f64
        };
        let (mean, deviation) = (of(1), (of(2) - of(1) * of(1)).sqrt());
        assert!((scale.mean[feature] - mean).abs() < 0.01, "{scale}: {mean}");
        assert!(
            (scale.std[feature] / deviation - 1.0).abs() < 0.01,
            "{scale}: {deviation}"
        );
    }

    let noisy = "questions=[{kind=\"moments\",feature=1,bounds=[-8,8],noise_multiplier=50}]";
    let (experiment, federation) = self::experiment(CLASSES, &[noisy]);
    let (answer, _) = simulate((&experiment, &federation), &experiment.questions()[0], 5, 0);
    let scale = ReleasedScale::of(
        experiment.questions(),
        std::slice::from_ref(&answer),
        &plain,
    )
    .unwrap();
    assert_eq!(
        [scale.mean[0], scale.std[0], scale.mean[2], scale.std[2]],
        [0.0, 1.0, 0.0, 1.0]
    );
    assert!(answer.estimates[1].covers(0.0));
    assert_eq!(Some(scale.std[1]), answer.estimates[1].interval[1]);

    // Intervals that exclude every deviation leave that of the mean.
    let mut excluded = answer;
    excluded.estimates[0].interval = [Some(1.0), Some(1.5)];
    excluded.estimates[1].interval = [Some(0.0), Some(0.0)];
    let found = ReleasedScale::of(experiment.questions(), &[excluded], &plain).unwrap();
    assert_eq!(found.std, [1.0, 0.25, 1.0]);

    let set: Override = scale.to_string().parse().unwrap();
    let config = Config::parse(VALUES, "test", &[set]).unwrap();
    let constants = serde_json::to_value(&config.data).unwrap()["scale"].clone();
    assert!(
        constants["mean"][1].is_f64() && constants["std"][2] == 1.0,
        "{constants}"
    );
}
