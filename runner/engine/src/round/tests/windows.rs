//! Rounds that are time windows.

use super::Coming;
use super::resume::experiment;
use crate::attendance::Attendance;
use crate::attendance::buffered::Arrivals;
use crate::experiment::Experiment;
use crate::round::{RoundRecord, TrainingLoop};
use crate::source::Simulated;
use smolfed_data::Federation;

const BUFFERED: &str = "cohort={sampling=\"buffered\",cohort_size=9,staleness=1}";
const NO_NOISE: &str = "privacy.noise_multiplier=0 privacy.separation=1";

/// Returns devices, each with the version that it has trained from.
fn arrivals(pairs: &[(u32, u32)]) -> Arrivals {
    let (devices, versions) = pairs.iter().copied().unzip();
    Arrivals {
        devices,
        versions,
        wasted: Vec::new(),
    }
}

/// Returns the models before the first window and after each, with the records.
fn run(
    (experiment, federation): &(Experiment, Federation),
    schedule: &[&[(u32, u32)]],
) -> (Vec<Vec<f32>>, Vec<RoundRecord>) {
    let mut training = TrainingLoop::simulation(experiment, federation).unwrap();
    let devices = Simulated(federation);
    let arrivals = |round| arrivals(schedule[round as usize]);
    let mut source = Coming { devices, arrivals };
    let mut models = vec![training.global().to_vec()];
    let mut records = Vec::new();
    for _ in schedule {
        records.push(training.step(&mut source).unwrap().record);
        models.push(training.global().to_vec());
    }
    (models, records)
}

fn moved(models: &[Vec<f32>], round: usize) -> Vec<f64> {
    let pairs = models[round + 1].iter().zip(&models[round]);
    pairs
        .map(|(after, before)| f64::from(*after) - f64::from(*before))
        .collect()
}

/// A device's update is its displacement from its version, under the streams of that version, in
/// any window.
#[test]
fn an_update_counts_as_it_is_in_the_window_in_which_it_arrives() {
    let place = experiment(&format!("{BUFFERED} {NO_NOISE}"));
    let (in_time, _) = run(&place, &[&[(3, 0)], &[]]);
    // In between, another device's update moves the model.
    let (late, records) = run(&place, &[&[(5, 0)], &[(3, 0)]]);
    let [expected, found] = [moved(&in_time, 0), moved(&late, 1)];
    let largest = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    assert!(largest > 1e-3);
    let differ = expected
        .iter()
        .zip(&found)
        .any(|(a, b)| (a - b).abs() > 1e-6);
    assert!(!differ, "the same displacement");
    assert_eq!(
        (&records[0].ages, &records[1].ages),
        (&vec![1, 0], &vec![0, 1])
    );
    // From the newer model, the update differs.
    let (newer, _) = run(&place, &[&[(5, 0)], &[(3, 1)]]);
    assert_ne!(newer[2], late[2]);
}

#[test]
fn an_update_that_is_too_old_or_of_the_future_is_left_out() {
    let place = experiment(&format!("{BUFFERED} {NO_NOISE}"));
    let (models, _) = run(&place, &[&[(5, 0)], &[(3, 2)], &[(4, 0)]]);
    assert_eq!(models[1], models[2], "version 2 does not exist yet");
    assert_eq!(models[2], models[3], "version 0 is two windows old");
}

/// Whatever a source says, a device counts k times, in windows b apart.
#[test]
fn a_device_counts_no_more_often_than_is_accounted() {
    let limits = "privacy.noise_multiplier=0 privacy.separation=2 privacy.participations=1";
    let place = experiment(&format!("{BUFFERED} {limits}"));
    let (models, _) = run(&place, &[&[(3, 0)], &[(3, 1)], &[(3, 2)], &[(3, 3)]]);
    assert_ne!(models[0], models[1]);
    assert!(models[1..].iter().all(|model| *model == models[1]));
    assert_eq!(place.0.allowed().unwrap().participations(), 1);
    let apart = "privacy.noise_multiplier=0 privacy.separation=2";
    let place = experiment(&format!("{BUFFERED} {apart}"));
    // Four windows have two versions that are three apart.
    assert_eq!(place.0.allowed().unwrap().participations(), 2);
    let (models, _) = run(&place, &[&[(3, 0)], &[(3, 1)], &[(3, 2)], &[(3, 3)]]);
    let counts: Vec<bool> = models.windows(2).map(|pair| pair[0] != pair[1]).collect();
    assert_eq!(counts, [true, false, true, false]);
}

/// With only the newest version, a window is a round.
#[test]
fn windows_without_late_updates_are_rounds() {
    let schedule: [&[(u32, u32)]; 2] = [&[(1, 0), (4, 0), (9, 0)], &[(2, 1), (7, 1)]];
    let (windows, _) = run(&experiment(BUFFERED), &schedule);
    let (mut rounds, federation) = experiment(BUFFERED);
    rounds.attendance = Attendance::Drawn(rounds.sampling());
    let (models, _) = run(&(rounds, federation), &schedule);
    assert_eq!(models, windows);
}

/// A real device with uncovered updates reports at once that it cannot train. The window in which
/// it counts may therefore depend on its data. With its own noise, it does not.
#[test]
fn counts_of_windows_are_secret_where_a_device_declines_for_its_data() {
    for (trust, is_simulation, is_secret) in [
        ("central", true, false),
        ("central", false, true),
        ("local", false, false),
    ] {
        let (mut experiment, _) = experiment(&format!("{BUFFERED} privacy.trust=\"{trust}\""));
        experiment.release.is_simulation = is_simulation;
        assert_eq!(experiment.has_secret_sizes(), is_secret, "{trust}");
        let record = RoundRecord {
            ages: vec![2, 1],
            wasted: Some(1),
            ..RoundRecord::new(0, experiment.training().learning_rate)
        };
        let origins = record.with_origins(is_secret).origin;
        for key in ["ages", "cohort", "wasted"] {
            assert_eq!(origins[key].is_public(), !is_secret, "{trust}: {key}");
        }
    }
}

#[test]
fn a_statement_counts_what_a_device_can_do_and_names_the_staleness() {
    let (experiment, _) = experiment("cohort={sampling=\"buffered\",cohort_size=9,staleness=1}");
    let statements = experiment.statements(4, &[]).unwrap();
    let statement = &statements[0];
    // Versions at least 1 + 1 apart, in four windows.
    assert_eq!(
        (statement.max_participations, statement.staleness),
        (Some(2), Some(1))
    );
    let text = statement.in_words();
    assert!(text.contains("rounds are windows of time"), "{text}");
    assert!(
        text.contains("counts in more than 2 of 4 windows"),
        "{text}"
    );
}
