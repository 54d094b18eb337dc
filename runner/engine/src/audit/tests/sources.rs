//! Attacks on the sources of runs, which find the faults of each.

use super::*;
use crate::audit::sources::{AuditedSource, RankedDevices, SimulatedDevices};

const PAIR: &str = "noise_multiplier = 3.0\ntrust = \"distributed\"";
const CENTRAL: &str = "noise_multiplier = 3.0";

fn failed_with(audited: &Audited, devices: &dyn AuditedSource, fault: Fault) -> Vec<&'static str> {
    let target = Target::new(&audited.experiment, &audited.federation, fault).unwrap();
    let target = target.with_devices(devices);
    let checks = direct::audit(&target, 1, 1 << 14).unwrap();
    let failed = checks.iter().filter(|check| !check.is_as_claimed);
    failed.map(|check| check.test).collect()
}

/// Ranks pass every direct test under each trust model. Each audit fails by chance with a
/// probability below 1e-6.
#[test]
fn ranks_release_what_is_claimed() {
    for (cohort, privacy) in [
        (POISSON, CENTRAL),
        (UNIFORM, ADAPTIVE),
        (POISSON, LOCAL),
        (POISSON, PAIR),
    ] {
        let audited = experiment(30, 3, cohort, privacy);
        let failed = failed_with(&audited, &RankedDevices, Fault::None);
        assert_eq!(failed, [""; 0], "{cohort} {privacy}");
    }
}

/// The audit sees the same with every source, as the sums are the same.
#[test]
fn ranks_are_attacked_as_a_process_by_itself_is() {
    for privacy in [CENTRAL, LOCAL] {
        let audited = experiment(20, 3, POISSON, privacy);
        let target = Target::new(&audited.experiment, &audited.federation, Fault::None).unwrap();
        let found = |devices| {
            let target = target.clone().with_devices(devices);
            let attacker = attacker::Attacker::new(&target, 8);
            attacker.pair(1, 2).unwrap().map(|scores| scores.values)
        };
        let (one, other): (&dyn AuditedSource, &dyn AuditedSource) =
            (&SimulatedDevices, &RankedDevices);
        assert_eq!(found(one), found(other), "{privacy}");
    }
}

#[test]
fn a_device_on_two_ranks_is_found() {
    for privacy in [CENTRAL, LOCAL, PAIR] {
        let audited = experiment(30, 3, POISSON, privacy);
        let found = failed_with(&audited, &RankedDevices, Fault::DeviceOnTwoRanks);
        assert!(
            found.contains(&"how often a device counts"),
            "{privacy}: {found:?}"
        );
        let one = failed_with(&audited, &SimulatedDevices, Fault::DeviceOnTwoRanks);
        assert_eq!(one, [""; 0], "{privacy}");
    }
}
