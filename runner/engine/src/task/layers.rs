//! Networks from the layers of an experiment file (`model.layers`), and the reasons why
//! layers do not fit each other or the data.

use smolfed_core::model::{Layer, Sequential, SequentialError, Shape};

use crate::tables::model::ModelConfig;

/// Why layers do not form a network for the data. Each text is a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayersError {
    /// Layers for something other than classes.
    #[error(
        "`model.layers` end in a softmax: they need data with classes, and no `model.kind` other \
         than \"softmax\""
    )]
    Softmax,
    /// Layers together with a hidden layer.
    #[error(
        "`model.hidden` and `model.layers` exclude each other: a hidden layer is {{ type = \
         \"dense\", outputs = .. }} followed by {{ type = \"relu\" }}"
    )]
    Hidden,
    /// The shape of a sample without layers.
    #[error("`model.input` has no effect without `model.layers`; remove it")]
    InputOfNothing,
    /// The shape has another number of axes.
    #[error(
        "`model.input` has {found} numbers, but must have three (channels, rows and columns of an \
         image) or two (steps and entries of a sequence)"
    )]
    Axes {
        /// The given number of axes.
        found: usize,
    },
    /// The shape does not fit the data.
    #[error("`model.input` is {input}, of {found} numbers, but a sample has {features}")]
    Input {
        /// The shape.
        input: Shape,
        /// Its entries.
        found: usize,
        /// Features of a sample.
        features: usize,
    },
    /// An image or a sequence is needed.
    #[error(
        "the first of `model.layers` is for {needed}, but the shape of a sample is unknown: give \
         `model.input`, for example {example}"
    )]
    NoShape {
        /// Its purpose.
        needed: &'static str,
        /// An example.
        example: String,
    },
    /// More classes than supported.
    #[error("the data have {found} classes, but networks have at most 65535")]
    Classes {
        /// Classes of the data.
        found: usize,
    },
    /// Scaled symbols.
    #[error(
        "`model.layers` begin with an embedding of symbols, which cannot be scaled: set \
         `data.scale` to \"none\""
    )]
    ScaledSymbols,
    /// Symbols for a model of numbers.
    #[error(
        "the samples are texts, whose characters are symbols, not numbers: begin `model.layers` \
         with {{ type = \"embedding\", vocabulary = {symbols}, width = .. }}"
    )]
    SymbolsAsNumbers {
        /// Symbols of the texts.
        symbols: u16,
    },
    /// A vocabulary that lacks symbols.
    #[error(
        "`model.layers` begin with an embedding of {vocabulary} symbols, but the texts have \
         {symbols}: set its `vocabulary` to {symbols}"
    )]
    Vocabulary {
        /// Symbols of the embedding.
        vocabulary: u16,
        /// Symbols of the texts.
        symbols: u16,
    },
    /// A feature outside the vocabulary.
    #[error(
        "the data have the feature {found}, but `model.layers` begin with an embedding of \
         {vocabulary} symbols: whole numbers from 0 to {}",
        vocabulary - 1
    )]
    Symbol {
        /// The feature.
        found: String,
        /// Symbols of the embedding, at least 1.
        vocabulary: u16,
    },
    /// The layers do not fit each other.
    #[error("`model.layers`: {0}")]
    Layers(#[from] SequentialError),
}

/// Creates the network of `model.layers` with a dense layer to the classes on top, for samples of
/// `features` features that lie along `axes`.
pub(super) fn network(
    model: &ModelConfig,
    axes: &[usize],
    features: usize,
    classes: usize,
) -> Result<Sequential, LayersError> {
    let outputs = u16::try_from(classes);
    let outputs = outputs.map_err(|_| LayersError::Classes { found: classes })?;
    let layers = model.layers.iter().map(|layer| layer.layer());
    let layers: Vec<Layer> = layers.chain([Layer::Dense { outputs }]).collect();
    let input = input(model, layers.first(), axes, features)?;
    Ok(Sequential::new(input, &layers)?)
}

/// Returns the shape of a sample from the file or, without one, from the data.
fn input(
    model: &ModelConfig,
    first: Option<&Layer>,
    axes: &[usize],
    features: usize,
) -> Result<Shape, LayersError> {
    let axes = axes.iter().map(|axis| u16::try_from(*axis));
    let axes: Vec<u16> = axes.collect::<Result<_, _>>().unwrap_or_default();
    let no_shape = |needed, example| LayersError::NoShape { needed, example };
    let input = match (model.input.as_slice(), first, axes.as_slice()) {
        (&[channels, height, width], ..) => image(channels, height, width),
        (&[length, width], ..) => Shape::Sequence { length, width },
        (other @ [_, ..], ..) => return Err(LayersError::Axes { found: other.len() }),
        ([], Some(Layer::Embedding { .. }), _) => Shape::Sequence {
            length: whole(features),
            width: 1,
        },
        ([], Some(Layer::Lstm { .. } | Layer::Last), &[length, width]) => {
            Shape::Sequence { length, width }
        }
        ([], Some(Layer::Lstm { .. } | Layer::Last), _) => {
            return Err(no_shape("a sequence", format!("[{features}, 1]")));
        }
        ([], _, &[height, width]) => image(1, height, width),
        ([], _, &[channels, height, width]) => image(channels, height, width),
        ([], Some(Layer::Convolution { .. } | Layer::MaxPool { .. } | Layer::GlobalAverage), _) => {
            return Err(no_shape("an image", format!("[1, 1, {features}]")));
        }
        ([], ..) => Shape::Vector {
            length: whole(features),
        },
    };
    match input.count() {
        found if found == features => Ok(input),
        found => Err(LayersError::Input {
            input,
            found,
            features,
        }),
    }
}

const fn image(channels: u16, height: u16, width: u16) -> Shape {
    Shape::Image {
        channels,
        height,
        width,
    }
}

/// Converts a size. Returns 0, which no sample has, if it is too large.
fn whole(size: usize) -> u16 {
    u16::try_from(size).unwrap_or(0)
}

/// Returns `model.input` for a shape.
pub(super) fn axes_of(shape: Shape) -> Vec<u16> {
    match shape {
        Shape::Image {
            channels,
            height,
            width,
        } => vec![channels, height, width],
        Shape::Sequence { length, width } => vec![length, width],
        // The shape of any data.
        Shape::Vector { .. } => Vec::new(),
    }
}
