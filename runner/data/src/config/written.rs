//! Writes `[data]` completely: it contains every effective value, in the order of its keys.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::names::HoldOutOrder;
use super::scale::{NameOr, ScaleName, TargetScaleName};
use super::set::StoredSet;
use super::{DataConfig, SourceConfig, StoredConfig};
use crate::constants::Bounds;
use crate::missing::Missing;
use crate::partition::Dealing;
use crate::scale::Scale;
use crate::scale::moments::ScaleNoise;
use crate::split::HoldOut;
use crate::synthetic::SyntheticKind;
use crate::table::{Encoding, TimePart};

/// The keys of a data set.
#[derive(Serialize)]
struct Stored<'a> {
    #[serde(flatten)]
    set: &'a StoredSet,
    #[serde(flatten)]
    dealing: Dealing,
    min_samples: Option<u32>,
    hold_out: Option<HoldOutOrder>,
    validation: HoldOut,
    test: Option<HoldOut>,
    device_validation: Option<f64>,
    device_test: Option<f64>,
    missing: Option<&'a Missing>,
    #[serde(flatten)]
    noise: Option<ScaleNoise>,
    scale: NameOr<ScaleName>,
    bounds: Option<&'a Bounds>,
    norm_bound: Option<f64>,
    target_scale: Option<NameOr<TargetScaleName>>,
    categories: Option<BTreeMap<&'a str, &'a [String]>>,
    times: Option<BTreeMap<&'a str, &'a [TimePart]>>,
}

/// The keys of generated devices.
#[derive(Serialize)]
#[serde(tag = "source", rename = "synthetic")]
struct Synthetic<'a> {
    classes: Option<u16>,
    #[serde(flatten)]
    kind: &'a SyntheticKind,
    noise: f64,
    devices: u32,
    samples_per_device: u32,
    validation: HoldOut,
    test: HoldOut,
}

impl Serialize for DataConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.source {
            SourceConfig::Stored(stored) => {
                Stored::new(stored, self.validation, self.test).serialize(serializer)
            }
            SourceConfig::Synthetic(synthetic) => Synthetic {
                classes: synthetic.kind.class_count(),
                kind: &synthetic.kind,
                noise: synthetic.noise,
                devices: synthetic.devices,
                samples_per_device: synthetic.samples_per_device,
                validation: self.validation,
                test: self.test,
            }
            .serialize(serializer),
        }
    }
}

impl<'a> Stored<'a> {
    fn new(stored: &'a StoredConfig, validation: HoldOut, test: HoldOut) -> Self {
        let is_last = |part| matches!(part, HoldOut::LastFraction(_));
        let is_text = matches!(stored.set, StoredSet::Text(_));
        // Random rows are named only if the last ones are the default.
        let hold_out = match is_last(validation) || is_last(test) {
            true => Some(HoldOutOrder::Last),
            false => is_text.then_some(HoldOutOrder::Random),
        };
        let private = match &stored.scale {
            Scale::Private(private) => Some(private),
            _ => None,
        };
        let is_dealt = stored.dealing != Dealing::Natural;
        let writes_missing = match stored.set {
            StoredSet::Table(_) => true,
            // Only tables in memory have missing values.
            StoredSet::Memory(_) => stored.missing != Missing::default(),
            _ => false,
        };
        let target_scale = || stored.target_scale.clone().into();
        Self {
            set: &stored.set,
            dealing: stored.dealing,
            min_samples: min_samples(stored),
            hold_out,
            validation,
            test: (!stored.set.gives_test()).then_some(test),
            device_validation: is_dealt.then_some(stored.device_validation),
            device_test: is_dealt.then_some(stored.device_test),
            missing: writes_missing.then_some(&stored.missing),
            noise: private.map(|private| private.noise),
            scale: NameOr::of(&stored.scale),
            bounds: private.and_then(|private| private.bounds.as_ref()),
            norm_bound: stored
                .norm_bound
                .and_then(|bound| bound.to_string().parse().ok()),
            target_scale: stored.set.is_regression().then(target_scale),
            categories: encoded(&stored.set, |encoding| match encoding {
                Encoding::Categories(names) => Some(names.as_slice()),
                _ => None,
            }),
            times: encoded(&stored.set, |encoding| match encoding {
                Encoding::Time(parts) => Some(parts.as_slice()),
                _ => None,
            }),
        }
    }
}

/// Returns the minimum number of samples of a device, a key of texts and of one partition.
fn min_samples(stored: &StoredConfig) -> Option<u32> {
    match (&stored.set, stored.dealing) {
        (StoredSet::Text(text), _) if !text.device_columns.is_empty() => Some(text.min_samples),
        (
            _,
            Dealing::Dirichlet {
                samples_per_device: None,
                min_samples,
                ..
            },
        ) => Some(min_samples),
        _ => None,
    }
}

/// Returns the columns of a table with one kind of encoding. `None` if there are none.
fn encoded<'a, T: ?Sized>(
    set: &'a StoredSet,
    part: impl Fn(&'a Encoding) -> Option<&'a T>,
) -> Option<BTreeMap<&'a str, &'a T>> {
    let StoredSet::Table(table) = set else {
        return None;
    };
    let encodings = table.columns.encodings.iter();
    let columns =
        encodings.filter_map(|(column, encoding)| Some((column.as_str(), part(encoding)?)));
    let columns: BTreeMap<_, _> = columns.collect();
    (!columns.is_empty()).then_some(columns)
}
