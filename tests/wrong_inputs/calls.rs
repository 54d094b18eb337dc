//! Calls of an existing fleet with unsuitable ranges, settings and records.

use crate::fleet::{FULL, provision};
use crate::program::Place;

/// Calls of a fleet with devices 0 to 3, and a part of their errors. Exit code 2.
const BAD_CALLS: &[(&str, &str)] = &[
    ("provision --devices 4..4 --out x", "0..4"),
    ("provision --devices 0..300 --out x", "devices 0 to 279"),
    ("provision --devices 0..4 --out fleet", "already exists"),
    (
        "provision --devices 0..4 --out x --separation 0",
        "from 1 to",
    ),
    (
        "provision --devices 0..4 --out x --separation 65538",
        "`--separation 65538`: a device that accepts rounds up to 65536 numbers ahead would take \
         part once; at most 65537 is possible",
    ),
    (
        "serve --keys fleet/keys.toml LISTEN --simulated 50 --quorum 0.8 --set \
         cohort={sampling=\"full\"}",
        "`--quorum`: a device that answers early displaces another one",
    ),
    (
        "serve --keys fleet/keys.toml LISTEN --simulated 50 --quorum 80",
        "expected a share of the cohort above 0 and up to 1",
    ),
    (
        "serve --keys missing.toml --listen tcp:127.0.0.1:0",
        "missing.toml",
    ),
    ("serve --keys fleet/keys.toml", "--listen"),
    (
        "serve --keys fleet/keys.toml --listen sctp:x:1",
        "tcp:HOST:PORT",
    ),
    ("serve --keys fleet/keys.toml LISTEN --timeout 3", "30s"),
    ("serve --keys fleet/keys.toml LISTEN", "--simulated 276"),
    (
        "serve --keys fleet/keys.toml LISTEN --simulated 9 --set privacy={}",
        "clip_norm",
    ),
    (
        "serve --keys fleet/keys.toml LISTEN --simulated 9 --set privacy.clip_norm=adaptive --set \
         privacy.adaptive.initial=1e-10",
        "`privacy.adaptive.initial` is 0.0000000001: it must be from 2^-30 to 2^30",
    ),
    (
        "serve --keys fleet/keys.toml LISTEN --simulated 9 --set privacy.clip_norm=1e-10",
        "`privacy.clip_norm` is 0.0000000001: real devices accept numbers from 2^-30 to 2^30",
    ),
    ("serve --resume fleet", "not a run directory"),
    ("run --participation missing.jsonl", "missing.jsonl"),
    (
        "run --participation once.jsonl --out x",
        "it has 1 rounds, but `rounds` is 40",
    ),
    (
        "run --participation far.jsonl --out x --set rounds=1",
        "it names device 280, but there are 280 devices",
    ),
    (
        "run --participation twice.jsonl --out x",
        "line 1: the cohort",
    ),
    (
        "device --model tree:3 --provision a --ledger b --connect unix:c",
        "softmax:64x10",
    ),
    (
        "device --model linear:3 --provision a --ledger b --connect unix:c",
        "a: ",
    ),
    ("device --model linear:64 RECORD", "another kind of model"),
    ("device --model softmax:63x10 RECORD", "the model reads 63"),
    ("device --model softmax:64x3 RECORD", "classes that"),
    (
        "device --model softmax:64x10 RECORD",
        "b: there is no ledger",
    ),
];

#[test]
fn bad_calls_are_refused_in_one_sentence() {
    let place = Place::new();
    provision(&place, FULL);
    let listen = "--listen unix:fleet.sock";
    let record = "--provision fleet/device-0.bin --ledger b --connect unix:c";
    for (name, cohort) in [("once", "0,2"), ("far", "0,280"), ("twice", "2,2")] {
        let record = format!(
            "{{\"round\":0,\"number\":0,\"cohort\":[{cohort}],\"answered\":[],\"missing\":{{}},\
             \"covered_by_the_privacy_statement\":false}}\n"
        );
        place.write(&format!("{name}.jsonl"), record);
    }
    for (call, expected) in BAD_CALLS {
        let call = call.replace("LISTEN", listen).replace("RECORD", record);
        let outcome = place.smolfed(&call);
        assert_eq!(outcome.code, Some(2), "{outcome}");
        assert!(outcome.stderr.contains(expected), "{outcome}");
    }
}
