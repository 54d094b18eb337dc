//! Fixed features of a row, and samples of bounded length, as ONNX operators.

use smolfed_core::features::{Cells, DIRECTIONS, Range, Steps};
use smolfed_data::features::{FeatureRecipe, ImageFeatures};

use super::Builder;
use super::proto::{Attribute, ElementType, Tensor};

/// Names of the results for the gradient of one plane at a pixel.
struct Gradient {
    across: String,
    down: String,
    larger: String,
    smaller: String,
    magnitude: String,
}

impl Builder {
    /// Adds the features of the rows `x`. Returns the name of the result.
    pub(super) fn features(&mut self, recipe: &FeatureRecipe, x: &str) -> String {
        match recipe {
            FeatureRecipe::Steps { steps, ranges } => self.steps(*steps, ranges, x),
            FeatureRecipe::Image {
                features,
                planes,
                levels,
            } => {
                let image = self.image(features.cells(), *planes, *levels, x);
                let sums = match features {
                    ImageFeatures::Gradients(cells) => self.gradients(*cells, *planes, &image),
                    ImageFeatures::Pool(cells) => self.pool(*cells, *planes, &image),
                };
                self.shares(recipe.feature_count(), &sums)
            }
        }
    }

    /// Shortens rows to the length `bound`.
    pub(super) fn shortened(&mut self, bound: f32, x: &str) -> String {
        self.scalar("norm_bound", bound);
        let rows = vec![Attribute::integers("axes", &[1])];
        let length = self.add("ReduceL2", &[x], "length", rows);
        let length = self.add("Max", &[&length, "norm_bound"], "length_or_bound", vec![]);
        let factor = self.add("Div", &["norm_bound", &length], "factor", vec![]);
        self.add("Mul", &[x, &factor], "shortened", vec![])
    }

    fn scalar(&mut self, name: &str, value: f32) {
        self.initialise(Tensor::floats(name, &[1], &[value]));
    }

    fn shape(&mut self, name: &str, lengths: &[usize]) {
        let lengths = lengths.iter().map(|length| *length as i64);
        let of_rows: Vec<i64> = std::iter::once(-1).chain(lengths).collect();
        self.initialise(Tensor::integers(name, &of_rows));
    }

    /// Reshapes to rows × planes × rows × columns, in levels of 8 bits.
    fn image(&mut self, cells: Cells, planes: usize, levels: f32, x: &str) -> String {
        let mut pixels = x.to_owned();
        if levels > 1.0 {
            self.scalar("levels", levels);
            self.scalar("half_level", 0.5);
            let raised = self.add("Mul", &[x, "levels"], "in_levels", vec![]);
            let raised = self.add("Add", &[&raised, "half_level"], "raised_levels", vec![]);
            pixels = self.add("Floor", &[&raised], "pixels", vec![]);
        }
        self.shape("image_shape", &[planes, cells.rows(), cells.columns()]);
        self.add("Reshape", &[&pixels, "image_shape"], "image", vec![])
    }

    /// Adds sums of magnitudes by cell and direction.
    fn gradients(&mut self, cells: Cells, planes: usize, image: &str) -> String {
        let gradient = self.steepest(cells, planes, image);
        let masks = self.directions(&gradient);
        let parts: Vec<String> = (0..)
            .zip(&masks)
            .map(|(direction, mask)| {
                let mask = self.cast(mask, ElementType::Float, &format!("mask_{direction}"));
                let name = format!("magnitude_{direction}");
                self.add("Mul", &[&mask, &gradient.magnitude], &name, vec![])
            })
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let axis = vec![Attribute::integer("axis", 1)];
        let by_direction = self.add("Concat", &parts, "by_direction", axis);
        self.cell_sums(cells, DIRECTIONS, &by_direction)
    }

    /// Adds the gradient of each pixel, from the plane with the largest one.
    fn steepest(&mut self, cells: Cells, planes: usize, image: &str) -> Gradient {
        self.scalar("three_eighths", 0.375);
        let across = self.differences("across", cells.columns(), planes, [1, 3], image);
        let down = self.differences("down", cells.rows(), planes, [3, 1], image);
        let sides = [
            self.add("Abs", &[&across], "across_size", vec![]),
            self.add("Abs", &[&down], "down_size", vec![]),
        ];
        let larger = self.add("Max", &[&sides[0], &sides[1]], "larger", vec![]);
        let smaller = self.add("Min", &[&sides[0], &sides[1]], "smaller", vec![]);
        let share = self.add("Mul", &[&smaller, "three_eighths"], "share", vec![]);
        let share = self.add("Floor", &[&share], "whole_share", vec![]);
        let magnitude = self.add("Add", &[&larger, &share], "magnitude", vec![]);
        let all = [across, down, larger, smaller, magnitude];
        let [across, down, larger, smaller, magnitude] = match planes {
            1 => all,
            _ => {
                // The first of equal ones.
                let axis = || vec![Attribute::integer("axis", 1)];
                let plane = self.add("ArgMax", &[&all[4]], "plane", axis());
                all.map(|name| {
                    let chosen = format!("{name}_of_plane");
                    self.add("GatherElements", &[&name, &plane], &chosen, axis())
                })
            }
        };
        Gradient {
            across,
            down,
            larger,
            smaller,
            magnitude,
        }
    }

    /// Adds the next pixel minus the previous one, or 0 at both ends.
    fn differences(
        &mut self,
        name: &str,
        length: usize,
        planes: usize,
        kernel: [usize; 2],
        image: &str,
    ) -> String {
        if length < 3 {
            let zero = format!("{name}_zero");
            self.scalar(&zero, 0.0);
            return self.add("Mul", &[image, &zero], name, vec![]);
        }
        let [weights, inner, ends] = ["weights", "inner", "ends"].map(|x| format!("{name}_{x}"));
        let of_planes = [-1.0, 0.0, 1.0].repeat(planes);
        let shape = [planes, 1, kernel[0], kernel[1]];
        self.initialise(Tensor::floats(&weights, &shape, &of_planes));
        let group = vec![Attribute::integer("group", planes as i64)];
        self.add("Conv", &[image, &weights], &inner, group);
        let [rows, columns] = kernel.map(|length| (length / 2) as i64);
        let pads = [0, 0, rows, columns];
        self.initialise(Tensor::integers(&ends, &pads.repeat(2)));
        self.add("Pad", &[&inner, &ends], name, vec![])
    }

    /// Adds masks of the gradients with each direction.
    fn directions(&mut self, gradient: &Gradient) -> Vec<String> {
        self.scalar("of_smaller", 29.0);
        self.scalar("of_larger", 12.0);
        self.scalar("none", 0.0);
        let of_smaller = self.add(
            "Mul",
            &[&gradient.smaller, "of_smaller"],
            "smaller_29",
            vec![],
        );
        let of_larger = self.add("Mul", &[&gradient.larger, "of_larger"], "larger_12", vec![]);
        let diagonal = self.either("Greater", &of_smaller, &of_larger, "diagonal");
        let size = self.add("Abs", &[&gradient.across], "chosen_across", vec![]);
        let level = self.either("Equal", &size, &gradient.larger, "level");
        let right = self.either("Greater", &gradient.across, "none", "right");
        let below = self.either("Greater", &gradient.down, "none", "below");
        // From 0 to 7: whether it is diagonal, and its two signs.
        (0..DIRECTIONS)
            .map(|direction| {
                let is_right = usize::from(!matches!(direction, 0 | 1 | 7));
                let is_below = usize::from(!matches!(direction, 1..=3));
                let is_level = usize::from(direction % 4 == 2);
                let name = |part: &str| format!("is_{direction}_{part}");
                match direction % 2 {
                    1 => {
                        let signs = [&right[is_right], &below[is_below]];
                        let signs = self.add("And", &[signs[0], signs[1]], &name("signs"), vec![]);
                        self.add("And", &[&diagonal[0], &signs], &name("all"), vec![])
                    }
                    _ => {
                        let sign = match is_level {
                            0 => &right[is_right],
                            _ => &below[is_below],
                        };
                        let axis = [&level[is_level], sign];
                        let axis = self.add("And", &[axis[0], axis[1]], &name("axis"), vec![]);
                        self.add("And", &[&diagonal[1], &axis], &name("all"), vec![])
                    }
                }
            })
            .collect()
    }

    /// Adds a condition and its opposite.
    fn either(&mut self, operator: &str, a: &str, b: &str, name: &str) -> [String; 2] {
        let is = self.add(operator, &[a, b], name, vec![]);
        let is_not = self.add("Not", &[&is], &format!("not_{name}"), vec![]);
        [is, is_not]
    }

    /// Adds sums of pixels by cell, of the brightness of a colour image.
    fn pool(&mut self, cells: Cells, planes: usize, image: &str) -> String {
        let mut grey = image.to_owned();
        if planes == 3 {
            let shape = [1, planes, 1, 1];
            self.initialise(Tensor::floats("luma", &shape, &[77.0, 150.0, 29.0]));
            self.scalar("luma_sum", 256.0);
            let weighted = self.add("Conv", &[image, "luma"], "weighted", vec![]);
            let shares = self.add("Div", &[&weighted, "luma_sum"], "grey_shares", vec![]);
            grey = self.add("Floor", &[&shares], "grey", vec![]);
        }
        self.cell_sums(cells, 1, &grey)
    }

    /// Adds sums over the cells of each plane: cells by rows, then planes.
    fn cell_sums(&mut self, cells: Cells, planes: usize, x: &str) -> String {
        let cell = cells.cell();
        let ones = vec![1.0; planes * cell * cell];
        self.initialise(Tensor::floats("ones", &[planes, 1, cell, cell], &ones));
        let steps = vec![
            Attribute::integer("group", planes as i64),
            Attribute::integers("strides", &[cell as i64; 2]),
        ];
        let sums = self.add("Conv", &[x, "ones"], "cell_sums", steps);
        let order = vec![Attribute::integers("perm", &[0, 2, 3, 1])];
        let sums = self.add("Transpose", &[&sums], "by_cell", order);
        self.shape("sums_shape", &[cells.count() * planes]);
        self.add("Reshape", &[&sums, "sums_shape"], "sums_of_cells", vec![])
    }

    /// Adds the step from sums to roots of their shares.
    fn shares(&mut self, count: usize, sums: &str) -> String {
        self.initialise(Tensor::integers("of_a_row", &[1]));
        self.scalar("least_total", 1.0);
        self.scalar("half_root", (count as f32).sqrt() / 2.0);
        let total = self.add("ReduceSum", &[sums, "of_a_row"], "total", vec![]);
        // Sums are whole numbers: less than 1 means none.
        let total = self.add("Max", &[&total, "least_total"], "total_or_one", vec![]);
        let shares = self.add("Div", &[sums, &total], "shares", vec![]);
        let roots = self.add("Sqrt", &[&shares], "roots", vec![]);
        self.add("Mul", &[&roots, "half_root"], "computed", vec![])
    }

    /// Adds the steps of each value with bounds. Others stay, and missing values become 0.
    fn steps(&mut self, steps: Steps, ranges: &[Option<Range<f32>>], x: &str) -> String {
        let (mut places, mut lows, mut widths) = (Vec::new(), Vec::new(), Vec::new());
        let (mut numbers, mut stays) = (Vec::new(), Vec::new());
        for (at, range) in (0..).zip(ranges) {
            for step in 0..range.map_or(1, |_| steps.count()) {
                let [low, high] = range.map_or([0.0, 1.0], |range| {
                    [range.low(), range.high()].map(f64::from)
                });
                places.push(at);
                lows.push(low);
                widths.push(high - low);
                numbers.push(step as f64);
                stays.push(f32::from(u8::from(range.is_none())));
            }
        }
        self.initialise(Tensor::integers("places", &places));
        self.initialise(Tensor::floats("stays", &[stays.len()], &stays));
        self.scalar("nothing", 0.0);
        let [lows, widths, numbers] = [("lows", lows), ("widths", widths), ("numbers", numbers)]
            .map(|(name, values)| self.doubles(name, &values));
        let constants = [
            ("count", steps.count() as f64),
            ("low", 0.0),
            ("high", 1.0),
            ("half", 0.5),
        ];
        let [count, low, high, half] =
            constants.map(|(name, value)| self.doubles(&format!("step_{name}"), &[value]));
        let axis = vec![Attribute::integer("axis", 1)];
        let values = self.add("Gather", &[x, "places"], "values", axis);
        let mut step = self.cast(&values, ElementType::Double, "wide_values");
        for (operator, other, name) in [
            ("Sub", &lows, "above_low"),
            ("Div", &widths, "share_of_range"),
            ("Mul", &count, "in_steps"),
            ("Sub", &numbers, "of_step"),
            ("Max", &low, "step_from_0"),
            ("Min", &high, "step_to_1"),
            ("Sub", &half, "step"),
        ] {
            step = self.add(operator, &[&step, other], name, vec![]);
        }
        let step = self.cast(&step, ElementType::Float, "narrow_step");
        let stays = self.cast("stays", ElementType::Bool, "does_stay");
        let all = self.add(
            "Where",
            &[&stays, &values, &step],
            "values_or_steps",
            vec![],
        );
        let gaps = self.add("IsNaN", &[&values], "missing_values", vec![]);
        self.add("Where", &[&gaps, "nothing", &all], "computed", vec![])
    }
}
