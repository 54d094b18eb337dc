//! Restored checkpoints, and refusals.

use tempfile::TempDir;

use super::*;

/// The state after two rounds with `denoiser = "auto"`, written by commit 3f23d68d, before the
/// format had a version. Its run was b7211f47-b6e9143b006a12f5-0.1.0.
const VERSION_1: &[u8] = include_bytes!("../../../../../tests/vectors/checkpoint_1.safetensors");

fn state() -> TrainingState {
    let (mut method, mut server) = (Saved::default(), Saved::default());
    method.put("matrices", [2, 1], [0x0403_0201_u32, 0x0807_0605]);
    method.entries.insert("states".to_owned(), "7".to_owned());
    server.put("mechanism.sums", [1, 2], [i64::MIN, -1]);
    server.put("auto.evidence", [1], [f64::MIN_POSITIVE]);
    let rounds = ("mechanism.rounds".to_owned(), "1".to_owned());
    server.entries.extend([rounds]);
    TrainingState {
        round: 7,
        global: vec![1.0, -0.0, f32::MIN_POSITIVE],
        clip_norm: ClipNorm::new(0.1).ok(),
        method,
        server,
    }
}

/// Loads a folder whose only file has these bytes.
fn load(bytes: &[u8], run: &str, parameters: usize) -> Result<TrainingState, RunDirError> {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(TrainingState::FILE), bytes).unwrap();
    let state = TrainingState::load(folder.path(), run, parameters)?;
    Ok(state.unwrap())
}

#[test]
fn a_state_comes_back_bit_for_bit() {
    let place = TempDir::new().unwrap();
    let folder = place.path().join("checkpoint");
    assert_eq!(TrainingState::load(&folder, "abc", 3).unwrap(), None);
    state().save(&folder, "abc").unwrap();
    let loaded = TrainingState::load(&folder, "abc", 3).unwrap().unwrap();
    assert_eq!(loaded, state());
    assert!(loaded.global[1].is_sign_negative());
    let later = TrainingState {
        round: 8,
        clip_norm: None,
        ..TrainingState::default()
    };
    later.clone().save(&folder, "abd").unwrap();
    let found = TrainingState::read(&folder).unwrap();
    assert_eq!(found, Some((later, "abd".to_owned())));
    let files = fs::read_dir(&folder).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, [TrainingState::FILE]);
}

#[test]
fn a_state_of_another_run_is_refused() {
    let bytes = state().encode("abc").unwrap();
    for (run, parameters) in [("abd", 3), ("abc", 4)] {
        let error = load(&bytes, run, parameters).unwrap_err();
        assert!(matches!(error, RunDirError::Foreign { .. }), "{error:?}");
    }
}

#[test]
fn the_refusal_of_a_state_says_what_differs() {
    let bytes = state().encode("a-b-0.1.0-7-fast16").unwrap();
    for (run, reason) in [
        ("c-b-0.1.0-7-fast16", "the configuration differs"),
        ("a-c-0.1.0-7-fast8", "the data differ"),
        ("a-b-0.2.0-7-fast16", "the version of smolfed"),
        ("a-b-0.1.0-8-fast16", "the start of the run differs"),
        (
            "a-b-0.1.0-7-fast16-own",
            "it was trained without a program's denoiser",
        ),
        (
            "a-b-0.1.0-7-fast8",
            "\"fast\" trained with vectors of 16 numbers, but this processor has 8",
        ),
    ] {
        let error = load(&bytes, run, 3).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

/// Also if the run, whose name includes a version of smolfed, is another one.
#[test]
fn a_state_of_another_version_of_the_format_is_refused_by_its_number() {
    let next = state().encode("abc").unwrap();
    let at = next
        .windows(12)
        .position(|part| part == b"\"format\":\"2\"");
    let mut next = next.clone();
    next[at.unwrap() + 10] = b'3';
    for (bytes, version) in [(VERSION_1, 1), (&next, 3)] {
        for run in ["b7211f47-b6e9143b006a12f5-0.1.0", "abc"] {
            let error = load(bytes, run, 10).unwrap_err();
            assert!(matches!(error, RunDirError::Version { .. }), "{error:?}");
            let reason = format!(
                "state.safetensors was written by another version of smolfed: its format has \
                 version {version}, but this smolfed reads version 2; run the experiment again in \
                 another directory"
            );
            assert!(error.to_string().ends_with(&reason), "{error}");
        }
    }
}

#[test]
fn a_damaged_state_is_refused_wherever_it_is_cut() {
    let whole = state().encode("abc").unwrap();
    for length in 0..whole.len() {
        let error = load(&whole[..length], "abc", 3).unwrap_err();
        assert!(
            matches!(error, RunDirError::Damaged { .. }),
            "{length}: {error:?}"
        );
    }
}

#[test]
fn a_state_with_numbers_that_cannot_be_is_refused() {
    for value in [f32::NAN, f32::INFINITY] {
        let spoilt = TrainingState {
            global: vec![value],
            ..state()
        };
        let error = load(&spoilt.encode("abc").unwrap(), "abc", 1).unwrap_err();
        assert!(error.to_string().contains("not finite"), "{error}");
    }
    let whole = state().encode("abc").unwrap();
    for (from, to, reason) in [
        (
            "\"round\":\"7\"",
            "\"round\":\"x\"",
            "`round` is not a number",
        ),
        ("\"round\":\"7\"", "\"rouns\":\"7\"", "it has no `round`"),
        (
            "\"clip_norm\":\"0.1\"",
            "\"clip_norm\":\"-.1\"",
            "not a clip norm",
        ),
        ("\"parameters\"", "\"parameterz\"", "it has no `parameters`"),
    ] {
        let at = whole
            .windows(from.len())
            .position(|part| part == from.as_bytes());
        let mut other = whole.clone();
        other[at.unwrap()..][..to.len()].copy_from_slice(to.as_bytes());
        let error = load(&other, "abc", 3).unwrap_err().to_string();
        assert!(
            error.contains("is damaged") && error.contains(reason),
            "{error}"
        );
    }
}
