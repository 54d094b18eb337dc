//! Data for simulated federations: the source of samples, and the devices that hold them.
//!
//! | question | file |
//! | --- | --- |
//! | the data of a run | [`federation`] |
//! | the `[data]` table of an experiment | [`config`] |
//! | samples in memory, views of rows | [`dataset`] |
//! | formats, pure functions over bytes | [`archive`], [`table`], [`idx`], [`npy`], [`leaf`] |
//! | a column of a file, as features | [`mod@column`] |
//! | arrays, folders of images | [`mod@array`], [`images`] |
//! | texts, windows of recordings, their features | [`text`], [`recordings`], [`window_features`] |
//! | fixed features of images and numbers, their recipe | [`mod@features`], [`recipe`] |
//! | sets that are known by name | [`catalogue`], [`digits`], `mnist`, `femnist`, [`cifar`] |
//! | devices without files | [`synthetic`] |
//! | training, validation and test parts | [`split`], [`held_out`] |
//! | numbers with more digits than `f32` has | [`large`] |
//! | missing values, scaling | [`missing`], [`scale`], [`constants`], [`scale::moments`] |
//! | the preparation of a row, to be repeated on others | [`preparation`] |
//! | classes that are known beforehand | [`classes`] |
//! | unexpected properties of a file, for its owner | `remark` |
//! | the data read from private rows | [`reads`] |
//! | rows to devices | [`partition`] |
//! | the search path of files | [`folders`] |
//! | the content of a data set | [`inspection`] |
//! | a `[data]` table for a file | [`suggestion`] |
//! | parts that a program was compiled without | [`missing_feature`] |
//! | errors of parsers in plain words, suggested names | [`wording`], [`spelling`] |
//!
//! ```
//! use smolfed_data::{DataConfig, DataFolders, DeviceBuffer, Federation};
//!
//! let config: DataConfig = toml::from_str("source = \"digits\"\ndevices = 100")?;
//! let federation = Federation::new(&config, &DataFolders::of_experiment(None), 42)?;
//! let mut buffer = DeviceBuffer::default();
//! let samples = federation.device(7, &mut buffer);
//! assert_eq!(federation.device_count(), 100);
//! assert_eq!((samples.len(), samples.features(0).len()), (14, 64));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::float_cmp, reason = "tests compare exact results"))]

pub mod archive;
pub mod array;
pub mod catalogue;
pub mod cifar;
pub mod classes;
pub mod column;
pub mod config;
pub mod constants;
pub mod dataset;
pub mod digits;
mod draw;
pub mod error;
pub mod features;
pub mod federation;
mod femnist;
pub mod files;
pub mod folders;
pub mod held_out;
pub mod idx;
pub mod images;
pub mod inspection;
pub mod large;
pub mod leaf;
pub mod missing;
pub mod missing_feature;
mod mnist;
pub mod npy;
pub mod partition;
pub mod preparation;
pub mod proposed_windows;
pub mod reads;
#[cfg(test)]
mod real_data;
pub mod recipe;
pub mod recordings;
mod remark;
pub mod scale;
pub mod source;
pub mod spelling;
pub mod split;
pub mod suggestion;
pub mod synthetic;
pub mod table;
pub mod text;
mod vocabulary;
pub mod window_features;
pub mod wording;

pub use config::{DataConfig, DataConfigError};
pub use dataset::{Dataset, DatasetView, DeviceBuffer, Targets};
pub use error::DataError;
pub use federation::Federation;
pub use folders::DataFolders;
