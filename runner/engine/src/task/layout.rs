//! The tensors of a model: their names in files, and their shapes.

use smolfed_core::model::{Layer, Sequential, Shape};

use super::Task;
use crate::layout::TensorLayout;

/// Names of the tensors of models of one or two dense layers, in the order of the parameters.
pub const DENSE_NAMES: [&str; 4] = ["weights", "biases", "head_weights", "head_biases"];
/// Names of a layer's tensors, in the order of the parameters.
pub const LAYER_NAMES: [&str; 3] = ["weights", "state_weights", "biases"];

/// Returns the name of a tensor of a network's layer. Layers count from 1.
#[must_use]
pub fn layer_tensor(layer: usize, name: &str) -> String {
    format!("layer_{layer}.{name}")
}

impl Task {
    /// Returns the tensors of its parameters, in order.
    #[must_use]
    pub fn layout(&self) -> Vec<TensorLayout> {
        match self {
            Self::Sequential(network) => of_network(network),
            _ => of_dense(self.tensors().as_slice()),
        }
    }
}

/// Returns weights and biases, layer by layer.
fn of_dense(lengths: &[usize]) -> Vec<TensorLayout> {
    let shapes = lengths.chunks(2).flat_map(|layer| match *layer {
        [weights, rows] => vec![vec![rows, weights / rows.max(1)], vec![rows]],
        _ => Vec::new(),
    });
    let named = DENSE_NAMES.into_iter().zip(shapes);
    let layout = |(name, shape): (&str, _)| TensorLayout {
        name: name.to_owned(),
        shape,
        image: None,
    };
    named.map(layout).collect()
}

fn of_network(network: &Sequential) -> Vec<TensorLayout> {
    let inputs = [network.input()]
        .into_iter()
        .chain(network.outputs().iter().copied());
    let layers = network.layers().iter().zip(inputs).enumerate();
    let of_layer = |(index, (layer, input)): (usize, (&Layer, Shape))| {
        let named = LAYER_NAMES.into_iter().zip(shapes(*layer, input));
        let named = named.filter(|(_, shape)| !shape.is_empty());
        let image = image(*layer, input);
        let layout = |(name, shape): (_, Vec<usize>)| TensorLayout {
            name: layer_tensor(index + 1, name),
            image: image.filter(|_| shape.len() > 1),
            shape,
        };
        named.map(layout).collect::<Vec<_>>()
    };
    layers.flat_map(of_layer).collect()
}

/// Returns rows and columns of a layer's kernels, or of the image that each output weighs.
fn image(layer: Layer, input: Shape) -> Option<[usize; 2]> {
    match (layer, input) {
        (Layer::Convolution { kernel, .. }, _) => Some(kernel.map(usize::from)),
        (Layer::Dense { .. }, Shape::Image { height, width, .. }) => {
            Some([height.into(), width.into()])
        }
        _ => None,
    }
}

/// Returns the shapes of a layer's weights, recurrent weights and biases for inputs of this shape.
/// The shapes of missing ones are empty.
fn shapes(layer: Layer, input: Shape) -> [Vec<usize>; 3] {
    let none = Vec::new;
    match (layer, input) {
        (
            Layer::Convolution {
                channels, kernel, ..
            },
            Shape::Image {
                channels: inputs, ..
            },
        ) => {
            let [rows, columns] = kernel.map(usize::from);
            let weights = vec![channels.into(), inputs.into(), rows, columns];
            [weights, none(), vec![channels.into()]]
        }
        (Layer::Dense { outputs }, _) => {
            let weights = vec![outputs.into(), input.count()];
            [weights, none(), vec![outputs.into()]]
        }
        (Layer::Embedding { vocabulary, width }, _) => {
            [vec![vocabulary.into(), width.into()], none(), none()]
        }
        (Layer::Lstm { hidden }, Shape::Sequence { width, .. }) => {
            let (gates, hidden) = (4 * usize::from(hidden), usize::from(hidden));
            [vec![gates, width.into()], vec![gates, hidden], vec![gates]]
        }
        _ => [none(), none(), none()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::model::{LayerConfig, ModelConfig};

    fn task(layers: &str, input: &[u16], features: usize) -> Task {
        #[derive(serde::Deserialize)]
        struct File {
            layers: Vec<LayerConfig>,
        }
        let File { layers } = toml::from_str(&format!("layers = [{layers}]")).unwrap();
        let model = ModelConfig {
            layers,
            input: input.to_vec(),
            ..ModelConfig::default()
        };
        Task::new(&model, &[], features, Some(7)).unwrap()
    }

    #[test]
    fn tensors_are_named_with_their_shapes() {
        let text = task(
            "{type=\"embedding\",vocabulary=5,width=3},{type=\"lstm\",hidden=4},{type=\"last\"}",
            &[],
            9,
        );
        let layout = text.layout();
        let named: Vec<_> = layout
            .iter()
            .map(|t| (t.name.as_str(), &*t.shape))
            .collect();
        let expected: [(&str, &[usize]); 6] = [
            ("layer_1.weights", &[5, 3]),
            ("layer_2.weights", &[16, 3]),
            ("layer_2.state_weights", &[16, 4]),
            ("layer_2.biases", &[16]),
            ("layer_4.weights", &[7, 4]),
            ("layer_4.biases", &[7]),
        ];
        assert_eq!(named, expected);
    }

    #[test]
    fn layouts_have_the_lengths_of_the_tensors() {
        let hidden = ModelConfig {
            hidden: Some(6),
            ..ModelConfig::default()
        };
        let convolution = "{type=\"convolution\",channels=3,kernel=[1,5]}";
        for task in [
            Task::new(&ModelConfig::default(), &[], 4, None).unwrap(),
            Task::new(&ModelConfig::default(), &[], 4, Some(3)).unwrap(),
            Task::new(&hidden, &[], 4, Some(3)).unwrap(),
            task(&format!("{convolution},{{type=\"relu\"}}"), &[2, 1, 12], 24),
            task("{type=\"dense\",outputs=5}", &[], 24),
        ] {
            let lengths: Vec<usize> = task.layout().iter().map(TensorLayout::length).collect();
            assert_eq!(lengths, task.tensors().as_slice(), "{task:?}");
        }
    }
}
