//! `smolfed models publish`: the model of a run becomes a version, for all devices or a share of
//! them, in 32 or 16 bits.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::folder::{FolderArgs, percent, tell};
use crate::cli::CliError;
use crate::cli::inference::{Arithmetic, feature_format};
use smolfed_core::fixed_point::FeatureFormat;
use smolfed_core::wire::message::{ModelGrid, ModelShape};
use smolfed_engine::of_task;
use smolfed_engine::run::directory::RunDir;
use smolfed_fleet::delivery::catalogue::{Draft, Edit, file_path};
use smolfed_fleet::delivery::publisher::PUBLIC;
use smolfed_report::inference::model::TrainedModel;

/// Publish the model of a run to all devices, or to a share of them.
///
/// The first call creates the folder with the keys of its publisher: publisher.key, which is
/// secret, and publisher.pub, which belongs in the firmware. Anyone with publisher.key can make
/// devices accept any model, so keep it off the machine that runs `smolfed deliver`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed models publish runs/digits
  smolfed models publish runs/digits --share 10
  smolfed models publish runs/digits --places 12 --models shop/models
  smolfed models publish runs/watch --arithmetic integer")]
pub(super) struct Args {
    /// Run directory.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    #[command(flatten)]
    folder: FolderArgs,
    /// Deliver it to this percentage of the devices [default: 100].
    ///
    /// The others keep the current version.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    share: Option<f64>,
    /// Store the parameters in 16 bits, with N binary places: multiples of 2^-N below 2^(15-N).
    ///
    /// This halves the size of the file. The default is 32 bits.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=15))]
    places: Option<u8>,
    /// Publish the model for devices that predict in this arithmetic.
    ///
    /// `integer` accepts only single-layer models, and rounds the weights as integer training does.
    #[arg(long, value_enum, default_value = "f32")]
    arithmetic: Arithmetic,
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    let draft = draft(args)?;
    let folder = &args.folder.models;
    let version = Edit::begin_or_create(folder)?.publish(draft, args.share)?;
    let path = file_path(folder, version.number);
    let bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    writeln!(
        out,
        "version {}: {}, {bytes} bytes in {}\n{}",
        version.number,
        version.source_words(),
        path.display(),
        version.privacy_words()
    )?;
    if version.number == 1 {
        let public = folder.join(PUBLIC);
        writeln!(
            out,
            "This folder has a new publisher: build {} into the firmware.",
            public.display()
        )?;
    }
    tell(folder, out)
}

/// Reads the shared model of a run, its statement and its last answers.
fn draft(args: &Args) -> Result<Draft, CliError> {
    if args.arithmetic == Arithmetic::Integer && args.places.is_some() {
        return Err(CliError::Usage(
            "`--places` contradicts `--arithmetic integer`: weights in integers have 32 bits"
                .to_owned(),
        ));
    }
    let dir = RunDir::open(&args.run)?;
    // Refuses runs without a shared model, and models of which devices keep a part.
    let model = TrainedModel::open(&args.run, None)?;
    let preprocessing = &model.preprocessing;
    let shape = shape(&model).ok_or_else(|| unusable(&args.run))?;
    let (integer, parameters) = match args.arithmetic {
        Arithmetic::F32 => (None, dir.shared_parameters()?.unwrap_or_default()),
        Arithmetic::Integer => weights(args, &model)?,
    };
    let shape = ModelShape { integer, ..shape };
    if shape.parameters() != parameters.len() {
        return Err(unusable(&args.run));
    }
    let records = dir.records()?;
    let answers = records.iter().rfind(|record| !record.answers.is_empty());
    Ok(Draft {
        source: args.run.display().to_string(),
        shape,
        recipe: preprocessing.recipe(),
        parameters,
        grid: args.places.and_then(ModelGrid::new),
        statement: dir.privacy()?.into_iter().next(),
        answers: answers.map(|record| (record.round, record.answers.clone())),
    })
}

/// Returns the format of features in integers, and the bit patterns of the weights.
fn weights(
    args: &Args,
    model: &TrainedModel,
) -> Result<(Option<FeatureFormat>, Vec<f32>), CliError> {
    if !model.task().is_one_layer() {
        return Err(CliError::Usage(format!(
            "{}: `--arithmetic integer` is for models of one layer: leave it out",
            args.run.display()
        )));
    }
    let integers = model.in_integers(feature_format(&args.run)?)?;
    if integers.saturates() {
        return Err(CliError::Usage(format!(
            "{}: a weight is beyond the range of integers, -8 to 8: publish the model without \
             `--arithmetic integer`",
            args.run.display()
        )));
    }
    let bits = |weight: i32| f32::from_bits(weight.cast_unsigned());
    let weights = integers.weights()?.into_iter().map(bits).collect();
    Ok((Some(integers.format()), weights))
}

/// Returns the shape under which a device uses the model, if it can.
fn shape(model: &TrainedModel) -> Option<ModelShape> {
    of_task!(model.task(), model => ModelShape::of(model))
}

fn unusable(run: &Path) -> CliError {
    CliError::Usage(format!(
        "{}: devices have no predictions for such a model: publish a linear, logistic or softmax \
         model, or a network with labels (`model.layers` instead of `model.hidden`)",
        run.display()
    ))
}
