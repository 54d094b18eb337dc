//! The current versions of a folder of models, as the service sends them: the check of their
//! signatures, and the offer of a newer version to a device.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use smolfed_core::recipe::{MAX_RECIPE_BYTES, Recipe};
use smolfed_core::wire::message::{
    Installed, MAX_SHAPE_BYTES, ModelShape, NO_RECIPE, Refused, WhyRefused,
};

use super::catalogue::{Catalogue, signed_file};
use super::error::CatalogueError;

/// The current versions, with their files.
#[derive(Debug)]
pub struct Published {
    /// The catalogue that they are from.
    pub catalogue: Catalogue,
    /// The model of all versions.
    pub shape: ModelShape,
    /// The features of its samples, if they are computed.
    pub recipe: Option<Recipe>,
    files: BTreeMap<u32, Vec<u8>>,
    written: Option<SystemTime>,
    encoded: Encoded,
}

/// Shape and recipe on the line, for devices with others.
#[derive(Debug)]
struct Encoded {
    shape: Vec<u8>,
    recipe: Vec<u8>,
}

impl Published {
    /// Reads the current versions of a folder, and verifies their signatures.
    ///
    /// # Errors
    /// [`CatalogueError`].
    pub fn read(folder: &Path) -> Result<Self, CatalogueError> {
        let written = written(folder);
        let catalogue = Catalogue::read(folder)?;
        let mut files = BTreeMap::new();
        let mut model = None;
        for share in &catalogue.shares {
            let (header, file) = signed_file(folder, share.version)?;
            model = Some((header.shape, header.recipe));
            files.insert(share.version, file);
        }
        let absent = || CatalogueError::Absent(folder.display().to_string());
        let (shape, recipe) = model.ok_or_else(absent)?;
        let (mut place, mut room) = ([0; MAX_SHAPE_BYTES], [0; MAX_RECIPE_BYTES]);
        let encoded = Encoded {
            shape: shape.write(&mut place).to_vec(),
            recipe: match &recipe {
                Some(recipe) => recipe.write(&mut room).to_vec(),
                None => Vec::new(),
            },
        };
        Ok(Self {
            catalogue,
            shape,
            recipe,
            files,
            written,
            encoded,
        })
    }

    /// Whether the catalogue of the folder has been written since.
    #[must_use]
    pub fn is_outdated(&self, folder: &Path) -> bool {
        written(folder) != self.written
    }

    /// Returns the newer version that a device should get, and its file.
    #[must_use]
    pub fn offer(&self, device: u32, held: u32) -> Option<(u32, &[u8])> {
        let version = self.catalogue.version_of(device);
        let file = self.files.get(&version).filter(|_| version > held)?;
        Some((version, file))
    }

    /// Returns why a device cannot use the models, if it cannot.
    #[must_use]
    pub fn refuses(&self, installed: &Installed<'_>) -> Option<Refused<'_>> {
        if installed.shape != self.shape {
            return Some(Refused {
                reason: WhyRefused::Shape,
                experiment: &self.encoded.shape,
            });
        }
        let recipe = self.encoded.recipe.as_slice();
        (installed.recipe != recipe).then_some(Refused {
            reason: WhyRefused::RECIPE,
            experiment: match recipe {
                [] => NO_RECIPE,
                recipe => recipe,
            },
        })
    }
}

fn written(folder: &Path) -> Option<SystemTime> {
    let metadata = std::fs::metadata(folder.join(Catalogue::FILE));
    metadata.and_then(|metadata| metadata.modified()).ok()
}
