//! The reference round: softmax regression on 28 × 28 pixels and 10 classes, 1,000 devices of 50
//! samples, 5 epochs in batches of 10, projection onto the ball of 0.3 after every step, exact sum,
//! noise, smoothing, server step. With a cohort of 50 devices it is 0.39 Gflop.
//!
//! The samples are synthetic and stored as two IDX files, so that other programs can read the same
//! ones.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rand_core::Rng;
use smolfed::config::Config;
use smolfed::data::{DataFolders, Federation};
use smolfed::experiment::Experiment;
use smolfed::run;
use smolfed_core::stream::Purpose;

/// Devices of the federation.
pub const DEVICES: u32 = 1_000;
/// Samples per device.
pub const SAMPLES: u32 = 50;
/// Devices in a reference round.
pub const COHORT: u32 = 50;
/// Devices in a large round.
pub const LARGE_COHORT: u32 = 1_000;

/// Pixels of a sample.
const FEATURES: usize = 28 * 28;
const CLASSES: usize = 10;

/// The images and labels of the reference federation, as IDX files.
#[derive(Clone, Debug)]
pub struct Files {
    /// 50,000 images of 28 × 28 bytes.
    pub images: PathBuf,
    /// Their labels.
    pub labels: PathBuf,
}

impl Files {
    /// Writes the files to `folder` unless they are there.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let files = Self {
            images: folder.join("reference-images.idx"),
            labels: folder.join("reference-labels.idx"),
        };
        // The labels are written last: where they are, both are complete.
        if files.labels.exists() {
            return Ok(files);
        }
        fs::create_dir_all(folder)?;
        let count = DEVICES * SAMPLES;
        let mut rng = crate::stream(Purpose::Synthesis);
        let mut patterns = vec![0u8; CLASSES * FEATURES];
        rng.fill_bytes(&mut patterns);
        let mut pixels = vec![0u8; count as usize * FEATURES];
        rng.fill_bytes(&mut pixels);
        let labels: Vec<u8> = (0..count)
            .map(|_| (rng.next_u32() % CLASSES as u32) as u8)
            .collect();
        for (image, label) in pixels.chunks_exact_mut(FEATURES).zip(&labels) {
            let pattern = patterns.chunks_exact(FEATURES).nth(usize::from(*label));
            // A quarter of its class's pattern, three quarters of noise.
            for (pixel, class) in image.iter_mut().zip(pattern.unwrap_or_default()) {
                *pixel = class / 4 + *pixel / 4 * 3;
            }
        }
        fs::write(&files.images, idx(&[count, 28, 28], &pixels))?;
        fs::write(&files.labels, idx(&[count], &labels))?;
        Ok(files)
    }
}

/// Bytes as an IDX file with these dimensions.
fn idx(dimensions: &[u32], bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, dimensions.len() as u8];
    file.extend(dimensions.iter().flat_map(|length| length.to_be_bytes()));
    file.extend(bytes);
    file
}

/// The experiment and the federation of rounds with `cohort_size` devices; writes the files to
/// `folder`.
///
/// The large round of the goals draws its 1,000 devices from 100,000. Here it draws all of the
/// 1,000, because nothing in a round but the draw of the cohort depends on the other devices, and
/// their samples would need 16 GB.
///
/// # Errors
/// If the files cannot be written or read.
pub fn prepare(
    folder: &Path,
    cohort_size: u32,
) -> Result<(Experiment, Federation), Box<dyn Error>> {
    prepare_with(folder, cohort_size, &[])
}

/// The same with other settings of the experiment, each as `key=value`.
///
/// # Errors
/// As [`prepare`], and if a setting is no setting.
pub fn prepare_with(
    folder: &Path,
    cohort_size: u32,
    settings: &[&str],
) -> Result<(Experiment, Federation), Box<dyn Error>> {
    let files = Files::new(folder)?;
    let text = format!(
        r#"
        name = "reference-round"
        method = "dp-fed-ls"
        rounds = 1000000
        evaluate_every = 0
        [data]
        source = "idx"
        path = {images:?}
        label_path = {labels:?}
        test = 0
        devices = {DEVICES}
        samples_per_device = {SAMPLES}
        [cohort]
        cohort_size = {cohort_size}
        [train]
        epochs = 5
        batch_size = 10
        learning_rate = 0.1
        learning_rate_decay = 1.0
        [server]
        smoothing_factor = 1.0
        [privacy]
        noise_multiplier = 1.0
        clip_norm = 0.3
        "#,
        images = files.images,
        labels = files.labels,
    );
    let overrides: Result<Vec<_>, _> = settings.iter().map(|setting| setting.parse()).collect();
    let config = Config::parse(&text, "the reference round", &overrides?)?;
    Ok(run::prepare(config, &DataFolders::of_experiment(None))?)
}
