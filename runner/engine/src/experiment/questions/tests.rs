use smolfed_accounting::Accountant;

use super::*;
use crate::config::Override;
use crate::experiment::Experiment;
use crate::round::TrainingLoop;
use crate::source::Simulated;
use smolfed_data::DataFolders;

const FILE: &str = "method = \"dp-fed\"\nrounds = 6\nseed = 7\n[data]\nsource = \
                    \"synthetic\"\ndevices = 60\nsamples_per_device = 3\nfeatures = 2\nclasses = \
                    3\ntest = 4\nvalidation = 0\n[cohort]\nsampling = \"poisson\"\ncohort_size = \
                    20\n[privacy]\nclip_norm = 0.5\nepsilon = 4.0\ndelta = \
                    1e-3\n[[questions]]\nkind = \"evaluate\"\nevery = 2\n[[questions]]\nkind = \
                    \"count\"\n";

const FULL: &str = "cohort={sampling = \"full\"}";
const WITHOUT_MODEL: &str = "questions=[{kind = \"count\", every = 2}, {kind = \"presence\"}]";

fn built(settings: &[&str]) -> Result<(Experiment, Federation), String> {
    let overrides: Vec<Override> = settings.iter().map(|s| s.parse().unwrap()).collect();
    let config = Config::parse(FILE, "test", &overrides).map_err(|error| error.to_string())?;
    let folders = DataFolders::new(Vec::new());
    let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
    match Experiment::new(config, &federation) {
        Ok(experiment) => Ok((experiment, federation)),
        Err(error) => Err(error.to_string()),
    }
}

fn experiment(settings: &[&str]) -> (Experiment, Federation) {
    built(settings).unwrap()
}

/// Returns ε of these events by the tightest accountant.
fn epsilon(events: &[PrivacyEvent], delta: Delta) -> f64 {
    let accountant = Accountant::tightest_for(events);
    accountant.epsilon(events, delta).unwrap().epsilon
}

#[test]
fn answers_have_their_share_and_everything_together_is_the_target() {
    for (share, settings) in [(0.1, None), (0.4, Some("privacy.questions=0.4"))] {
        let (experiment, _) = experiment(&settings.into_iter().collect::<Vec<_>>());
        let privacy = experiment.privacy();
        let events = privacy.events_of(6);
        let answers: Vec<_> = events
            .iter()
            .copied()
            .filter(PrivacyEvent::is_answer)
            .collect();
        assert_eq!(
            answers.iter().map(|event| event.count).collect::<Vec<_>>(),
            [3, 1]
        );
        let of_answers = epsilon(&answers, privacy.delta);
        assert!(
            of_answers <= share * 4.0 && of_answers > share * 4.0 * 0.99,
            "{of_answers}"
        );
        let whole = privacy.estimate(6).unwrap().epsilon;
        assert!(whole <= 4.0 && whole > 3.99, "{whole}");
    }
}

/// The ledger is charged for exactly the releases that the statement counts: updates, answers, a
/// private scale and the score of a trial, with and without helpers.
#[test]
fn the_charges_of_all_rounds_are_the_releases_of_the_plan() {
    const SCALE: &str =
        "data={source = \"digits\", devices = 60, scale = \"private\", validation = 0}";
    const MASKS: &str = "privacy.trust=\"distributed\"";
    const TRIAL: &str = "data={source = \"digits\", devices = 60, device_validation = 0.2}";
    const SEED: &str = "privacy.selection={seeded = true, seed = 11}";
    for settings in [
        &[][..],
        &["questions=[]"],
        &[SCALE],
        &[MASKS, FULL],
        &["privacy.trust=\"local\""],
        &["privacy.clip_norm=\"adaptive\""],
        &["method=\"local\"", FULL, WITHOUT_MODEL],
        &["method=\"ask\"", "rounds=1"],
        &[TRIAL, FULL, SEED, "questions=[]"],
    ] {
        let (experiment, _) = experiment(settings);
        let rounds = experiment.config().rounds;
        let mut charged: Vec<PrivacyEvent> = (0..rounds)
            .flat_map(|round| experiment.events_in(round))
            .collect();
        assert!(!charged.is_empty(), "{settings:?}");
        for planned in experiment.privacy().events_of(rounds) {
            for _ in 0..planned.count {
                let one = planned.with_count(1);
                let found = charged.iter().position(|event| *event == one);
                charged.swap_remove(found.unwrap_or_else(|| panic!("{settings:?}: {one:?}")));
            }
        }
        assert_eq!(charged, [], "{settings:?}");
    }
}

/// Devices that send no updates may spend the whole target on answers, some of which may have a
/// given noise.
#[test]
fn without_updates_answers_have_the_whole_target() {
    const GIVEN: &str =
        "questions=[{kind = \"count\"}, {kind = \"presence\", noise_multiplier = 5.0}]";
    for settings in [
        ["method=\"local\"", FULL, WITHOUT_MODEL],
        ["method=\"local\"", FULL, GIVEN],
        ["method=\"ask\"", "rounds=1", GIVEN],
    ] {
        let (experiment, _) = experiment(&settings);
        let privacy = experiment.privacy();
        let events = privacy.events_of(experiment.config().rounds);
        let found = epsilon(&events, privacy.delta);
        assert!(found <= 4.0 && found > 3.98, "{settings:?}: {found}");
    }
}

/// Rounds and questions are numbered in chronological order, so no two have the same streams.
#[test]
fn no_two_releases_have_the_same_number() {
    let (experiment, _) = experiment(&[]);
    let mut numbers = Vec::new();
    for round in 0..6 {
        numbers.push(experiment.number_of(round));
        numbers.extend(experiment.questions_after(round).map(|(number, _)| number));
    }
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
    let (without, _) = self::experiment(&["questions=[]"]);
    assert_eq!(
        (0..6)
            .map(|round| without.number_of(round))
            .collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 5]
    );
}

/// A run resumed after any round has the same answers, and so does a run with other threads.
#[test]
fn answers_are_the_same_after_a_resume() {
    let (experiment, federation) = experiment(&[]);
    let mut whole = TrainingLoop::simulation(&experiment, &federation).unwrap();
    let mut source = Simulated(&federation);
    let mut answers = Vec::new();
    let mut digests = Vec::new();
    for _ in 0..6 {
        let result = whole.step(&mut source).unwrap();
        digests.push(whole.digest(&result.released.unwrap()));
        answers.push(result.record.answers);
    }
    assert_eq!(
        answers.iter().map(Vec::len).collect::<Vec<_>>(),
        [0, 1, 0, 1, 0, 2]
    );
    let mut state = crate::round::TrainingState::new(&experiment);
    for round in 0..6 {
        let root = experiment.root().unwrap();
        let resumed = TrainingLoop::new(&experiment, &federation, root, &state, None, None);
        let mut resumed = resumed.unwrap();
        let result = resumed.step(&mut source).unwrap();
        assert_eq!(result.record.answers, answers[round]);
        assert_eq!(resumed.digest(&result.released.unwrap()), digests[round]);
        let bytes = resumed.state("run").unwrap().encode("run").unwrap();
        (state, _) = crate::round::TrainingState::decode(&bytes).unwrap();
    }
}

/// Under masks, answers have the helpers' noise of the rounds, and all of it is calibrated
/// together.
#[test]
fn answers_under_masks_have_the_noise_of_the_rounds() {
    let (experiment, federation) = experiment(&["privacy.trust=\"distributed\""]);
    let z = experiment.privacy().multiplier();
    for question in experiment.questions() {
        assert_eq!(question.side.event.mechanism.noise_multiplier(), z);
        assert!(question.release.masking.is_some());
    }
    let whole = experiment.privacy().estimate(6).unwrap().epsilon;
    assert!(whole <= 4.0 && whole > 3.9, "{whole}");
    let policy = experiment.helper_policy(0).unwrap();
    assert_eq!(
        (policy.max_rounds, policy.noise_multiplier > 0.0),
        (10, true)
    );
    let mut training = TrainingLoop::simulation(&experiment, &federation).unwrap();
    let mut source = Simulated(&federation);
    let answers = (0..6).map(|_| training.step(&mut source).unwrap().record.answers.len());
    assert_eq!(answers.collect::<Vec<_>>(), [0, 1, 0, 1, 0, 2]);
}

#[test]
fn questions_that_cannot_be_asked_are_refused_by_key() {
    for (change, words) in [
        (
            "questions=[{kind=\"histogram\",feature=1,edges=[1,1]}]",
            "`questions.edges` is [1.0, 1.0]",
        ),
        (
            "questions=[{kind=\"histogram\",feature=1}]",
            "`questions.edges` is missing",
        ),
        (
            "questions=[{kind=\"moments\",bounds=[2,2]}]",
            "`questions.bounds` is [2.0, 2.0]",
        ),
        (
            "questions=[{kind=\"moments\"}]",
            "`questions.bounds` is missing",
        ),
        (
            "questions=[{kind=\"presence\",feature=2,edges=[0]}]",
            "`questions.feature` is 2",
        ),
        (
            "questions=[{kind=\"count\",feature=1}]",
            "`questions.feature`",
        ),
        (
            "questions=[{kind=\"evaluate\",loss_bound=0}]",
            "`questions.loss_bound` is 0",
        ),
        (
            "questions=[{kind=\"evaluate\",confidence=1}]",
            "`questions.confidence` is 1",
        ),
        (
            "questions=[{kind=\"evaluate\",cohort_size=61}]",
            "from 1 to 60",
        ),
        (
            "questions=[{kind=\"count\",noise_multiplier=0.4}]",
            "`questions.noise_multiplier` is 0.4",
        ),
        ("questions=[{kind=\"opinion\"}]", "must be one of"),
        ("privacy.questions=1", "`privacy.questions` is 1"),
        (
            "method=\"fedsc\" contrast.width=2",
            "`questions.kind` and `method`",
        ),
    ] {
        let changes: Vec<&str> = change.split(' ').collect();
        let error = built(&changes).err().unwrap();
        assert!(error.contains(words), "{change}: {error}");
    }
    let without = ["questions=[]", "privacy.questions=0.2"];
    assert!(
        built(&without)
            .err()
            .unwrap()
            .contains("`questions` is missing")
    );
}

/// Questions alone may cost the whole target, and have a statement.
#[test]
fn questions_alone_cost_the_whole_target() {
    let settings = [
        "method=\"ask\"",
        "rounds=1",
        "questions=[{kind=\"evaluate\"},{kind=\"count\"}]",
    ];
    let (experiment, federation) = experiment(&settings);
    let statements = experiment.statements(1, &[]).unwrap();
    let statement = &statements[0];
    assert_eq!(
        statement.subject,
        smolfed_release::statement::Subject::Answers
    );
    assert!(statement.is_upper_bound());
    assert!(
        statement.epsilon <= 4.0 && statement.epsilon > 3.98,
        "{}",
        statement.epsilon
    );
    assert_eq!(statement.clip_norm.map(|bound| bound.get()), Some(1.0));
    let mut training = TrainingLoop::simulation(&experiment, &federation).unwrap();
    let before = training.global().to_vec();
    let record = training.step(&mut Simulated(&federation)).unwrap().record;
    assert_eq!((record.answers.len(), training.global()), (2, &before[..]));
}

/// Two questions about the same devices have different noise. Otherwise their difference would have
/// none.
#[test]
fn other_questions_have_another_seed() {
    let seed = |change: &str| {
        let settings = ["method=\"ask\"", "rounds=1", change];
        experiment(&settings).0.config().run_seed()
    };
    let one = "questions=[{kind=\"evaluate\"}]";
    assert_eq!(seed(one), seed(one));
    assert_ne!(
        seed(one),
        seed("questions=[{kind=\"evaluate\",loss_bound=2}]")
    );
}

/// Devices that store features as integers clamp them to −2 and 127/64. No feature is below an edge
/// at −2, and all larger features are at or above one at 127/64.
#[test]
fn bounds_and_edges_beyond_the_format_of_features_are_refused() {
    const INTEGERS: &str = "simulation.arithmetic=\"integer\"";
    let asked = |settings: &[&str], question: &str| {
        let question = format!("questions=[{question}]");
        built(&[settings, &[&question]].concat()).map(drop)
    };
    let moments = |bounds: &str| format!("{{kind=\"moments\",bounds={bounds}}}");
    let presence = |edges: &str| format!("{{kind=\"presence\",feature=1,edges={edges}}}");
    let between = "above -2 and at most 1.984375";
    for (question, key, accepted) in [
        (moments("[0,40]"), "questions.bounds", "from -2 to 1.984375"),
        (moments("[-2,2]"), "questions.bounds", "from -2 to 1.984375"),
        (presence("[0,1.99]"), "questions.edges", between),
        (presence("[-2,0]"), "questions.edges", between),
        (presence("[-3,0]"), "questions.edges", between),
    ] {
        let error = asked(&[INTEGERS], &question).unwrap_err();
        assert!(error.contains(key) && error.contains(accepted), "{error}");
        let wider = "simulation.integer={features=\"i16\",fraction=9}";
        asked(&[INTEGERS, wider], &question).unwrap();
        asked(&[], &question).unwrap();
    }
    for within in [moments("[-2,1.984375]"), presence("[-1.984375,0,1.984375]")] {
        asked(&[INTEGERS], &within).unwrap();
    }
}
