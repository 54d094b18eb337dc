//! The versions of a folder of models, in `models.json`, and the shares of devices that get them.
//!
//! Version numbers only rise. Taking a version back publishes its parameters under a new number, so
//! that devices, which refuse older versions, follow.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use blake2::{Blake2s256, Digest};
use serde::{Deserialize, Serialize};
use smolfed_core::delivery::{Encoding, Header};
use smolfed_core::recipe::Recipe;
use smolfed_core::wire::message::{ModelGrid, ModelShape};
use smolfed_engine::question::Answer;
use smolfed_release::durable::write_atomically;
use smolfed_release::statement::PrivacyStatement;

use super::error::CatalogueError;
use super::publisher::{Publisher, key_of};

/// Separates the hash of shares from every other use of the hash function.
const LABEL: &[u8] = b"smolfed model share";

/// Sum of all shares, in percent.
const ALL: f64 = 100.0;

/// A published version.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Its number.
    pub number: u32,
    /// The date, in UTC.
    pub published: String,
    /// The run directory of the model.
    pub source: String,
    /// The version whose parameters it has, if it takes a later one back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolls_back_to: Option<u32>,
    /// The version that most devices got before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<u32>,
    /// The privacy statement of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<PrivacyStatement>,
    /// The last round with answers, and the answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<(u32, Vec<Answer>)>,
}

/// The share of devices that get a version.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The version.
    pub version: u32,
    /// The share in percent.
    pub percent: f64,
}

/// All versions of a folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    next: u32,
    /// The versions, by number.
    pub versions: Vec<Version>,
    /// The current versions, the newest first.
    pub shares: Vec<Share>,
}

/// A model to publish.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The run directory.
    pub source: String,
    /// The model.
    pub shape: ModelShape,
    /// The features of its samples, if they are computed.
    pub recipe: Option<Recipe>,
    /// The parameters.
    pub parameters: Vec<f32>,
    /// The places of the grid of a file in 16 bits.
    pub grid: Option<ModelGrid>,
    /// The privacy statement of the run.
    pub statement: Option<PrivacyStatement>,
    /// The last round with answers, and the answers.
    pub answers: Option<(u32, Vec<Answer>)>,
}

impl Version {
    /// Returns the main figure of each answer with its interval: "accuracy 0.91 (0.89 to 0.94)".
    #[must_use]
    pub fn answer_words(&self) -> Vec<String> {
        let answers = self.answers.iter().flat_map(|(_, answers)| answers);
        let main = answers.filter_map(|answer| answer.estimates.first());
        let figure =
            |value: Option<f64>| value.map_or("?".to_owned(), |value| format!("{value:.3}"));
        main.map(|estimate| {
            let [low, high] = estimate.interval.map(figure);
            format!(
                "{} {} ({low} to {high})",
                estimate.name,
                figure(estimate.value)
            )
        })
        .collect()
    }

    /// Returns the privacy statement in one line, with its δ, its accountant and its conditions.
    #[must_use]
    pub fn privacy_words(&self) -> String {
        let statement = self.statement.as_ref();
        statement.map_or_else(
            || "no privacy statement".to_owned(),
            PrivacyStatement::in_one_line,
        )
    }

    /// Returns where the parameters are from.
    #[must_use]
    pub fn source_words(&self) -> String {
        match self.rolls_back_to {
            Some(version) => format!("{}, rolled back to version {version}", self.source),
            None => self.source.clone(),
        }
    }
}

impl Catalogue {
    /// The file of the catalogue in a folder.
    pub const FILE: &str = "models.json";

    /// Reads the catalogue of a folder.
    ///
    /// # Errors
    /// [`CatalogueError`].
    pub fn read(folder: &Path) -> Result<Self, CatalogueError> {
        let path = folder.join(Self::FILE);
        let bytes = std::fs::read(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => CatalogueError::Absent(folder.display().to_string()),
            _ => CatalogueError::io(&path, error),
        })?;
        let damaged = |reason: String| CatalogueError::Damaged {
            path: path.display().to_string(),
            reason,
        };
        let catalogue: Self =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        let shares = catalogue.shares.clone();
        catalogue
            .checked(shares)
            .map_err(|error| damaged(error.to_string()))?;
        let newest = catalogue
            .versions
            .iter()
            .map(|version| version.number)
            .max();
        match newest.is_none_or(|newest| newest < catalogue.next) {
            true => Ok(catalogue),
            false => Err(damaged("its next number is used".to_owned())),
        }
    }

    /// Returns the version of a device, by a public hash of its number and of the newest version.
    /// Raising the share of the newest version leaves it with all devices that have it.
    #[must_use]
    pub fn version_of(&self, device: u32) -> u32 {
        let newest = self.shares.first().map_or(0, |share| share.version);
        let hash = Blake2s256::new()
            .chain_update(LABEL)
            .chain_update(newest.to_le_bytes())
            .chain_update(device.to_le_bytes())
            .finalize();
        let hash = u32::from_le_bytes(hash.first_chunk().copied().unwrap_or_default());
        // In [0, 100).
        let place = f64::from(hash) / 2_f64.powi(32) * ALL;
        let mut end = 0.0;
        for share in &self.shares {
            end += share.percent;
            if place < end {
                return share.version;
            }
        }
        // Shares add up to 100, apart from rounding.
        self.shares.last().map_or(0, |share| share.version)
    }

    /// Returns a version.
    ///
    /// # Errors
    /// [`CatalogueError::NoVersion`].
    pub fn version(&self, number: u32) -> Result<&Version, CatalogueError> {
        let mut versions = self.versions.iter();
        let found = versions.find(|version| version.number == number);
        found.ok_or_else(|| CatalogueError::NoVersion {
            version: number,
            known: match (self.versions.first(), self.versions.last()) {
                (Some(first), Some(last)) if first.number < last.number => {
                    format!("there are versions {} to {}", first.number, last.number)
                }
                (Some(only), _) => format!("there is version {}", only.number),
                _ => "none was published".to_owned(),
            },
        })
    }

    /// Returns these shares, the newest version first.
    fn checked(&self, mut shares: Vec<Share>) -> Result<Vec<Share>, CatalogueError> {
        let mut versions = BTreeSet::new();
        for share in &shares {
            self.version(share.version)?;
            if !(share.percent > 0.0 && share.percent <= ALL) {
                return Err(CatalogueError::Share(share.percent));
            }
            if !versions.insert(share.version) {
                return Err(CatalogueError::Twice(share.version));
            }
        }
        let sum: f64 = shares.iter().map(|share| share.percent).sum();
        if (sum - ALL).abs() > 1e-6 {
            return Err(CatalogueError::Sum(sum));
        }
        shares.sort_by_key(|share| std::cmp::Reverse(share.version));
        Ok(shares)
    }

    /// Returns the version that most devices get, the older one among equals.
    fn established(&self) -> Option<u32> {
        let shares = self.shares.iter();
        let most = shares.max_by(|a, b| a.percent.total_cmp(&b.percent));
        most.map(|share| share.version)
    }

    /// Returns the version to go back to: the older one of a split, or the one before the current.
    fn earlier(&self) -> Result<u32, CatalogueError> {
        match self.shares.as_slice() {
            [current] => {
                let replaced = self.version(current.version)?.replaces;
                replaced.ok_or(CatalogueError::NoEarlier)
            }
            shares => {
                let oldest = shares.last().ok_or(CatalogueError::NoEarlier)?;
                Ok(oldest.version)
            }
        }
    }
}

/// A folder of models, locked for a change.
#[derive(Debug)]
pub struct Edit {
    folder: PathBuf,
    /// The publisher, on the machine that has its key.
    publisher: Option<Publisher>,
    catalogue: Catalogue,
    _lock: File,
}

impl Edit {
    /// Begins a change of an existing folder, and waits for other changes.
    ///
    /// # Errors
    /// [`CatalogueError`].
    pub fn begin(folder: &Path) -> Result<Self, CatalogueError> {
        Catalogue::read(folder)?;
        Self::open(folder)
    }

    /// Begins a change of a folder, which it creates with a key if it does not exist.
    ///
    /// # Errors
    /// [`CatalogueError`].
    pub fn begin_or_create(folder: &Path) -> Result<Self, CatalogueError> {
        std::fs::create_dir_all(folder).map_err(|source| CatalogueError::io(folder, source))?;
        Self::open(folder)
    }

    fn open(folder: &Path) -> Result<Self, CatalogueError> {
        let path = folder.join("models.lock");
        let lock = File::create(&path).and_then(|file| file.lock().map(|()| file));
        let lock = lock.map_err(|source| CatalogueError::io(&path, source))?;
        let catalogue = match Catalogue::read(folder) {
            Err(CatalogueError::Absent(_)) => Catalogue {
                next: 1,
                versions: Vec::new(),
                shares: Vec::new(),
            },
            read => read?,
        };
        let mut publisher = Publisher::open(folder)?;
        // A folder with versions has had a key.
        if publisher.is_none() && catalogue.versions.is_empty() {
            publisher = Some(Publisher::create(folder)?);
        }
        Ok(Self {
            folder: folder.to_path_buf(),
            publisher,
            catalogue,
            _lock: lock,
        })
    }

    /// Publishes a model to all devices, or to this share of them, and returns its version.
    ///
    /// # Errors
    /// [`CatalogueError`], with nothing published.
    pub fn publish(
        mut self,
        draft: Draft,
        percent: Option<f64>,
    ) -> Result<Version, CatalogueError> {
        check(&draft)?;
        if let Some(last) = self.catalogue.versions.last() {
            let (header, _) = file_of(&self.folder, last.number)?;
            if (header.shape, header.recipe) != (draft.shape, draft.recipe) {
                return Err(CatalogueError::OtherModel {
                    found: words(&draft.shape, draft.recipe.as_ref()),
                    expected: words(&header.shape, header.recipe.as_ref()),
                });
            }
        }
        let number = self.next_number();
        let before = self.catalogue.shares.clone();
        let others = match (percent, before.as_slice()) {
            (None, _) => Vec::new(),
            (Some(percent), [current]) => vec![Share {
                version: current.version,
                percent: rest_of(percent),
            }],
            (Some(_), []) => return Err(CatalogueError::First),
            (Some(_), _) => return Err(CatalogueError::AlreadySplit),
        };
        let version = Version {
            number,
            published: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            source: draft.source,
            rolls_back_to: None,
            replaces: self.catalogue.established(),
            statement: draft.statement,
            answers: draft.answers,
        };
        let header = Header {
            version: number,
            shape: draft.shape,
            recipe: draft.recipe,
            encoding: draft.grid.map_or(Encoding::Words, Encoding::Short),
        };
        let own = Share {
            version: number,
            percent: percent.unwrap_or(ALL),
        };
        let others = others.into_iter().filter(|share| share.percent > 0.0);
        let shares = std::iter::once(own).chain(others).collect();
        self.add(version.clone(), (header, &draft.parameters), shares)?;
        Ok(version)
    }

    /// Takes the current versions back: publishes the parameters of version `to`, or else of the
    /// one before, to all devices under a new number.
    ///
    /// # Errors
    /// [`CatalogueError`], with nothing published.
    pub fn roll_back(mut self, to: Option<u32>) -> Result<Version, CatalogueError> {
        let to = match to {
            Some(to) => to,
            None => self.catalogue.earlier()?,
        };
        let target = self.catalogue.version(to)?.clone();
        // Whoever can write to the folder must not get another file signed.
        let (header, file) = signed_file(&self.folder, to)?;
        let number = self.next_number();
        let version = Version {
            number,
            published: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            rolls_back_to: Some(to),
            // With the target's `replaces`, going back again reaches the version before the target.
            ..target
        };
        let parameters: Vec<f32> = header.parameters(&file);
        let header = Header {
            version: number,
            ..header
        };
        let shares = vec![Share {
            version: number,
            percent: ALL,
        }];
        self.add(version.clone(), (header, &parameters), shares)?;
        Ok(version)
    }

    /// Sets the shares of versions.
    ///
    /// # Errors
    /// [`CatalogueError`], with the shares unchanged.
    pub fn split(mut self, shares: Vec<Share>) -> Result<Catalogue, CatalogueError> {
        self.set(shares)?;
        Ok(self.catalogue)
    }

    fn publisher(&self) -> Result<&Publisher, CatalogueError> {
        let folder = || self.folder.display().to_string();
        let publisher = self.publisher.as_ref();
        publisher.ok_or_else(|| CatalogueError::NoKey(folder()))
    }

    /// Signs the file of a new version, and makes it current with these shares of others.
    fn add(
        &mut self,
        version: Version,
        (header, parameters): (Header, &[f32]),
        shares: Vec<Share>,
    ) -> Result<(), CatalogueError> {
        let next = version.number.checked_add(1);
        let next = next.ok_or(CatalogueError::NoNumber)?;
        let file = self.publisher()?.sign(&header, parameters);
        let path = file_path(&self.folder, version.number);
        self.catalogue.versions.push(version);
        // Nothing is signed for shares that are refused.
        let shares = self.catalogue.checked(shares)?;
        write_atomically(&path, &file).map_err(|source| CatalogueError::io(&path, source))?;
        self.catalogue.next = next;
        self.set(shares)
    }

    /// Returns the number of the next version. A number whose file was signed is not used again,
    /// even if a crash kept it out of the catalogue.
    fn next_number(&self) -> u32 {
        let mut next = self.catalogue.next;
        while next < u32::MAX && file_path(&self.folder, next).exists() {
            next += 1;
        }
        next
    }

    /// Sets the shares, and writes the catalogue.
    fn set(&mut self, shares: Vec<Share>) -> Result<(), CatalogueError> {
        self.catalogue.shares = self.catalogue.checked(shares)?;
        let path = self.folder.join(Catalogue::FILE);
        let text = serde_json::to_vec_pretty(&self.catalogue).map_err(std::io::Error::from);
        let written = text.and_then(|text| write_atomically(&path, &text));
        written.map_err(|source| CatalogueError::io(&path, source))
    }
}

/// Refuses a model with values that are not finite, or beyond its grid.
fn check(draft: &Draft) -> Result<(), CatalogueError> {
    if draft.parameters.len() != draft.shape.parameters() {
        return Err(CatalogueError::Unusable(
            "it has other parameters than its shape",
        ));
    }
    // Bit patterns of integers, some of which are NaN as `f32`.
    if draft.shape.integer.is_some() {
        return match draft.grid {
            None => Ok(()),
            Some(_) => Err(CatalogueError::Unusable("weights in integers have 32 bits")),
        };
    }
    if !draft.parameters.iter().all(|value| value.is_finite()) {
        return Err(CatalogueError::Unusable("a parameter is not finite"));
    }
    let is_beyond = |grid: ModelGrid, value: &f32| {
        let step = grid.value(1);
        (grid.value(grid.round(*value)) - value).abs() > step
    };
    if let Some(grid) = draft.grid
        && draft.parameters.iter().any(|value| is_beyond(grid, value))
    {
        return Err(CatalogueError::Unusable(
            "a parameter is beyond the range of 16 bits: choose fewer `--places`",
        ));
    }
    Ok(())
}

/// Describes a model and its features.
#[must_use]
pub fn words(shape: &ModelShape, recipe: Option<&Recipe>) -> String {
    match recipe {
        Some(recipe) => format!("{shape}, on {recipe}"),
        None => shape.to_string(),
    }
}

/// Returns the path of the file of a version.
#[must_use]
pub fn file_path(folder: &Path, version: u32) -> PathBuf {
    folder.join(format!("{version}.model"))
}

/// Reads the file of a version, and its header.
fn file_of(folder: &Path, version: u32) -> Result<(Header, Vec<u8>), CatalogueError> {
    let path = file_path(folder, version);
    let file = std::fs::read(&path).map_err(|source| CatalogueError::io(&path, source))?;
    let header = file.first_chunk().and_then(Header::read);
    let is_whole = |header: &Header| {
        let length = u32::try_from(file.len()).ok();
        header.version == version && header.file_bytes() == length
    };
    match header.filter(is_whole) {
        Some(header) => Ok((header, file)),
        None => Err(CatalogueError::Damaged {
            path: path.display().to_string(),
            reason: format!("it is not the file of version {version}"),
        }),
    }
}

/// Reads the file of a version, and checks the publisher's signature.
///
/// # Errors
/// [`CatalogueError`].
pub fn signed_file(folder: &Path, version: u32) -> Result<(Header, Vec<u8>), CatalogueError> {
    let (header, file) = file_of(folder, version)?;
    match key_of(folder)?.has_signed_file(&file) {
        true => Ok((header, file)),
        false => Err(CatalogueError::Damaged {
            path: file_path(folder, version).display().to_string(),
            reason: "its signature is not this publisher's".to_owned(),
        }),
    }
}

/// Returns the share that another one leaves, in millionths of a percent.
fn rest_of(percent: f64) -> f64 {
    ((ALL - percent) * 1e6).round() / 1e6
}
