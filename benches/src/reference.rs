//! The reference round: softmax regression on 28 × 28 pixels and 10 classes, 1,000 devices of 50
//! samples, 5 epochs in batches of 10, projection onto the ball of 0.3 after every step, exact sum,
//! noise, smoothing, server step. With a cohort of 50 devices, it takes 0.39 Gflop. The large round
//! draws 1,000 of 100,000 devices.
//!
//! The samples are synthetic and stored as two IDX files, so that other programs can read them.
//! Pixels stay bytes in memory: the large round takes 3.9 GB in memory and on disk, and twice as
//! much memory during reading.

use std::error::Error;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use rand_core::Rng;
use smolfed::config::{Config, Override};
use smolfed::data::{DataFolders, Federation};
use smolfed::experiment::Experiment;
use smolfed_core::stream::Purpose;

/// Samples per device.
pub const SAMPLES: u32 = 50;

/// A round with 50 of 1,000 devices.
pub const REFERENCE: Round = Round {
    name: "reference round",
    devices: 1_000,
    cohort_size: 50,
};

/// A round with 1,000 of 100,000 devices.
pub const LARGE: Round = Round {
    name: "large round",
    devices: 100_000,
    cohort_size: 1_000,
};

/// Pixels per sample.
const FEATURES: usize = 28 * 28;
const CLASSES: usize = 10;

/// A federation and the number of devices drawn per round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Name of the round.
    pub name: &'static str,
    /// Devices of the federation.
    pub devices: u32,
    /// Devices per round.
    pub cohort_size: u32,
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            devices,
            cohort_size,
        } = self;
        write!(f, "{name}: {cohort_size} of {devices} devices")
    }
}

/// Images and labels of a federation, as IDX files.
#[derive(Clone, Debug)]
pub struct Files {
    /// Images of 28 × 28 bytes, [`SAMPLES`] per device.
    pub images: PathBuf,
    /// Labels of the images.
    pub labels: PathBuf,
}

impl Files {
    /// Writes the files of a round to `folder` unless they exist.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn new(folder: &Path, round: &Round) -> io::Result<Self> {
        let file = |what| folder.join(format!("reference-{}-{what}.idx", round.devices));
        let files = Self {
            images: file("images"),
            labels: file("labels"),
        };
        // The labels are written last, so if they exist, both files are complete.
        if files.labels.exists() {
            return Ok(files);
        }
        fs::create_dir_all(folder)?;
        let count = round.devices * SAMPLES;
        let mut rng = crate::stream(Purpose::Synthesis);
        let mut patterns = vec![0u8; CLASSES * FEATURES];
        rng.fill_bytes(&mut patterns);
        let mut images = BufWriter::new(File::create(&files.images)?);
        images.write_all(&header(&[count, 28, 28]))?;
        let mut labels = header(&[count]);
        let mut image = [0u8; FEATURES];
        for _ in 0..count {
            let label = rng.next_u32() as usize % CLASSES;
            labels.push(label as u8);
            rng.fill_bytes(&mut image);
            // A quarter of its class's pattern and three quarters of noise.
            for (pixel, class) in image.iter_mut().zip(&patterns[label * FEATURES..]) {
                *pixel = class / 4 + *pixel / 4 * 3;
            }
            images.write_all(&image)?;
        }
        images.flush()?;
        fs::write(&files.labels, labels)?;
        Ok(files)
    }
}

/// Returns the header of an IDX file of bytes with these dimensions.
fn header(dimensions: &[u32]) -> Vec<u8> {
    let mut header = vec![0, 0, 8, dimensions.len() as u8];
    header.extend(dimensions.iter().flat_map(|length| length.to_be_bytes()));
    header
}

impl Round {
    /// Returns the experiment and its federation. Writes the files to `folder`.
    ///
    /// # Errors
    /// The files cannot be written or read.
    pub fn prepare(&self, folder: &Path) -> Result<(Experiment, Federation), Box<dyn Error>> {
        self.prepare_with(folder, &[])
    }

    /// As [`Self::prepare`], with changes in the form of `smolfed run --set`.
    ///
    /// # Errors
    /// As [`Self::prepare`], or the configuration is refused.
    pub fn prepare_with(
        &self,
        folder: &Path,
        changes: &[&str],
    ) -> Result<(Experiment, Federation), Box<dyn Error>> {
        let config = self.config(&Files::new(folder, self)?, changes)?;
        let folders = DataFolders::of_experiment(None);
        let federation = Federation::new(&config.data, &folders, config.seed)?;
        Ok((Experiment::new(config, &federation)?, federation))
    }

    /// Returns the experiment on the same files, with changes in the form of `smolfed run --set`.
    ///
    /// # Errors
    /// The configuration is refused.
    pub fn config(&self, files: &Files, changes: &[&str]) -> Result<Config, Box<dyn Error>> {
        let changes: Result<Vec<Override>, _> = changes.iter().map(|text| text.parse()).collect();
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
            devices = {devices}
            samples_per_device = {SAMPLES}
            scale = {{ mean = 0.5, std = 0.25 }}
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
            devices = self.devices,
            cohort_size = self.cohort_size,
        );
        Ok(Config::parse(&text, self.name, &changes?)?)
    }
}
