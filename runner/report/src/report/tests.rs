use std::collections::BTreeMap;

use super::markup::assert_well_formed;
use super::*;
use smolfed_accounting::accountant::EstimateKind;
use smolfed_accounting::{
    Accountant, ClipNorm, Delta, Mechanism, NoiseMultiplier, PrivacyEvent, PrivacyUnit, Sampling,
    TrustModel,
};
use smolfed_engine::config::{Config, DEFAULT, Override};
use smolfed_engine::evaluation::assessment::FinalAssessment;
use smolfed_engine::evaluation::devices::{DeviceFigures, DeviceReport, ModelFigures};
use smolfed_engine::evaluation::quantiles::Quantiles;
use smolfed_engine::evaluation::samples::Evaluation;
use smolfed_engine::membership::{Attack, Roc};
use smolfed_engine::representation::{Dot, Picture};
use smolfed_engine::round::{RoundRecord, SimulationOnly, Spectrum};
use smolfed_engine::run::directory::model_file::ModelFile;
use smolfed_engine::tables::SelectionConfig;
use smolfed_release::condition::Condition;
use smolfed_release::statement::{PrivacyStatement, Subject};

mod answers;
mod baseline;
mod windows;

/// Returns a run of `rounds` rounds with everything that a run can have.
fn complete(rounds: u32) -> ReportInput {
    let rounds_key = Override::new("rounds", i64::from(rounds).into());
    ReportInput {
        config: Config::parse(DEFAULT, "the default", &[rounds_key]).unwrap(),
        records: (0..rounds).map(record).collect(),
        statements: vec![statement(1.4, rounds)],
        spectrum: Some(Spectrum {
            clean: Some(vec![1e-4, 1e-5, 1e-7, 0.0]),
            noisy: vec![1e-3; 4],
            denoised: vec![1e-3, 1e-4, 1e-4, 1e-5],
        }),
        model: Some(ModelFile {
            weights: (0..640).map(|i| (i % 17) as f32 / 17.0 - 0.5).collect(),
            biases: vec![0.0; 10],
            features: 64,
            axes: vec![8, 8],
            ..ModelFile::default()
        }),
        devices: Some(devices()),
        assessment: Some(assessment()),
        membership: vec![Attack {
            model: "this model".to_owned(),
            roc: Roc::of_losses(&[0.1, 0.2, 0.4], &[0.3, 0.5]).unwrap(),
        }],
        representation: Some(picture()),
        audience: Audience::Owner,
    }
}

/// Every private figure of the input has a value that the owner's page shows and the public one
/// does not.
#[test]
fn a_public_page_has_only_what_epsilon_covers() {
    let mut input = complete(3);
    input
        .records
        .iter_mut()
        .for_each(|record| record.cohort = 47);
    assert!(input.config.has_secret_cohorts());
    let (own, public) = (page(&input), page(&input.clone().for_public()));
    for private in [
        page::BADGE,
        "47.0 of ",
        "Nearest neighbours",
        "Norms of the updates",
        "How are devices served?",
        "Information leakage",
        "validation",
        "How to repeat this run",
        "config.toml",
    ] {
        let is_there = |page: &str| page.to_lowercase().contains(&private.to_lowercase());
        assert!(is_there(&own), "{private}");
        assert!(!is_there(&public), "{private}");
    }
    for kept in [
        "Test accuracy",
        "The weights",
        "expected; each one by chance",
        "for the public",
    ] {
        assert!(public.contains(kept), "{kept}");
    }
}

/// If ε does not bound everything released, the model is left out as well.
#[test]
fn a_public_page_of_an_uncovered_run_has_no_figure_of_the_model() {
    let mut input = complete(3);
    let open = input.statements[0]
        .clone()
        .with_note(Condition::InitialModel);
    input.statements = vec![open];
    let public = page(&input.for_public());
    assert!(public.contains("model.init"));
    for left_out in ["Test accuracy", "Weights as images", "The figures"] {
        assert!(!public.contains(left_out), "{left_out}");
    }
}

/// Returns an assessment of three classes.
fn assessment() -> FinalAssessment {
    serde_json::from_str(
        r#"{
            "part": "test", "is_simulation_only": false, "rows": 10, "loss": 0.5, "accuracy": 0.7,
            "f1": 0.6, "accuracy_of_majority": 0.4, "confusion": [[3, 1, 0], [0, 2, 1], [1, 0, 2]]
        }"#,
    )
    .unwrap()
}

/// Returns a picture of three classes, two of them with a name.
fn picture() -> Picture {
    let dot = |index: u16| Dot {
        x: f32::from(index % 7),
        y: f32::from(index % 5),
        class: index % 3,
    };
    Picture {
        eigenvalues: vec![1.0, 0.5, 1e-4, 0.0],
        explained: [0.5, 0.25],
        points: (0..30).map(dot).collect(),
        class_names: vec!["cat".to_owned(), "dog".to_owned()],
    }
}

/// Returns three devices with figures of all kinds.
fn devices() -> DeviceReport {
    let device = |index: u32| {
        let figure = |base: f64| Some(base + 0.01 * f64::from(index));
        DeviceFigures {
            device: index.to_string(),
            number: Some(index),
            samples: 10,
            models: ModelFigures {
                shared: figure(0.5),
                own: figure(0.7),
                tuned: figure(0.72),
                alone: figure(0.6),
            },
        }
    };
    DeviceReport {
        labels: None,
        diverged: Vec::new(),
        is_error: false,
        devices: (0..3).map(device).collect(),
    }
}

fn record(round: u32) -> RoundRecord {
    let part = f64::from(round + 1);
    let quality = Some(Evaluation {
        loss: 2.0 / part,
        accuracy: Some(1.0 - 0.5 / part),
        rmse: None,
    });
    RoundRecord {
        round,
        cohort: 50,
        epsilon: Some(0.1 * part),
        learning_rate: 0.1,
        clip_norm: None,
        ages: Vec::new(),
        wasted: None,
        unclipped_share: None,
        beyond_grid: None,
        answers: Vec::new(),
        score: None,
        experts: Vec::new(),
        kept: Vec::new(),
        test: quality,
        test_is_simulation_only: false,
        burned: false,
        simulation_only: SimulationOnly {
            trained: 49,
            left_out: BTreeMap::new(),
            train_loss: Some(1.5 / part),
            update_norm: Quantiles::new(vec![0.1, 0.3, 0.5]),
            clipped_share: 0.5,
            validation: quality,
            knn_accuracy: Some(0.9 - 0.5 / part),
            probe_accuracy: Some(0.95 - 0.5 / part),
            ..SimulationOnly::default()
        },
        seconds: 0.01,
        origin: BTreeMap::new(),
    }
    .with_origins(false)
}

fn statement(noise_multiplier: f64, rounds: u32) -> PrivacyStatement {
    let event = PrivacyEvent {
        mechanism: Mechanism::Gaussian {
            noise_multiplier: NoiseMultiplier::new(noise_multiplier).unwrap(),
        },
        sampling: Sampling::uniform(1000, 50).unwrap(),
        trust: TrustModel::Central,
        unit: PrivacyUnit::Device,
        count: u64::from(rounds),
        releases: 1,
        devices_per_user: std::num::NonZeroU32::MIN,
    };
    let delta = Delta::new(5e-4).unwrap();
    let estimate = Accountant::Rdp.epsilon(&[event], delta).unwrap();
    PrivacyStatement::new(&estimate, &[event], Some(ClipNorm::new(0.3).unwrap())).unwrap()
}

/// Renders the page and checks it.
fn page(input: &ReportInput) -> String {
    let html = render(input);
    assert_well_formed(&html);
    assert_eq!(html, render(input), "the same input, another page");
    let outside = html.replace("http://www.w3.org/2000/svg", "");
    for mark in [
        "http://", "https://", "<script", "<link", "@import", "url(", "NaN",
    ] {
        assert!(!outside.contains(mark), "the page has {mark}");
    }
    html
}

#[test]
fn a_complete_run_has_every_section() {
    let html = page(&complete(30));
    let statement = statement(1.4, 30);
    let marks = [
        "98.33 %",
        "Laplacian smoothing",
        "Spectrum of the averaged update",
        "Weights as images",
        "clip norm",
        "every drawn device trained",
        "smolfed run config.toml",
        "smoothing_factor",
    ];
    for mark in marks {
        assert!(html.contains(mark), "`{mark}` is missing");
    }
    assert_eq!(html.matches("<img").count(), 10);
    assert!(html.contains(&page::prose(&statement.in_words())));
    for key in serde_json::to_value(&statement)
        .unwrap()
        .as_object()
        .unwrap()
        .keys()
    {
        assert!(html.contains(&format!(">{key}<")), "{key} is missing");
    }
}

#[test]
fn what_reads_private_data_is_marked() {
    let with = page(&complete(30));
    // The headline, the cohort, accuracy, loss, norms, clipping, membership, spectrum, three about
    // devices, three about representations, and the explanation.
    assert_eq!(with.matches(page::BADGE).count(), 15);
    assert!(with.contains(&*html::escape(page::BADGE_MEANING)));

    let mut input = complete(30);
    for record in &mut input.records {
        record.simulation_only = SimulationOnly::default();
    }
    input.config.privacy.clip_norm = None;
    input.spectrum.as_mut().unwrap().clean = None;
    input.membership = Vec::new();
    input.devices = None;
    input.representation = None;
    let without = page(&input);
    // The cohort and the explanation.
    assert_eq!(without.matches(page::BADGE).count(), 2);
    assert!(!without.contains("un-noised") && !without.contains("validation<"));
}

#[test]
fn text_from_outside_is_escaped() {
    let attack = "<img src=x onerror=\"alert('1')\">&";
    let mut input = complete(2);
    input.config.name = attack.to_owned();
    let reasons = &mut input.records[0].simulation_only.left_out;
    reasons.insert(attack.to_owned(), 3);
    let model = input.model.as_mut().unwrap();
    model.class_names = vec![attack.to_owned(); 10];
    input.statements[0].notes.push(attack.to_owned());
    input.representation.as_mut().unwrap().class_names = vec!["<&>".to_owned(); 3];
    let html = page(&input);
    assert!(!html.contains("<img src=x"));
    assert!(html.matches("&lt;img src=x").count() >= 12);
    assert_eq!(html.matches(">&lt;&amp;&gt;<").count(), 3);

    let model = input.model.as_mut().unwrap();
    (model.axes, model.features) = (vec![], 640);
    model.feature_names = vec![attack.to_owned(); 640];
    assert!(!page(&input).contains("<img src=x"));
}

#[test]
fn one_round_is_a_run() {
    let html = page(&complete(1));
    assert!(html.contains("50.00 %") && html.contains("<circle"));
}

#[test]
fn ten_thousand_rounds_stay_a_small_file() {
    let html = page(&complete(10_000));
    assert!(html.len() < 400_000, "{} bytes", html.len());
}

/// The card has the figure that judges the method, and a finite ε if there is one.
#[test]
fn the_headline_is_the_methods_own() {
    let mut input = complete(5);
    let html = page(&input);
    assert!(html.contains("Accuracy on a device") && html.contains(">73.00 %<"));
    assert!(html.contains("fine-tuned, mean over 3 devices; shared model 51.00 %"));
    input.devices = None;
    assert!(page(&input).contains("Test accuracy"));
    let (mut matrices, mut open) = (statement(1.4, 5), statement(1.4, 5));
    matrices.subject = Subject::CorrelationMatrices;
    open.epsilon = f64::INFINITY;
    input.statements = vec![open, matrices];
    let html = page(&input);
    assert!(html.contains("Privacy of the matrices") && html.contains("encoder is not protected"));
}

/// The final model, and its confusions: a matrix, or a list for many classes.
#[test]
fn the_final_model_is_shown_with_its_confusions() {
    let mut input = complete(5);
    let html = page(&input);
    assert!(html.contains("The final model on test samples") && html.contains("F1 (macro)"));
    assert!(html.contains("Confusion matrix"));
    let classes = input.assessment.as_mut().unwrap().figures.classes.as_mut();
    classes.unwrap().confusion = vec![vec![1; 40]; 40];
    assert!(page(&input).contains("Most frequent confusions"));
}

#[test]
fn a_run_without_evaluation_says_so() {
    let mut input = complete(5);
    input.devices = None;
    for record in &mut input.records {
        record.test = None;
        record.simulation_only.validation = None;
        record.simulation_only.train_loss = None;
        record.simulation_only.probe_accuracy = None;
        record.simulation_only.knn_accuracy = None;
    }
    let html = page(&input);
    assert!(html.contains("the model was not evaluated") && html.contains("never evaluated"));
}

#[test]
fn an_encoder_is_evaluated_by_its_representations() {
    let mut input = complete(5);
    input.devices = None;
    for record in &mut input.records {
        record.test = None;
        record.simulation_only.validation = None;
    }
    let html = page(&input);
    assert!(html.contains("Accuracy of the nearest neighbours") && html.contains(">80.00 %<"));
    let marks = [
        ">linear probe<",
        ">85.00 %<",
        "first component, 50 % of the variance",
        ">cat<",
        ">dog<",
        ">2</text>",
        "2 of 4 are above a hundredth",
    ];
    for mark in marks {
        assert!(html.contains(mark), "`{mark}` is missing");
    }
    for record in &mut input.records {
        record.simulation_only.probe_accuracy = None;
    }
    assert!(!page(&input).contains(">linear probe<"));
    // A collapsed encoder: only zeros.
    let picture = input.representation.as_mut().unwrap();
    picture.eigenvalues.fill(0.0);
    picture.points.fill(Dot::default());
    let html = page(&input);
    assert!(html.contains("Principal components") && !html.contains("Spectrum of the correlation"));
    input.representation = Some(Picture::default());
    assert!(!page(&input).contains("Principal components"));
    for record in &mut input.records {
        record.simulation_only = SimulationOnly::default();
    }
    assert!(!page(&input).contains("Representations"));
}

#[test]
fn sixty_two_classes_are_a_small_picture() {
    let mut input = complete(2);
    let before = page(&input).len();
    let picture = input.representation.as_mut().unwrap();
    let dot = |index: u16| Dot {
        x: f32::from(index % 29),
        y: f32::from(index % 31),
        class: index % 62,
    };
    picture.points = (0..600).map(dot).collect();
    let after = page(&input).len();
    assert!(after < before + 40_000, "{} bytes", after - before);
}

#[test]
fn regression_shows_its_error_and_bars() {
    let mut input = complete(5);
    for record in &mut input.records {
        record.test = Some(Evaluation {
            loss: 0.3,
            accuracy: None,
            rmse: Some(0.7746),
        });
        record.simulation_only.knn_accuracy = None;
        record.simulation_only.probe_accuracy = None;
        record.simulation_only.validation = None;
    }
    input.representation = None;
    input.devices = None;
    input.model = Some(ModelFile {
        weights: vec![0.5, -2.0, 0.0],
        biases: vec![0.25],
        features: 3,
        feature_names: ["age", "size", "none"].map(str::to_owned).to_vec(),
        ..ModelFile::default()
    });
    let html = page(&input);
    assert!(
        html.contains("Test rmse") && html.contains(">0.7746<") && !html.contains("accuracy, %")
    );
    let place = |name: &str| html.find(&format!(">{name}</th>")).unwrap();
    assert!(
        place("size") < place("age"),
        "the largest weight comes first"
    );
}

#[test]
fn no_noise_is_no_guarantee() {
    let mut input = complete(5);
    input.statements = vec![statement(0.0, 5)];
    input.config.privacy.clip_norm = None;
    for record in &mut input.records {
        record.epsilon = None;
    }
    let html = page(&input);
    assert!(html.contains("ε ∞") && html.contains("no privacy guarantee at all"));
    assert!(html.contains("card statement open") && !html.contains("clip norm 0"));
}

#[test]
fn a_run_that_has_not_ended_says_what_is_missing() {
    let mut input = complete(9);
    input.records.truncate(4);
    (input.statements, input.spectrum, input.model) = (vec![], None, None);
    let html = page(&input);
    for mark in [
        "stopped after 4 of 9 rounds",
        "no privacy statement",
        "no spectrum",
        "no model yet",
    ] {
        assert!(html.contains(mark), "`{mark}` is missing");
    }
    input.records.clear();
    page(&input);
}

#[test]
fn sensor_windows_and_tables_have_pictures_of_weights_too() {
    let mut input = complete(2);
    let model = input.model.as_mut().unwrap();
    model.axes = vec![4, 16];
    assert!(page(&input).contains("images wide"));
    input.model.as_mut().unwrap().axes = vec![];
    assert!(page(&input).contains("class=\"rows\""));
    // An invalid shape is ignored.
    input.model.as_mut().unwrap().axes = vec![7, 9];
    assert!(page(&input).contains("class=\"rows\""));
}

#[test]
fn left_out_devices_are_counted_by_reason() {
    let mut input = complete(3);
    for record in &mut input.records[1..] {
        let reasons = &mut record.simulation_only.left_out;
        reasons.insert("loss is not finite".to_owned(), 2);
    }
    let html = page(&input);
    let row = "loss is not finite</th><td class=\"number\">4</td><td class=\"number\">2</td>";
    assert!(html.contains(row));
}

#[test]
fn every_accountant_has_its_row() {
    let mut input = complete(3);
    let mut other = input.statements[0].clone();
    (other.accountant, other.kind) = (Accountant::Theorem1, EstimateKind::AsPublished);
    other.epsilon_low = Some(0.123_456);
    input.statements.push(other);
    let html = page(&input);
    assert!(html.contains("theorem-1") && html.contains("NOT a guarantee"));
    assert!(html.contains(">0.12345<"), "a lower bound is rounded down");
}

#[test]
fn a_directory_gives_the_same_page_twice() {
    let place = tempfile::tempdir().unwrap();
    let input = complete(3);
    let dir = RunDir::create(&place.path().join("run"), &input.config).unwrap();
    let bare = write(&dir).unwrap();
    assert!(
        std::fs::read_to_string(&bare)
            .unwrap()
            .contains("stopped after 0 of 3")
    );
    dir.write_privacy(&input.statements).unwrap();
    dir.write_diagnostics(input.spectrum.as_ref().unwrap())
        .unwrap();
    dir.write_representation(input.representation.as_ref().unwrap())
        .unwrap();
    let mut metrics = dir.metrics(0).unwrap();
    for record in &input.records {
        metrics.append(record).unwrap();
    }
    metrics.sync().unwrap();
    let first = std::fs::read_to_string(write(&dir).unwrap()).unwrap();
    let again = std::fs::read_to_string(write(&dir).unwrap()).unwrap();
    assert_eq!(first, again);
    let expected = render(&ReportInput {
        model: None,
        membership: Vec::new(),
        devices: None,
        assessment: None,
        ..input
    });
    assert_eq!(first, expected);

    std::fs::write(place.path().join("run/privacy.json"), "{").unwrap();
    assert!(matches!(write(&dir), Err(RunDirError::Damaged { .. })));
}

/// With another seed the run would state the cost of a selection without having been selected.
#[test]
fn a_selected_run_is_not_repeated_with_other_noise() {
    let mut input = complete(3);
    assert!(page(&input).contains("other noise"));
    input.config.privacy.selection = Some(SelectionConfig::default());
    let html = page(&input);
    assert!(html.contains("this run, bit for bit") && !html.contains("other noise"));
}
