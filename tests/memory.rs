//! Memory grows with the cohort and the model, not with the number of devices.

use crate::program::{Outcome, Place, program};

/// All that the program may allocate, in MiB: measured are about 10, most of it the held-out
/// samples and the stacks of two threads. An index range a device would take 8 already, a sample a
/// device 230.
const LIMIT_MIB: u32 = 32;

/// The limit is the operating system's: an allocation beyond it fails and ends the program.
#[test]
fn a_million_devices_take_no_more_memory_than_their_cohort() {
    let place = Place::new();
    place.write(
        "million.toml",
        "method = \"dp-fed-ls\"\nrounds = 3\n[data]\nsource = \"synthetic\"\ndevices = 1000000\n\
         samples_per_device = 20\ntest = 200\n[cohort]\ncohort_size = 100\n\
         [server]\nsmoothing_factor = 1.0\n\
         [privacy]\nnoise_multiplier = 1.0\nclip_norm = 0.5\n",
    );
    for sampling in ["uniform", "poisson"] {
        let arguments = format!(
            "run million.toml --json --threads 2 --out {sampling} --set cohort.sampling={sampling}"
        );
        let script = format!("ulimit -d {}; exec \"$0\" {arguments}", LIMIT_MIB << 10);
        let mut command = place.command("sh");
        command.args(["-c", &script]).arg(program());
        let outcome = Outcome::of(command.output().unwrap(), &arguments).success();
        assert_eq!(outcome.json()["devices"], 1_000_000);
    }
}
