//! Conditions of ε that come from the preparation of the data: values read from private rows, and
//! lists that the user has confirmed or not.

use smolfed_data::federation::Federation;
use smolfed_data::reads::Read;
use smolfed_release::condition::Condition;

/// Returns the conditions of all steps of the preparation.
pub(crate) fn of_data(federation: &Federation) -> impl Iterator<Item = Condition> {
    let confirmed = federation.confirmed_lists().iter();
    let confirmed = confirmed.map(|list| Condition::Confirmed {
        key: format!("data.{}", list.key()),
    });
    federation.reads().iter().map(of_read).chain(confirmed)
}

/// Returns the condition of one step of the preparation.
pub(crate) fn of_read(read: &Read) -> Condition {
    let key = format!("data.{}", read.key());
    match read {
        Read::List(list) => Condition::UnconfirmedList {
            key,
            confirm: format!("data.{}", list.confirmation()),
        },
        Read::DeviceCount => Condition::DeviceCount { key },
        Read::Scale | Read::TargetScale | Read::Missing | Read::Classes => {
            let mut value = read.what().to_owned();
            value[..1].make_ascii_uppercase();
            Condition::ReadFromRows { key, value }
        }
    }
}
