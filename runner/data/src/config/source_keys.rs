//! The keys that say which data set is read, and what its columns, arrays or folders mean.

use std::collections::BTreeMap;

use super::error::{needed, positive, wrong};
use super::set::{ArraysConfig, ImagesConfig, LeafConfig, MemoryConfig, StoredSet, TableConfig};
use super::{DataConfigError, FoldersName, RawData, SourceName, name_of, unless_empty};
use crate::array::ArrayFormat;
use crate::classes::{ClassList, ClassName, Classes, UnknownLabels};
use crate::dataset::TaskKind;
use crate::images::ImageShape;
use crate::table::{Columns, Encoding, TableFormat};

impl RawData {
    pub(super) fn take_set(&mut self) -> Result<StoredSet, DataConfigError> {
        let mut folder = |usual: &str| self.path.take().unwrap_or_else(|| usual.into());
        Ok(match self.source {
            SourceName::Digits | SourceName::Synthetic => StoredSet::Digits,
            SourceName::Mnist => StoredSet::Mnist {
                path: folder("mnist"),
            },
            SourceName::Femnist => StoredSet::Femnist {
                path: folder("femnist"),
            },
            SourceName::Cifar10 => StoredSet::Cifar10 {
                path: folder("cifar10"),
            },
            SourceName::Text => StoredSet::Text(self.take_text()?),
            SourceName::Idx => StoredSet::Arrays(self.take_arrays(ArrayFormat::Idx)?),
            SourceName::Npy => StoredSet::Arrays(self.take_arrays(ArrayFormat::Npy)?),
            SourceName::Images => StoredSet::Images(self.take_images()?),
            SourceName::Csv => StoredSet::Table(self.take_table(TableFormat::Csv)?),
            SourceName::Arff => StoredSet::Table(self.take_table(TableFormat::Arff)?),
            SourceName::Parquet => StoredSet::Table(self.take_table(TableFormat::Parquet)?),
            SourceName::Leaf => StoredSet::Leaf(LeafConfig {
                path: needed(
                    "path",
                    self.path.take(),
                    "the LEAF file, plain, .gz or .zip",
                )?,
                test_path: self.test_path.take(),
                task: self.task.unwrap_or(TaskKind::Classification),
                classes: self.take_classes_of_task()?,
                axes: self.axes.take().unwrap_or_default(),
                maximum: self.take_maximum()?,
            }),
            SourceName::Memory => StoredSet::Memory(self.take_memory()?),
        })
    }

    fn take_memory(&mut self) -> Result<MemoryConfig, DataConfigError> {
        if self.unknown_labels == Some(UnknownLabels::Drop) {
            let expected = "left out for samples in memory: leave such rows out before";
            return Err(wrong("unknown_labels", "\"drop\"", expected));
        }
        Ok(MemoryConfig {
            task: self.task.unwrap_or(TaskKind::Classification),
            classes: self.take_classes_of_task()?,
            axes: self.axes.take().unwrap_or_default(),
            maximum: self.take_maximum()?,
        })
    }

    fn put_memory(&mut self, memory: MemoryConfig) {
        self.source = SourceName::Memory;
        self.task = Some(memory.task);
        self.put_classes(memory.classes);
        self.axes = unless_empty(memory.axes);
        self.maximum = memory.maximum;
    }

    fn take_images(&mut self) -> Result<ImagesConfig, DataConfigError> {
        const EXPECTED: &str = "[rows, columns] for grey levels, or [3, rows, columns] for colours";
        let axes = needed("axes", self.axes.take(), EXPECTED)?;
        if ImageShape::new(&axes).is_none() {
            return Err(wrong("axes", format!("{axes:?}"), EXPECTED));
        }
        Ok(ImagesConfig {
            path: needed(
                "path",
                self.path.take(),
                "the folder with one folder a class",
            )?,
            has_devices: self.folders.take() == Some(FoldersName::DeviceAndClass),
            axes,
            classes: self.take_classes()?,
        })
    }

    fn take_table(&mut self, format: TableFormat) -> Result<TableConfig, DataConfigError> {
        let task = self.task;
        let recordings = self.take_recordings(task)?;
        Ok(TableConfig {
            format,
            path: needed(
                "path",
                self.path.take(),
                "the file of the table, plain or .gz",
            )?,
            test_path: self.test_path.take(),
            columns: Columns {
                label: needed("label", self.label.take(), "the column to predict")?,
                device: self.device_column.take(),
                series: match &recordings {
                    Some(_) => self.series_column.take(),
                    None => None,
                },
                ignore: self.ignore.take().unwrap_or_default(),
                task,
                classes: self.take_classes_of_task()?,
                encodings: self.take_encodings()?,
            },
            // A window has the axes of its channels, and leaves others behind.
            axes: match recordings {
                None => self.axes.take().unwrap_or_default(),
                Some(_) => Vec::new(),
            },
            recordings,
            maximum: self.take_maximum()?,
        })
    }

    fn take_encodings(&mut self) -> Result<BTreeMap<String, Encoding>, DataConfigError> {
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
                return Err(wrong(
                    "times",
                    format!("{column} = {}", name_of(parts)),
                    expected,
                ));
            }
            encodings.insert(column, Encoding::Time(parts));
        }
        Ok(encodings)
    }

    fn put_encodings(&mut self, encodings: BTreeMap<String, Encoding>) {
        for (column, encoding) in encodings {
            match encoding {
                Encoding::Categories(names) => {
                    let names = names.into_iter().map(ClassName::Text).collect();
                    self.categories
                        .get_or_insert_default()
                        .insert(column, names);
                }
                Encoding::Time(parts) => {
                    self.times.get_or_insert_default().insert(column, parts);
                }
                Encoding::Number => {}
            }
        }
    }

    fn take_arrays(&mut self, format: ArrayFormat) -> Result<ArraysConfig, DataConfigError> {
        let pair = |present, absent| Err(DataConfigError::Pair { present, absent });
        let test = match (self.test_path.take(), self.test_label_path.take()) {
            (Some(features), Some(labels)) => Some((features, labels)),
            (None, None) => None,
            (Some(_), None) => return pair("test_path", "test_label_path"),
            (None, Some(_)) => return pair("test_label_path", "test_path"),
        };
        let labels = self.label_path.take();
        Ok(ArraysConfig {
            format,
            task: self.task.unwrap_or(TaskKind::Classification),
            path: needed(
                "path",
                self.path.take(),
                "the array with one row or image a sample",
            )?,
            label_path: needed("label_path", labels, "the array with the labels")?,
            device_path: self.device_path.take(),
            test,
            classes: self.take_classes_of_task()?,
        })
    }

    pub(super) fn put_set(&mut self, set: StoredSet) {
        match set {
            StoredSet::Digits => self.source = SourceName::Digits,
            StoredSet::Mnist { path } => {
                self.source = SourceName::Mnist;
                self.path = Some(path);
            }
            StoredSet::Femnist { path } => {
                self.source = SourceName::Femnist;
                self.path = Some(path);
            }
            StoredSet::Arrays(idx) => {
                self.source = match idx.format {
                    ArrayFormat::Idx => SourceName::Idx,
                    ArrayFormat::Npy => SourceName::Npy,
                };
                self.task = Some(idx.task);
                self.path = Some(idx.path);
                self.label_path = Some(idx.label_path);
                self.device_path = idx.device_path;
                (self.test_path, self.test_label_path) = idx.test.unzip();
                self.put_classes(idx.classes);
            }
            StoredSet::Table(table) => {
                self.source = match table.format {
                    TableFormat::Csv => SourceName::Csv,
                    TableFormat::Arff => SourceName::Arff,
                    TableFormat::Parquet => SourceName::Parquet,
                };
                self.path = Some(table.path);
                self.test_path = table.test_path;
                self.label = Some(table.columns.label);
                self.device_column = table.columns.device;
                self.series_column = table.columns.series;
                self.ignore = unless_empty(table.columns.ignore);
                self.task = table.columns.task;
                self.put_classes(table.columns.classes);
                self.put_encodings(table.columns.encodings);
                self.put_recordings(table.recordings);
                self.axes = unless_empty(table.axes);
                self.maximum = table.maximum;
            }
            StoredSet::Cifar10 { path } => {
                self.source = SourceName::Cifar10;
                self.path = Some(path);
            }
            StoredSet::Text(text) => self.put_text(text),
            StoredSet::Images(images) => {
                self.source = SourceName::Images;
                self.path = Some(images.path);
                self.folders = Some(match images.has_devices {
                    true => FoldersName::DeviceAndClass,
                    false => FoldersName::Class,
                });
                self.axes = Some(images.axes);
                self.put_classes(images.classes);
            }
            StoredSet::Memory(memory) => self.put_memory(memory),
            StoredSet::Leaf(leaf) => {
                self.source = SourceName::Leaf;
                self.path = Some(leaf.path);
                self.test_path = leaf.test_path;
                self.task = Some(leaf.task);
                self.put_classes(leaf.classes);
                self.axes = unless_empty(leaf.axes);
                self.maximum = leaf.maximum;
            }
        }
    }

    /// The classes of a set that may be for regression, which has none: then they stay behind.
    fn take_classes_of_task(&mut self) -> Result<Option<Classes>, DataConfigError> {
        match self.task.take() {
            Some(TaskKind::Regression) => Ok(None),
            Some(TaskKind::Classification) | None => self.take_classes(),
        }
    }

    fn take_classes(&mut self) -> Result<Option<Classes>, DataConfigError> {
        const EXPECTED: &str = "a whole number from 2 to 65535, or a list of as many names";
        let Some(list) = self.classes.take() else {
            return match self.unknown_labels {
                None => Ok(None),
                Some(_) => Err(DataConfigError::Pair {
                    present: "unknown_labels",
                    absent: "classes",
                }),
            };
        };
        match list.fault() {
            Some(fault) => Err(wrong("classes", fault, EXPECTED)),
            None => Ok(Some(Classes {
                list,
                unknown: self.unknown_labels.take().unwrap_or_default(),
            })),
        }
    }

    fn put_classes(&mut self, classes: Option<Classes>) {
        self.unknown_labels = classes.as_ref().map(|classes| classes.unknown);
        self.classes = classes.map(|classes| classes.list);
    }

    fn take_maximum(&mut self) -> Result<Option<f32>, DataConfigError> {
        let check = |maximum| positive("maximum", maximum);
        self.maximum.take().map(check).transpose()
    }
}
