//! Named values of keys of `[data]`: partitions, the order of held-out rows, kinds of generated
//! devices, folders of images, unknown characters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the folders of a folder of images are, from the outermost on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) enum FoldersName {
    #[serde(rename = "class")]
    Class,
    #[serde(rename = "device/class")]
    DeviceAndClass,
}

/// Which rows a share that is held out is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum HoldOutOrder {
    Random,
    Last,
}

/// What becomes of a character that is not in the alphabet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum UnknownCharacters {
    Error,
    Replace,
}

/// The names of the ways to deal rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum PartitionName {
    Iid,
    Shards,
    Dirichlet,
    Natural,
    Rows,
}

/// The names of the kinds of synthetic devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum KindName {
    Tasks,
    Windows,
    Readings,
    Text,
}
