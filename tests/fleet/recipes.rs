//! Records for firmware that computes features: refusals, and which side refuses.

use crate::program::Place;

const GRADIENTS: &str = "--set features.kind=gradients --set features.cell=4 --set data.devices=9";

#[test]
fn raw_records_need_features_and_raw_samples_need_images() {
    let place = Place::new();
    let refused = |arguments: &str, why: &str| {
        let outcome = place.smolfed(&format!("provision --devices 0..1 --out x {arguments}"));
        assert_eq!(outcome.code, Some(2), "{outcome}");
        assert!(outcome.stderr.contains(why), "{outcome}");
        assert!(!place.path("x").exists(), "{outcome}");
    };
    refused(
        "--raw",
        "`--raw`: the experiment computes no features. Add `[features]`",
    );
    refused(
        &format!("--raw {GRADIENTS} --set data.norm_bound=1"),
        "`--raw`: firmware does not shorten samples to `data.norm_bound` = 1",
    );
    place.write("t.csv", "a,b,y\n1,2,no\n3,4,yes\n5,6,no\n7,8,yes\n");
    let steps = "[data]\nsource = \"csv\"\npath = \"t.csv\"\nlabel = \"y\"\ndevices = 2\ntest = 0\n\
                 [cohort]\nsampling = \"full\"\n[features]\nkind = \"steps\"\ncount = 2\n\
                 bounds = { min = 0, max = 9 }\n\
                 [privacy]\nnoise_multiplier = 1\nclip_norm = 1\n";
    place.write(
        "steps.toml",
        format!("method = \"dp-fed\"\nrounds = 2\n{steps}"),
    );
    refused(
        "steps.toml --raw --with-data",
        "`--raw`: records have raw samples of images only",
    );
    let out = "provision steps.toml --devices 0..1 --out y --raw";
    place.smolfed(out).success();
}

/// A process has no firmware. With `--preprocessing` it computes features of its own samples.
#[test]
fn a_process_refuses_a_raw_record_and_says_what_to_do() {
    let place = Place::new();
    let provision = format!("provision --devices 0..1 {GRADIENTS}");
    place
        .smolfed(&format!("{provision} --out raw --raw --with-data"))
        .success();
    let files = "--provision raw/device-0.bin --ledger raw/device-0.ledger --connect unix:none";
    let outcome = place.smolfed(&format!("device --model softmax:32x10 {files}"));
    assert_eq!(outcome.code, Some(2), "{outcome}");
    let why = "raw/device-0.bin is for firmware that computes gradients of 8 × 8 pixels in cells \
               of 4 × 4: give `--data FILE` and the experiment's `--preprocessing FILE`, or \
               provision without `--raw`";
    assert!(outcome.stderr.contains(why), "{outcome}");
    // A record with another experiment's features.
    let other = provision.replace("cell=4", "cell=3");
    place.smolfed(&format!("{other} --out other")).success();
    let header: Vec<String> = (0..64).map(|at| format!("p{at}")).collect();
    let pixels = vec!["3"; 64].join(",");
    place.write(
        "own.csv",
        format!("{},digit\n{pixels},7\n", header.join(",")),
    );
    let own = "--preprocessing other/preprocessing.json --data own.csv --label digit";
    let outcome = place.smolfed(&format!("device {own} {files}"));
    assert_eq!(outcome.code, Some(2), "{outcome}");
    let why = "asks for gradients of 8 × 8 pixels in cells of 4 × 4, but `--preprocessing` for \
               gradients of 8 × 8 pixels in cells of 3 × 3";
    assert!(outcome.stderr.contains(why), "{outcome}");
}
