//! Folders of images: one folder per class, optionally below one folder per device.
//!
//! PNG and JPEG, as grey levels or as red, green and blue, all of one size. An image of another
//! size is refused instead of scaled, since every scaling method gives different bits. PNG images
//! give the same bits on every machine. JPEG images may differ by one level between machines.

#[cfg(feature = "images")]
mod decoded;
#[cfg(not(feature = "images"))]
#[path = "images/without_decoder.rs"]
mod decoded;
mod error;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::dataset::Features;
use decoded::Decoded;

pub use error::ImagesError;

/// Extensions of image files.
const ENDINGS: [&str; 3] = ["png", "jpg", "jpeg"];

/// Levels of folders below a folder of images: devices and classes.
const DEPTH: usize = 2;

/// Channels of a coloured image.
const COLOURS: usize = 3;

/// The pixels of all images, with their folders.
pub struct Images {
    /// Channel by channel, row by row.
    pub features: Features,
    /// The class of each image: the name of its folder.
    pub classes: Vec<String>,
    /// The device of each image, if there are folders of devices.
    pub devices: Option<Vec<String>>,
}

/// Shape only: device data never reach a log.
impl fmt::Debug for Images {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Images({})", self.classes.len())
    }
}

/// Height, width and colour, as in `axes`: `[rows, columns]` of grey levels, or
/// `[3, rows, columns]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageShape {
    rows: usize,
    columns: usize,
    is_coloured: bool,
}

impl ImageShape {
    /// Returns the shape, if `axes` are those of images.
    #[must_use]
    pub fn new(axes: &[usize]) -> Option<Self> {
        let (rows, columns, is_coloured) = match *axes {
            [rows, columns] => (rows, columns, false),
            [COLOURS, rows, columns] => (rows, columns, true),
            _ => return None,
        };
        (rows > 0 && columns > 0).then_some(Self {
            rows,
            columns,
            is_coloured,
        })
    }

    /// Returns the axes of the first image of a folder.
    ///
    /// # Errors
    /// [`ImagesError`].
    pub fn of_first(folder: &Path, has_devices: bool) -> Result<Vec<usize>, ImagesError> {
        let files = files(folder, has_devices)?;
        let image = Decoded::read(&files[0].path)?;
        let size = image.size();
        Ok(match image.is_coloured() {
            true => [&[COLOURS][..], &size].concat(),
            false => size.to_vec(),
        })
    }
}

/// Reads all images of a folder, in the order of their names.
///
/// # Errors
/// [`ImagesError`] if a file is not an image or has another size, or there is none.
pub fn load(folder: &Path, has_devices: bool, shape: ImageShape) -> Result<Images, ImagesError> {
    let images = files(folder, has_devices)?;
    let features = pixels(&images, shape)?;
    let devices: Option<Vec<String>> = images.iter().map(|image| image.device.clone()).collect();
    Ok(Images {
        features,
        classes: images.into_iter().map(|image| image.class).collect(),
        devices,
    })
}

/// Reads all images of a folder and of two levels of folders in it, in the order of their names.
/// There must be at least one.
///
/// # Errors
/// The errors of [`load`].
pub fn load_below(folder: &Path, shape: ImageShape) -> Result<(Features, Vec<Image>), ImagesError> {
    let mut found = Vec::new();
    add_all(folder, DEPTH, &mut found)?;
    let images = some(found, folder, "it or the folders in it")?;
    Ok((pixels(&images, shape)?, images))
}

/// Returns the pixels of images, channel by channel and row by row.
fn pixels(images: &[Image], shape: ImageShape) -> Result<Features, ImagesError> {
    let mut pixels = Vec::new();
    for file in images {
        let image = Decoded::read(&file.path)?;
        let [rows, columns] = image.size();
        if (rows, columns) != (shape.rows, shape.columns) {
            return Err(ImagesError::Size {
                path: file.path.clone(),
                found: format!("{rows} x {columns}"),
                expected: format!("{} x {}", shape.rows, shape.columns),
            });
        }
        match shape.is_coloured {
            false => pixels.extend(image.into_grey()),
            true => {
                let colours = image.into_colours();
                for channel in 0..COLOURS {
                    pixels.extend(colours.iter().skip(channel).step_by(COLOURS));
                }
            }
        }
    }
    Ok(Features::of_bytes(pixels))
}

/// An image file and its location.
#[derive(Debug)]
pub struct Image {
    /// The file.
    pub path: PathBuf,
    /// The name of its folder.
    pub class: String,
    device: Option<String>,
}

/// Returns the images of classes, at least one.
fn files(folder: &Path, has_devices: bool) -> Result<Vec<Image>, ImagesError> {
    let mut found = Vec::new();
    match has_devices {
        false => add_classes(folder, None, &mut found)?,
        true => {
            for device in entries(folder)? {
                if device.is_dir() {
                    add_classes(&device, Some(&name(&device)), &mut found)?;
                }
            }
        }
    }
    let layout = match has_devices {
        false => "one folder per class",
        true => "one folder per device, with one folder per class in it",
    };
    some(found, folder, layout)
}

/// Refuses a folder without images.
fn some(found: Vec<Image>, folder: &Path, layout: &'static str) -> Result<Vec<Image>, ImagesError> {
    match found.is_empty() {
        false => Ok(found),
        true => Err(ImagesError::Empty {
            path: folder.to_path_buf(),
            layout,
        }),
    }
}

/// Adds the images of a folder and of the folders in it.
fn add_all(folder: &Path, depth: usize, found: &mut Vec<Image>) -> Result<(), ImagesError> {
    for path in entries(folder)? {
        if depth > 0 && path.is_dir() {
            add_all(&path, depth - 1, found)?;
        } else if is_image(&path) {
            found.push(Image {
                class: name(folder),
                path,
                device: None,
            });
        }
    }
    Ok(())
}

fn is_image(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    path.is_file() && ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
}

fn add_classes(
    folder: &Path,
    device: Option<&str>,
    found: &mut Vec<Image>,
) -> Result<(), ImagesError> {
    for class in entries(folder)? {
        if !class.is_dir() {
            continue;
        }
        for path in entries(&class)? {
            if is_image(&path) {
                found.push(Image {
                    path,
                    class: name(&class),
                    device: device.map(str::to_owned),
                });
            }
        }
    }
    Ok(())
}

/// Returns the content of a folder, in the order of the names, without hidden files.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, ImagesError> {
    let refuse = |reason| ImagesError::Read {
        path: folder.to_path_buf(),
        reason,
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(refuse)? {
        let path = entry.map_err(refuse)?.path();
        if !name(&path).starts_with('.') {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    Ok(paths)
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
#[cfg(feature = "images")]
mod tests {
    use image::{GrayImage, Luma, Rgb, RgbImage};

    use super::*;

    /// Creates two devices with a grey image of each of two classes, and a coloured one.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (device, level) in [("d1", 10), ("d2", 20)] {
            for class in ["cat", "dog"] {
                let path = folder.path().join(device).join(class);
                fs::create_dir_all(&path).unwrap();
                let image = GrayImage::from_fn(3, 2, |x, _| Luma([level + x as u8]));
                image.save(path.join("a.png")).unwrap();
                fs::write(path.join("notes.txt"), "no image").unwrap();
            }
        }
        let image = RgbImage::from_pixel(3, 2, Rgb([1, 2, 3]));
        image.save(folder.path().join("d2/dog/b.PNG")).unwrap();
        folder
    }

    #[test]
    fn folders_name_devices_and_classes() {
        let folder = folder();
        let shape = ImageShape::new(&[2, 3]).unwrap();
        let images = load(folder.path(), true, shape).unwrap();
        assert_eq!(images.classes, ["cat", "dog", "cat", "dog", "dog"]);
        assert_eq!(images.devices.unwrap(), ["d1", "d1", "d2", "d2", "d2"]);
        let first = &images.features.to_vec()[..6];
        assert_eq!(first, [10.0, 11.0, 12.0, 10.0, 11.0, 12.0]);
        let images = load(&folder.path().join("d1"), false, shape).unwrap();
        assert_eq!(images.classes, ["cat", "dog"]);
        assert_eq!(images.devices, None);
        assert_eq!(ImageShape::of_first(folder.path(), true).unwrap(), [2, 3]);
    }

    #[test]
    fn colours_are_channels() {
        let folder = folder();
        let shape = ImageShape::new(&[3, 2, 3]).unwrap();
        let images = load(folder.path(), true, shape).unwrap();
        let last = &images.features.to_vec()[4 * 18..];
        let expected = [[1.0; 6], [2.0; 6], [3.0; 6]].concat();
        assert_eq!(last, expected);
    }

    #[test]
    fn what_is_no_image_of_the_size_is_refused() {
        let folder = folder();
        let refused = |path: &Path, has_devices, axes: &[usize]| {
            let shape = ImageShape::new(axes).unwrap();
            load(path, has_devices, shape).unwrap_err().to_string()
        };
        let error = refused(folder.path(), true, &[3, 3]);
        assert!(
            error.contains("a.png: has 2 x 3 pixels, but 3 x 3 are expected (`data.axes`)"),
            "{error}"
        );
        let error = refused(folder.path(), false, &[2, 3]);
        assert!(
            error.contains("no PNG or JPEG images in one folder per class"),
            "{error}"
        );
        fs::write(
            folder.path().join("d1/cat/a.png"),
            b"\x89PNG\r\n\x1a\nbroken",
        )
        .unwrap();
        let error = refused(folder.path(), true, &[2, 3]);
        assert!(
            error.contains("a.png: is not a PNG or JPEG image"),
            "{error}"
        );
        let error = refused(Path::new("no/such"), true, &[2, 3]);
        assert!(error.contains("no/such: cannot be read"), "{error}");
        for axes in [&[2][..], &[4, 2, 3], &[0, 3]] {
            assert_eq!(ImageShape::new(axes), None);
        }
    }
}
