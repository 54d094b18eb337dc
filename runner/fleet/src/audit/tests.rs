//! A fleet releases what it claims, and its devices are attacked like those of a simulation.

use super::*;
use smolfed_data::DataFolders;
use smolfed_engine::audit::direct;
use smolfed_engine::audit::target::Target;
use smolfed_engine::audit::view::View;
use smolfed_engine::config::Config;
use smolfed_engine::run;
use smolfed_release::Fault;

/// Returns the failed direct tests in this view. Each fails by chance with probability below 1e-6.
fn failed_in(view: View, method: &str, privacy: &str, fault: Fault) -> Vec<&'static str> {
    let text = format!(
        "method = \"{method}\"\nseed = 7\nrounds = 2\n[data]\nsource = \"synthetic\"\n\
         devices = 12\nsamples_per_device = 2\nfeatures = 9\nclasses = 3\ntest = 4\n\
         [cohort]\nsampling = \"poisson\"\nsampling_rate = 0.5\n[privacy]\nclip_norm = 0.5\n\
         delta = 1e-3\n{privacy}\n"
    );
    let config = Config::parse(&text, "a test", &[]).unwrap();
    let (experiment, federation) = run::prepare(config, &DataFolders::new(Vec::new())).unwrap();
    assert!(FleetDevices.fits(&experiment));
    let target = Target::new(&experiment, &federation, fault).unwrap();
    let target = target.with_devices(&FleetDevices).seen_by(view);
    let checks = direct::of_source(&target, 1, 1 << 11).unwrap();
    let failed = checks.iter().filter(|check| !check.is_as_claimed);
    failed.map(|check| check.test).collect()
}

/// Returns the failed direct tests of the releases.
fn failed(method: &str, privacy: &str, fault: Fault) -> Vec<&'static str> {
    failed_in(View::Releases, method, privacy, fault)
}

const CENTRAL: &str = "noise_multiplier = 3.0";
const LOCAL: &str = "noise_multiplier = 3.0\ntrust = \"local\"";
const PAIR: &str = "noise_multiplier = 3.0\ntrust = \"distributed\"";
const THREE: &str = "noise_multiplier = 3.0\ntrust = \"distributed=3/2\"";
const STD: &str = "standard deviation of the noise";

#[test]
fn a_fleet_releases_what_is_claimed() {
    for method in ["dp-fed", "dp-fed-ls"] {
        for privacy in [CENTRAL, LOCAL] {
            let failed = failed(method, privacy, Fault::None);
            assert_eq!(failed, [""; 0], "{method} {privacy}");
        }
    }
}

/// The masks of the sessions come off, and each party sees the noise of the others.
#[test]
fn a_fleet_with_masks_releases_what_is_claimed() {
    for (method, privacy) in [("dp-fed", PAIR), ("dp-fed-ls", PAIR), ("dp-fed", THREE)] {
        for view in [View::Coordinator, View::Helpers, View::Releases] {
            let failed = failed_in(view, method, privacy, Fault::None);
            assert_eq!(failed, [""; 0], "{method} {privacy} {view:?}");
        }
    }
}

#[test]
fn faults_of_the_server_are_found_in_a_fleet() {
    assert!(failed("dp-fed", CENTRAL, Fault::NoNoiseInLastRound).contains(&STD));
}

/// Devices with a session have none of these faults. If helpers expect other masks than the devices
/// have, they refuse to answer, and the round is lost.
#[test]
fn faults_of_masks_and_helpers_are_found_in_a_fleet() {
    for (fault, view, test) in [
        (Fault::NoHelperNoise, View::Coordinator, STD),
        (Fault::NoNoiseInLastRound, View::Helpers, STD),
        (
            Fault::HelperNoiseReused,
            View::Coordinator,
            "noise of different rounds",
        ),
        (
            Fault::ClipSkipped,
            View::Releases,
            "how often a device counts",
        ),
        (Fault::MaskReused, View::Releases, STD),
    ] {
        let found = failed_in(view, "dp-fed", PAIR, fault);
        assert!(
            found.contains(&test),
            "{} {view:?}: {found:?}",
            fault.name()
        );
    }
}
