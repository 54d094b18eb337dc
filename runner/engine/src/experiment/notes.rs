//! Notes of the privacy statement, in sentences: weights by samples, clipped values, left-out rows,
//! earlier runs, and notes of the method.

use smolfed_accounting::{PrivacyEvent, PrivacyUnit};

use crate::combinations::{Setting, Settings};
use crate::config::Config;
use crate::method::contract::Method;
use smolfed_data::classes::Classes;
use smolfed_data::config::SourceConfig;
use smolfed_data::features::FeatureKind;
use smolfed_data::partition::Dealing;
use smolfed_data::scale::Scale;
use smolfed_release::origin::Origin;
use smolfed_release::plan::{earlier, of_unit};

/// Returns notes for readers of the statement, in addition to its numbers.
pub(super) fn notes(
    config: &Config,
    declared: &Settings,
    spent: &[PrivacyEvent],
    origin: &Origin,
    method: &dyn Method,
) -> Vec<String> {
    let (seed, trust) = (config.run_seed(), config.privacy.trust);
    let mut notes = origin.notes(seed, trust, method.has_noise_on_second_messages());
    notes.extend(earlier(&of_unit(spent, PrivacyUnit::Device)));
    let cap = config.cohort.weight_cap;
    if let Some(cap) = cap.filter(|_| declared.has(Setting::BySamples)) {
        notes.push(format!(
            "Updates are weighted by their number of samples, with weight 1 from {cap} samples on. \
             The noise covers the largest weight, and epsilon holds for every device. The sum is \
             divided by the expected number of devices, not by the sum of their weights, which \
             would reveal something about the data."
        ));
    }
    notes.extend(data_notes(config));
    notes.extend_from_slice(&method.properties().notes);
    notes
}

/// Returns notes on the handling of unsuitable rows, whether there are any or not. Their number
/// depends on the data, and is reported only to the data owner.
fn data_notes(config: &Config) -> Vec<String> {
    let SourceConfig::Stored(stored) = &config.data.source else {
        return Vec::new();
    };
    let clips = matches!(&stored.scale, Scale::Constants(scale) if scale.has_bounds());
    let has_steps = matches!(stored.features, Some(FeatureKind::Steps { .. }));
    let steps = has_steps.then_some(
        "Numbers beyond the bounds of `features.bounds` count as the bound: the bounds are \
         constants of the configuration.",
    );
    let drops = stored.set.classes().is_some_and(Classes::drops_unknown);
    let clips = clips.then_some(
        "Features beyond the bounds of `data.scale` are clipped to them: the bounds are constants \
         of the configuration.",
    );
    let drops = drops.then_some("Rows of classes that `data.classes` does not list are left out.");
    let rows = (stored.dealing == Dealing::Rows).then_some(
        "Each row of the data is its own device (`data.partition` = \"rows\"): epsilon protects \
         one row, not all rows of one person.",
    );
    let notes = [clips, steps, drops, rows].into_iter().flatten();
    notes.map(str::to_owned).collect()
}
