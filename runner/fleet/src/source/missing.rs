//! Log entries about devices missing in a round or in the answers to a question: one for each
//! reason, such as too late or not connected, with a limit on named devices.

use std::collections::BTreeMap;

/// Logs the devices missing in `what`, one event per reason. The sentence that names devices is
/// private: the privacy statement does not cover who takes part.
pub(super) fn report(what: &str, round: u32, reasons: impl Iterator<Item = (u32, String)>) {
    for Missing {
        reason,
        count,
        private,
    } in missing(what, reasons)
    {
        tracing::info!(
            reason = reason.as_str(),
            round,
            count,
            private,
            "{what}: {count} missing: {reason}"
        );
    }
}

/// Devices missing for one reason.
struct Missing {
    reason: String,
    count: usize,
    /// A sentence with their numbers.
    private: String,
}

/// Groups missing devices, with one entry per reason.
fn missing(what: &str, reasons: impl Iterator<Item = (u32, String)>) -> Vec<Missing> {
    let mut by_reason: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (device, reason) in reasons {
        by_reason.entry(reason).or_default().push(device);
    }
    let reasons = by_reason.into_iter();
    reasons
        .map(|(reason, devices)| of_reason(what, reason, &devices))
        .collect()
}

fn of_reason(what: &str, reason: String, devices: &[u32]) -> Missing {
    /// Maximum number of devices to name.
    const NAMED: usize = 5;
    let named: Vec<String> = devices.iter().take(NAMED).map(u32::to_string).collect();
    let named = named.join(", ");
    let count = devices.len();
    let private = match count {
        1 => format!("{what}: device {named}: {reason}"),
        2..=NAMED => format!("{what}: devices {named}: {reason}"),
        count => format!("{what}: {count} devices, {named} and others: {reason}"),
    };
    Missing {
        reason,
        count,
        private,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mass_outage_is_one_line() {
        let reasons = [
            (7..8, "no matrix: too late"),
            (0..900, "not connected"),
            (900..902, "too late"),
            (902..903, "no answer to the invitation"),
        ];
        let reasons = reasons.into_iter().flat_map(|(devices, reason)| {
            let device = move |device: u32| (device, reason.to_owned());
            devices.map(device)
        });
        let missing = missing("round 3", reasons).into_iter();
        let private = missing.map(|missing| missing.private);
        assert_eq!(
            private.collect::<Vec<_>>(),
            [
                "round 3: device 902: no answer to the invitation",
                "round 3: device 7: no matrix: too late",
                "round 3: 900 devices, 0, 1, 2, 3, 4 and others: not connected",
                "round 3: devices 900, 901: too late",
            ]
        );
    }
}
