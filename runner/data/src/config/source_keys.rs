//! The keys of tables, arrays, folders and memory: the data set, and the meaning of its columns,
//! arrays or folders.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::error::{needed, positive, wrong};
use super::keys::{ArraysKeys, FolderKeys, ImagesKeys, LeafKeys, MemoryKeys, TableKeys};
use super::names::FoldersName;
use super::set::{ArraysConfig, ImagesConfig, LeafConfig, MemoryConfig, StoredSet, TableConfig};
use super::{DataConfigError, name_of};
use crate::array::ArrayFormat;
use crate::classes::{ClassList, Classes, UnknownLabels};
use crate::dataset::TaskKind;
use crate::images::ImageShape;
use crate::table::{Columns, Encoding, TableFormat};

impl FolderKeys {
    pub(super) fn set(
        &mut self,
        usual: &str,
        set: impl FnOnce(PathBuf) -> StoredSet,
    ) -> Result<StoredSet, DataConfigError> {
        Ok(set(self.path.take().unwrap_or_else(|| usual.into())))
    }
}

impl ArraysKeys {
    pub(super) fn set(&mut self, format: ArrayFormat) -> Result<StoredSet, DataConfigError> {
        let pair = |present, absent| Err(DataConfigError::Pair { present, absent });
        let test = match (self.test_path.take(), self.test_label_path.take()) {
            (Some(features), Some(labels)) => Some((features, labels)),
            (None, None) => None,
            (Some(_), None) => return pair("test_path", "test_label_path"),
            (None, Some(_)) => return pair("test_label_path", "test_path"),
        };
        let purpose = "the array with one row or image per sample";
        let path = needed("path", self.path.take(), purpose)?;
        let labels = self.label_path.take();
        let task = self.task.take();
        Ok(StoredSet::Arrays(ArraysConfig {
            format,
            path,
            label_path: needed("label_path", labels, "the array with the labels")?,
            device_path: self.device_path.take(),
            test,
            maximum: self
                .maximum
                .take()
                .map(|x| positive("maximum", x))
                .transpose()?,
            task: task.unwrap_or(TaskKind::Classification),
            classes: classes_of(task, self.class_keys())?,
        }))
    }
}

impl TableKeys {
    pub(super) fn set(&mut self, format: TableFormat) -> Result<StoredSet, DataConfigError> {
        let has_uses = self.categories.is_some() || self.times.is_some() || self.ignore.is_some();
        if !has_uses && self.categories_are_public.is_some() {
            return Err(DataConfigError::Pair {
                present: "categories_are_public",
                absent: "categories",
            });
        }
        let task = self.task.take();
        let recordings = self.recordings(task)?;
        let purpose = "the file of the table, plain or .gz";
        let path = needed("path", self.path.take(), purpose)?;
        let label = needed("label", self.label.take(), "the column to predict")?;
        // Only windows use a series. Their axes follow from the channels.
        let (series, axes) = match &recordings {
            Some(_) => (self.series_column.take(), Vec::new()),
            None => (None, self.axes.take().unwrap_or_default()),
        };
        Ok(StoredSet::Table(TableConfig {
            format,
            path,
            test_path: self.test_path.take(),
            columns: Columns {
                label,
                device: self.device_column.take(),
                series,
                ignore: self.ignore.take().unwrap_or_default(),
                task,
                classes: classes_of(task, self.class_keys())?,
                encodings: self.encodings()?,
                categories_are_public: self.categories_are_public.take(),
            },
            axes,
            maximum: checked_maximum(self.maximum.take())?,
            recordings,
        }))
    }

    fn encodings(&mut self) -> Result<BTreeMap<String, Encoding>, DataConfigError> {
        let mut encodings = BTreeMap::new();
        for (column, categories) in self.categories.take().unwrap_or_default() {
            let list = ClassList::Names(categories);
            if let Some(fault) = list.fault() {
                let expected = "a list of two or more different names for each column";
                return Err(wrong("categories", format!("{column} = {fault}"), expected));
            }
            encodings.insert(column, Encoding::Categories(list.names()));
        }
        for (column, parts) in self.times.take().unwrap_or_default() {
            if parts.is_empty() || encodings.contains_key(&column) {
                let expected = "some of \"hour\", \"weekday\" and \"day\" for each column that is \
                    not among `data.categories`";
                let found = format!("{column} = {}", name_of(parts));
                return Err(wrong("times", found, expected));
            }
            encodings.insert(column, Encoding::Time(parts));
        }
        Ok(encodings)
    }
}

impl LeafKeys {
    pub(super) fn set(&mut self) -> Result<StoredSet, DataConfigError> {
        let purpose = "the LEAF file, plain, .gz or .zip";
        let task = self.task.take();
        Ok(StoredSet::Leaf(LeafConfig {
            path: needed("path", self.path.take(), purpose)?,
            test_path: self.test_path.take(),
            task: task.unwrap_or(TaskKind::Classification),
            classes: classes_of(task, self.class_keys())?,
            axes: self.axes.take().unwrap_or_default(),
            maximum: checked_maximum(self.maximum.take())?,
        }))
    }
}

impl ImagesKeys {
    pub(super) fn set(&mut self) -> Result<StoredSet, DataConfigError> {
        const EXPECTED: &str = "[rows, columns] for grey levels, or [3, rows, columns] for colours";
        let axes = needed("axes", self.axes.take(), EXPECTED)?;
        if ImageShape::new(&axes).is_none() {
            return Err(wrong("axes", format!("{axes:?}"), EXPECTED));
        }
        let purpose = "the folder with one folder per class";
        Ok(StoredSet::Images(ImagesConfig {
            path: needed("path", self.path.take(), purpose)?,
            classes: classes_of(None, self.class_keys())?,
            has_devices: self.folders.take() == Some(FoldersName::DeviceAndClass),
            axes,
        }))
    }
}

impl MemoryKeys {
    pub(super) fn set(&mut self) -> Result<StoredSet, DataConfigError> {
        if self.unknown_labels == Some(UnknownLabels::Drop) {
            let expected = "left out for samples in memory: remove such rows beforehand";
            return Err(wrong("unknown_labels", "\"drop\"", expected));
        }
        let task = self.task.take();
        Ok(StoredSet::Memory(MemoryConfig {
            task: task.unwrap_or(TaskKind::Classification),
            classes: classes_of(task, self.class_keys())?,
            categories_are_public: self.categories_are_public.take(),
            axes: self.axes.take().unwrap_or_default(),
            maximum: checked_maximum(self.maximum.take())?,
        }))
    }
}

/// The keys about classes, shared by several sources.
struct ClassKeys<'a> {
    list: &'a mut Option<ClassList>,
    unknown: &'a mut Option<UnknownLabels>,
    are_public: &'a mut Option<bool>,
}

macro_rules! class_keys {
    ($($keys:ident),*) => {
        $(impl $keys {
            fn class_keys(&mut self) -> ClassKeys<'_> {
                ClassKeys {
                    list: &mut self.classes,
                    unknown: &mut self.unknown_labels,
                    are_public: &mut self.classes_are_public,
                }
            }
        })*
    };
}

class_keys!(ArraysKeys, ImagesKeys, LeafKeys, MemoryKeys, TableKeys);

/// Returns the classes of a set. Regression has none and takes no key.
fn classes_of(
    task: Option<TaskKind>,
    keys: ClassKeys<'_>,
) -> Result<Option<Classes>, DataConfigError> {
    const EXPECTED: &str = "a whole number from 2 to 65535, or a list of that many names";
    if task == Some(TaskKind::Regression) {
        return Ok(None);
    }
    let without_list = |present| {
        let absent = "classes";
        Err(DataConfigError::Pair { present, absent })
    };
    match keys.list.take() {
        Some(list) => match list.fault() {
            Some(fault) => Err(wrong("classes", fault, EXPECTED)),
            None => Ok(Some(Classes {
                list,
                unknown: keys.unknown.take().unwrap_or_default(),
                are_public: keys.are_public.take(),
            })),
        },
        None if keys.unknown.is_some() => without_list("unknown_labels"),
        None if keys.are_public.is_some() => without_list("classes_are_public"),
        None => Ok(None),
    }
}

fn checked_maximum(maximum: Option<f32>) -> Result<Option<f32>, DataConfigError> {
    let check = |maximum| positive("maximum", maximum);
    maximum.map(check).transpose()
}
