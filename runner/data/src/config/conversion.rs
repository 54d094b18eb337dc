//! Conversion of the keys of `[data]` to a configuration, and the refusal of keys without effect.

use super::keys::{Converted, ImagesKeys, LeafKeys, MemoryKeys, RawData, TextKeys};
use super::reading::TaggedKeys;
use super::set::StoredSet;
use super::{DataConfig, DataConfigError, name_of};
use crate::array::ArrayFormat;
use crate::table::TableFormat;

/// Each value takes its own keys. A remaining key is refused.
impl TryFrom<TaggedKeys> for DataConfig {
    type Error = DataConfigError;

    fn try_from(tagged: TaggedKeys) -> Result<Self, DataConfigError> {
        let Converted {
            config,
            partition,
            left_over,
        } = match tagged.keys {
            RawData::Digits(keys) => keys.convert(|_| Ok(StoredSet::Digits)),
            RawData::Mnist(keys) => {
                keys.convert(|keys| keys.set("mnist", |path| StoredSet::Mnist { path }))
            }
            RawData::Femnist(keys) => {
                keys.convert(|keys| keys.set("femnist", |path| StoredSet::Femnist { path }))
            }
            RawData::Cifar10(keys) => {
                keys.convert(|keys| keys.set("cifar10", |path| StoredSet::Cifar10 { path }))
            }
            RawData::Idx(keys) => keys.convert(|keys| keys.set(ArrayFormat::Idx)),
            RawData::Npy(keys) => keys.convert(|keys| keys.set(ArrayFormat::Npy)),
            RawData::Csv(keys) => keys.convert(|keys| keys.set(TableFormat::Csv)),
            RawData::Jsonl(keys) => keys.convert(|keys| keys.set(TableFormat::Jsonl)),
            RawData::Arff(keys) => keys.convert(|keys| keys.set(TableFormat::Arff)),
            RawData::Parquet(keys) => keys.convert(|keys| keys.set(TableFormat::Parquet)),
            RawData::Leaf(keys) => keys.convert(LeafKeys::set),
            RawData::Images(keys) => keys.convert(ImagesKeys::set),
            RawData::Text(keys) => keys.convert(TextKeys::set),
            RawData::Memory(keys) => keys.convert(MemoryKeys::set),
            RawData::Synthetic(keys) => keys.convert(),
        }?;
        let left_over = left_over.map(str::to_owned);
        let Some(key) = tagged.foreign.into_iter().chain(left_over).min() else {
            return Ok(config);
        };
        let mut context = format!("source = {}", name_of(tagged.source));
        if let Some(partition) = partition {
            context += &format!(" and partition = {}", name_of(partition));
        }
        Err(DataConfigError::Unused { key, context })
    }
}
