use std::collections::BTreeSet;

use smolfed_core::mask::Terms;
use zeroize::Zeroizing;

use super::*;
use smolfed_release::durable::create_private;
use smolfed_release::masked::Listed;

const LEDGER: [u8; 8] = *b"ledger 1";
const TERMS: Terms = Terms {
    grid_bits: 8,
    width: 19,
    helpers: 1,
};

fn file() -> HelperFile {
    let keys = (0..4).map(|device| (device, Zeroizing::new([device as u8 + 1; 32])));
    HelperFile {
        helper: 0,
        link: Zeroizing::new([0xcd; 32]),
        noise_seed: Some(7),
        policy: HelperPolicy {
            helpers: 1,
            noise_multiplier: 1.0,
            min_cohort: 2,
            max_rounds: 5,
            participations: 5,
            separation: 1,
            coefficients: Vec::new(),
        },
        keys: keys.collect(),
        revoked: BTreeSet::new(),
    }
}

/// A helper's folder.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new(file: &HelperFile) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = Self { dir };
        create_private(&place.path(), file.to_toml().as_bytes()).unwrap();
        create_private(
            &ledger_path(&place.path()),
            &HelperLedger::begin(digests(file)),
        )
        .unwrap();
        place
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("helper-0.toml")
    }

    fn open(&self) -> HelperService {
        HelperService::open(&self.path(), None).unwrap()
    }

    fn ledger(&self) -> String {
        std::fs::read_to_string(ledger_path(&self.path())).unwrap()
    }
}

fn request(file: &HelperFile, round: u32, devices: &[u32]) -> HelperRequest {
    let (invitation, model) = (vec![1, 2, 3], vec![0.5, -0.25]);
    let listed = devices.iter().map(|device| {
        let key = MaskKey::from_secret(*file.keys[device]).round(round, &LEDGER);
        Listed {
            device: *device,
            ledger: LEDGER,
            tag: key.tag(&TERMS, &invitation, &model),
        }
    });
    HelperRequest {
        round,
        terms: TERMS,
        devices: listed.collect(),
        invitation,
        model,
        entries: 2,
        earlier: Vec::new(),
    }
}

fn refusal(reply: Reply) -> HelperRefusal {
    match reply {
        Reply::Refusal(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_restarted_helper_remembers_what_it_has_answered() {
    let file = file();
    let place = Place::new(&file);
    let first = request(&file, 0, &[0, 1, 2]);
    let mut service = place.open();
    let answer = service.answer(&first);
    assert!(matches!(answer, Reply::Answer(..)));
    assert_eq!(service.answer(&first), answer, "the same once more");
    assert_eq!((service.tally().answered, service.tally().repeated), (1, 1));
    drop(service);
    // The noise of the round is gone, or known. In either case there is no second answer.
    let mut service = place.open();
    assert_eq!(service.state().last, Some(0));
    assert_eq!(service.state().rounds_left, 4);
    for request in [first, request(&file, 0, &[0, 1])] {
        let found = refusal(service.answer(&request));
        assert_eq!(found, HelperRefusal::Answered { round: 0 });
    }
    let answer = service.answer(&request(&file, 1, &[0, 1]));
    assert!(matches!(answer, Reply::Answer(..)));
    assert_eq!(
        service.tally().refused,
        BTreeMap::from([("answered".to_owned(), 2)])
    );
}

/// A restart before every request changes nothing: the remaining rounds, the participations of a
/// device and the last round are the same as without restarts.
#[test]
fn a_helper_that_restarts_at_each_step_keeps_its_budget_and_counts() {
    let mut file = file();
    file.policy.participations = 3;
    let place = Place::new(&file);
    let ask = |round, devices: &[u32]| place.open().answer(&request(&file, round, devices));
    let answers = |round, devices: &[u32], left| {
        assert!(matches!(ask(round, devices), Reply::Answer(..)), "{round}");
        let state = place.open().state();
        assert_eq!((state.last, state.rounds_left), (Some(round), left));
        let again = refusal(ask(round, devices));
        assert_eq!(again, HelperRefusal::Answered { round });
    };
    let passed = |round, last| {
        let found = refusal(ask(round, &[2, 3]));
        assert_eq!(found, HelperRefusal::Passed { round, last });
    };
    answers(0, &[0, 1], 4);
    answers(2, &[0, 1], 3);
    passed(1, 2);
    answers(3, &[0, 1], 2);
    for devices in [[0, 2], [1, 3]] {
        let found = refusal(ask(4, &devices));
        let (device, participations) = (devices[0], 3);
        assert_eq!(
            found,
            HelperRefusal::TooOften {
                device,
                participations
            }
        );
    }
    answers(4, &[2, 3], 1);
    answers(6, &[2, 3], 0);
    passed(5, 6);
    let found = refusal(ask(7, &[2, 3]));
    assert_eq!(found, HelperRefusal::Exhausted { rounds: 5 });
}

/// The order matters: an answer sent without a record would be given again after a restart.
#[test]
fn an_answer_leaves_once_its_record_is_on_the_disk() {
    let file = file();
    let place = Place::new(&file);
    let mut service = place.open();
    let before = place.ledger();
    service.answer(&request(&file, 0, &[0, 1]));
    assert!(place.ledger().len() > before.len());
    // A full disk: no answer leaves, and no round counts as answered.
    service.ledger.fill_up();
    assert_eq!(service.answer(&request(&file, 1, &[0, 1])), Reply::Failed);
    assert_eq!((service.state().last, service.tally().failed), (Some(0), 1));
    drop(service);
    let mut service = place.open();
    let answer = service.answer(&request(&file, 1, &[0, 1]));
    assert!(matches!(answer, Reply::Answer(..)));
}

#[test]
fn lists_of_devices_that_do_not_belong_are_refused() {
    let file = file();
    let place = Place::new(&file);
    let mut service = place.open();
    let mut others = file.clone();
    others.keys.insert(9, Zeroizing::new([9; 32]));
    let found = refusal(service.answer(&request(&others, 0, &[0, 9])));
    assert_eq!(found, HelperRefusal::Unknown { device: 9 });
    let found = refusal(service.answer(&request(&file, 0, &[1, 1])));
    assert_eq!(found, HelperRefusal::Repeated { device: 1 });
    let found = refusal(service.answer(&request(&file, 0, &[1])));
    assert_eq!(found, HelperRefusal::SmallCohort { found: 1, least: 2 });
    let mut forged = request(&file, 0, &[0, 1]);
    forged.devices[1].tag[3] ^= 1;
    let found = refusal(service.answer(&forged));
    assert_eq!(found, HelperRefusal::Tag { device: 1 });
    // The round is still unused.
    let answer = service.answer(&request(&file, 0, &[0, 1]));
    assert!(matches!(answer, Reply::Answer(..)));
}

#[test]
fn revoked_devices_are_refused_and_those_with_another_key_begin_anew() {
    let mut file = file();
    let place = Place::new(&file);
    let mut service = place.open();
    service.answer(&request(&file, 0, &[0, 1, 2, 3]));
    // Device 1 is revoked, and device 2 gets another key and so another ledger.
    let (_, replaced) = store::edit(&place.path(), |file| {
        file.revoke(1)?;
        let mut other = file.clone();
        other.keys = BTreeMap::from([(2, Zeroizing::new([99; 32]))]);
        file.add(&other)
    })
    .unwrap();
    assert_eq!(replaced, BTreeSet::from([2]));
    assert_eq!(service.reload().unwrap(), 3);
    let found = refusal(service.answer(&request(&file, 1, &[0, 1])));
    assert_eq!(found, HelperRefusal::Revoked { device: 1 });
    let found = refusal(service.answer(&request(&file, 1, &[0, 2])));
    assert_eq!(found, HelperRefusal::Tag { device: 2 });
    file.keys.insert(2, Zeroizing::new([99; 32]));
    let mut of_new = request(&file, 1, &[0, 2]);
    let key = MaskKey::from_secret([99; 32]).round(1, b"ledger 2");
    of_new.devices[1].ledger = *b"ledger 2";
    of_new.devices[1].tag = key.tag(&TERMS, &of_new.invitation, &of_new.model);
    assert!(matches!(service.answer(&of_new), Reply::Answer(..)));
    // The same after a restart. Device 0 has not changed.
    drop(service);
    let mut service = place.open();
    let mut later = request(&file, 2, &[0, 3]);
    later.devices[0].ledger = *b"ledger 2";
    let key = MaskKey::from_secret(*file.keys[&0]).round(2, b"ledger 2");
    later.devices[0].tag = key.tag(&TERMS, &later.invitation, &later.model);
    let found = refusal(service.answer(&later));
    assert_eq!(found, HelperRefusal::ChangedLedger { device: 0 });
}

#[test]
fn a_helper_s_files_are_of_one_process() {
    let place = Place::new(&file());
    let service = place.open();
    let error = HelperService::open(&place.path(), None)
        .unwrap_err()
        .to_string();
    assert!(error.contains("is in use by another helper"), "{error}");
    drop(service);
    // The operator may require more than the file, and not less.
    for (asked, found) in [(Some(7), 7), (Some(1), 2), (None, 2)] {
        let service = HelperService::open(&place.path(), asked).unwrap();
        assert_eq!(service.state().min_cohort, found);
    }
}
