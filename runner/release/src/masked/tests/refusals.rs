//! The refusals of a helper, each with its sentence, and its record.

use std::collections::BTreeMap;

use smolfed_core::mask::{MaskKey, MaskRoot};

use super::*;

const LEDGER: [u8; 8] = *b"ledger 1";

fn policy() -> HelperPolicy {
    HelperPolicy {
        helpers: 1,
        noise_multiplier: 1.0,
        min_cohort: 2,
        max_rounds: 4,
        participations: 2,
        separation: 3,
        coefficients: Vec::new(),
    }
}

fn secret() -> Root {
    Root::from_secret([3; 32])
}

fn party_keys() -> BTreeMap<u32, MaskKey> {
    let key = |device| (device, MaskRoot::new(&secret(), device).helper(0));
    (0..DEVICES).map(key).collect()
}

fn party() -> HelperParty {
    HelperParty::new(0, policy(), party_keys(), Root::from_secret([4; 32]))
}

/// Returns the request to devices with these ledgers, with their list.
fn request(round: u32, devices: &[u32]) -> HelperRequest {
    with_ledger(round, devices, LEDGER)
}

fn with_ledger(round: u32, devices: &[u32], ledger: [u8; 8]) -> HelperRequest {
    let terms = smolfed_core::mask::Terms {
        grid_bits: 8,
        width: 15,
        helpers: 1,
    };
    let Asked { invitation, model } = asked(round);
    let listed = |device: &u32| {
        let root = MaskRoot::new(&secret(), *device);
        let key = root.helper(0).round(round, &ledger);
        Listed {
            device: *device,
            ledger,
            tag: key.tag(&terms, &invitation, &model),
        }
    };
    HelperRequest {
        round,
        terms,
        devices: devices.iter().map(listed).collect(),
        invitation,
        model,
        entries: 6,
        earlier: Vec::new(),
    }
}

#[track_caller]
fn refuses(party: &HelperParty, request: &HelperRequest, sentence: &str) {
    let found = party.prepare(request).unwrap_err().to_string();
    assert!(found.contains(sentence), "{found}");
}

#[test]
fn who_must_not_be_on_a_list_is_named() {
    let party = party().with_revoked(BTreeSet::from([5]));
    refuses(&party, &request(0, &[1, 99]), "device 99 is unknown");
    refuses(&party, &request(0, &[1, 5]), "device 5 was revoked");
    refuses(
        &party,
        &request(0, &[1, 4, 4]),
        "device 4 is on the list twice",
    );
    refuses(&party, &request(0, &[4, 1]), "not in ascending order");
    refuses(
        &party,
        &request(0, &[4]),
        "1 devices are on the list, but this helper answers for 2",
    );
    assert!(party.prepare(&request(0, &[1, 4])).is_ok());
}

#[test]
fn a_tag_covers_all_that_a_device_was_asked() {
    let party = party();
    let changed: [fn(&mut HelperRequest); 6] = [
        |request| request.devices[1].tag[0] ^= 1,
        |request| request.invitation.push(0),
        |request| request.model[0] = 0.5,
        |request| request.terms.grid_bits = 9,
        |request| request.terms.width = 16,
        |request| request.devices[1].ledger[0] ^= 1,
    ];
    for change in changed {
        let mut request = request(0, &[1, 4]);
        change(&mut request);
        refuses(&party, &request, "is wrong: it got a different request");
    }
    // A tag of another round.
    let mut replayed = request(1, &[1, 4]);
    replayed.round = 2;
    refuses(&party, &replayed, "the tag of device 1 is wrong");
    let forged = party.with_fault(Fault::AttendanceForged);
    assert!(forged.prepare(&replayed).is_ok(), "the fault does not look");
}

#[test]
fn terms_that_the_policy_does_not_have_are_refused() {
    let party = party();
    let with = |change: fn(&mut HelperRequest)| {
        let mut request = request(0, &[1, 4]);
        change(&mut request);
        request
    };
    refuses(
        &party,
        &with(|r| r.terms.helpers = 2),
        "to mask for 2 helpers",
    );
    refuses(&party, &with(|r| r.terms.width = 58), "entries of 58 bits");
    refuses(&party, &with(|r| r.terms.grid_bits = 5), "below 64 steps");
    refuses(
        &party,
        &with(|r| r.terms.grid_bits = 60),
        "does not fit into 64 bits",
    );
    refuses(&party, &with(|r| r.entries = 0), "updates of 0 entries");
    refuses(
        &party,
        &with(|r| r.entries = u32::MAX),
        "updates of 4294967295 entries",
    );
    refuses(
        &party,
        &with(|r| r.earlier = vec![7]),
        "both sides start again",
    );
}

#[test]
fn a_round_is_answered_once_and_an_identical_question_from_memory() {
    let mut party = party();
    let first = party.answer(&request(5, &[1, 4])).unwrap();
    assert_eq!(party.answer(&request(5, &[1, 4])).unwrap(), first);
    assert_eq!(party.answered().rounds(), 1);
    refuses(
        &party,
        &request(5, &[1, 4, 6]),
        "round 5 was answered already",
    );
    refuses(
        &party,
        &request(4, &[2, 6]),
        "round 4 is over: the last answered round is 5",
    );
}

#[test]
fn budgets_are_kept() {
    let mut party = party();
    party.answer(&request(0, &[1, 4])).unwrap();
    refuses(
        &party,
        &request(2, &[4, 6]),
        "device 4 took part in round 0, less than 3 rounds before",
    );
    party.answer(&request(3, &[4, 6])).unwrap();
    refuses(
        &party,
        &request(6, &[4, 7]),
        "device 4 took part 2 times, as often as it may",
    );
    refuses(
        &party,
        &with_ledger(6, &[1, 7], *b"ledger 2"),
        "device 1 has a different ledger",
    );
    party.answer(&request(6, &[1, 7])).unwrap();
    party.answer(&request(7, &[2, 8])).unwrap();
    refuses(
        &party,
        &request(8, &[3, 9]),
        "all 4 rounds that this helper answers are over",
    );
}

/// Noise of 64 steps is enough, and slightly less is not.
#[test]
fn the_least_noise_is_accepted() {
    let terms = request(0, &[1, 4]).terms;
    let with = |noise_multiplier| HelperPolicy {
        noise_multiplier,
        ..policy()
    };
    assert!(with(0.25).accepts(terms).is_ok());
    let refusal = with(0.2499).accepts(terms).unwrap_err();
    assert!(matches!(refusal, HelperRefusal::Grid { .. }), "{refusal}");
}

/// A number that a device left can go to another device, with another key and another ledger. The
/// answers for remaining devices still count.
#[test]
fn a_number_can_go_to_another_device() {
    let mut party = party();
    assert_eq!(
        (party.answered().last(), party.answered().rounds()),
        (None, 0)
    );
    party.answer(&request(2, &[1, 4])).unwrap();
    party.answer(&request(3, &[2, 5])).unwrap();
    assert_eq!(party.answered().last(), Some(3));
    assert_eq!(party.answered().rounds(), 2);
    let other = MaskRoot::new(&Root::from_secret([5; 32]), 4).helper(0);
    let mut keys = party_keys();
    keys.insert(4, other.clone());
    party.replace_keys(keys, BTreeSet::from([6]), &[4]);
    refuses(&party, &request(4, &[7, 6]), "not in ascending order");
    refuses(&party, &request(4, &[6, 7]), "device 6 was revoked");
    refuses(
        &party,
        &request(4, &[1, 7]),
        "device 1 took part in round 2",
    );
    let mut question = with_ledger(4, &[4, 7], *b"ledger 2");
    refuses(&party, &question, "device 4");
    let key = other.round(4, b"ledger 2");
    question.devices[0].tag = key.tag(&question.terms, &question.invitation, &question.model);
    assert!(party.prepare(&question).is_ok());
}

/// A helper that restarts between the record and the answer has sent none, and sends none: the
/// round is lost. A helper without the record has not answered either.
#[test]
fn a_restart_at_any_message_gives_no_second_answer() {
    let (mut before, question) = (party(), request(3, &[1, 4]));
    let prepared = before.prepare(&question).unwrap();
    let record = prepared.record().unwrap().clone();
    assert_eq!(record.devices, [(1, LEDGER), (4, LEDGER)]);
    let json = serde_json::to_string(&record).unwrap();
    let read: AnswerRecord = serde_json::from_str(&json).unwrap();
    assert_eq!(read, record);
    // Stopped before the record: the request has no effect.
    assert!(party().prepare(&question).is_ok());
    // Stopped after it, before or after the answer.
    let after = party().with_records([&record]);
    refuses(&after, &question, "round 3 was answered already");
    refuses(
        &after,
        &request(4, &[4, 5]),
        "device 4 took part in round 3",
    );
    before.commit(prepared);
    assert_eq!(before.answered(), after.answered());
    let again = before.prepare(&question).unwrap();
    assert!(again.record().is_none(), "nothing new to record");
}

#[test]
fn refusals_travel_and_debug_prints_no_secret() {
    let refusal = party().prepare(&request(0, &[1, 99])).unwrap_err();
    let json = serde_json::to_string(&refusal).unwrap();
    assert_eq!(json, r#"{"unknown":{"device":99}}"#);
    let read: HelperRefusal = serde_json::from_str(&json).unwrap();
    assert_eq!(read, refusal);
    let mut party = party();
    let prepared = party.prepare(&request(0, &[1, 4])).unwrap();
    assert_eq!(format!("{party:?}"), "HelperParty 0 of 12 devices");
    let text = format!("{prepared:?}");
    assert!(
        text.contains("HelperAnswer of 6 integers in round 0") && text.len() < 90,
        "{text}"
    );
    let answer = party.commit(prepared);
    assert_eq!(
        format!("{answer:?}"),
        "HelperAnswer of 6 integers in round 0"
    );
}
