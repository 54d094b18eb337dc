//! The sources of devices that an audit attacks (simulation, ranks, fleet), by name, with their
//! direct tests.

use serde::Serialize;
use smolfed_engine::audit::check::Check;
use smolfed_engine::audit::direct;
use smolfed_engine::audit::sources::{AuditedSource, RankedDevices, SimulatedDevices};
use smolfed_engine::audit::target::{Target, TargetError};
use smolfed_fleet::audit::FleetDevices;

/// A source of devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum SourceName {
    /// Devices of a simulation in one process.
    #[default]
    Simulated,
    /// Devices of a simulation on three ranks, here as threads.
    Ranks,
    /// Devices with sessions, simulated devices and their coordinator, all in this process.
    Fleet,
}

impl SourceName {
    /// The source of this name.
    pub(super) fn devices(self) -> &'static dyn AuditedSource {
        match self {
            Self::Simulated => &SimulatedDevices,
            Self::Ranks => &RankedDevices,
            Self::Fleet => &FleetDevices,
        }
    }
}

/// The direct tests of one source.
#[derive(Debug, Serialize)]
pub(super) struct SourceTests {
    source: SourceName,
    /// The verdicts.
    pub(super) checks: Vec<Check>,
}

impl SourceTests {
    /// Those of all sources but the first, which has more tests.
    pub(super) fn of_others(target: &Target<'_>, seed: u64) -> Result<Vec<Self>, TargetError> {
        let tests = |source: SourceName| {
            let target = target.clone().with_devices(source.devices());
            let checks = direct::of_source(&target, seed, direct::VALUES_OF_SOURCE)?;
            Ok(Self { source, checks })
        };
        let fits = |source: &SourceName| source.devices().fits(target.experiment());
        let others = [SourceName::Ranks, SourceName::Fleet].into_iter();
        others.filter(fits).map(tests).collect()
    }

    /// A line about them, or more if tests fail.
    pub(super) fn text(&self) -> String {
        let name = format!("{:?}", self.source).to_lowercase();
        let failed = self.checks.iter().filter(|check| !check.is_as_claimed);
        let failed: Vec<String> = failed
            .map(|check| format!("  {}: NO, {}\n", check.test, check.evidence))
            .collect();
        let (count, tests) = (self.checks.len() - failed.len(), self.checks.len());
        format!(
            "the source `{name}`: {count} of {tests} direct tests as claimed\n{}",
            failed.concat()
        )
    }
}
