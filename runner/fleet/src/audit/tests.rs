//! A fleet releases what is claimed, and its devices are attacked as those of a simulation are.

use super::*;
use smolfed_data::DataFolders;
use smolfed_engine::audit::direct;
use smolfed_engine::audit::target::Target;
use smolfed_engine::config::Config;
use smolfed_engine::run;
use smolfed_release::Fault;

/// The direct tests that fail: none does by chance but with a probability below 1e-6.
fn failed(method: &str, privacy: &str, fault: Fault) -> Vec<&'static str> {
    let text = format!(
        "method = \"{method}\"\nseed = 7\nrounds = 2\n[data]\nsource = \"synthetic\"\n\
         devices = 12\nsamples_per_device = 2\nfeatures = 9\nclasses = 3\ntest = 4\n\
         [cohort]\nsampling = \"poisson\"\nsampling_rate = 0.5\n[privacy]\nclip_norm = 0.5\n\
         delta = 1e-3\n{privacy}\n"
    );
    let config = Config::parse(&text, "a test", &[]).unwrap();
    let (experiment, federation) = run::prepare(config, &DataFolders::new(Vec::new())).unwrap();
    let target = Target::new(&experiment, &federation, fault).unwrap();
    let target = target.with_devices(&FleetDevices);
    let checks = direct::of_source(&target, 1, 1 << 11).unwrap();
    let failed = checks.iter().filter(|check| !check.is_as_claimed);
    failed.map(|check| check.test).collect()
}

const CENTRAL: &str = "noise_multiplier = 3.0";
const LOCAL: &str = "noise_multiplier = 3.0\ntrust = \"local\"";

#[test]
fn a_fleet_releases_what_is_claimed() {
    for method in ["dp-fed", "dp-fed-ls"] {
        for privacy in [CENTRAL, LOCAL] {
            let failed = failed(method, privacy, Fault::None);
            assert_eq!(failed, [""; 0], "{method} {privacy}");
        }
    }
}

#[test]
fn faults_of_the_server_are_found_in_a_fleet() {
    let std = "standard deviation of the noise";
    assert!(failed("dp-fed", CENTRAL, Fault::NoNoiseInLastRound).contains(&std));
}
