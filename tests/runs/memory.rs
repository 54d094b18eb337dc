//! Memory grows with the cohort and the model, not with the number of devices.

use crate::program::{Outcome, Place, program};

/// Allocation limit of the program, in MiB. Measurements show about 10 for any number of devices,
/// mostly the held-out samples and the stacks of two threads. A byte per device would take 10 more,
/// an index per device 40, a sample per device 2,300.
const LIMIT_MIB: u32 = 18;

/// The operating system enforces the limit: an allocation beyond it fails and ends the program.
#[test]
fn ten_million_devices_take_no_more_memory_than_their_cohort() {
    let place = Place::new();
    place.write(
        "millions.toml",
        "method = \"dp-fed-ls\"\nrounds = 2\n[data]\nsource = \"synthetic\"\ndevices = 10000000\n\
         samples_per_device = 20\ntest = 200\n[cohort]\ncohort_size = 100\n\
         [privacy]\nnoise_multiplier = 1.0\nclip_norm = 0.5\n",
    );
    for (name, changes) in [
        ("uniform", "--set cohort.sampling=uniform"),
        ("poisson", "--set cohort.sampling=poisson"),
        (
            "weighted",
            "--set cohort.weighting=samples --set cohort.weight_cap=20",
        ),
        ("personal", "--set method=pmtl"),
    ] {
        let arguments = format!("run millions.toml --json --threads 2 --out {name} {changes}");
        let script = format!("ulimit -d {}; exec \"$0\" {arguments}", LIMIT_MIB << 10);
        let mut command = place.command("sh");
        command.args(["-c", &script]).arg(program());
        let outcome = Outcome::of(command.output().unwrap(), &arguments).success();
        assert_eq!(outcome.json()["devices"], 10_000_000);
    }
}
