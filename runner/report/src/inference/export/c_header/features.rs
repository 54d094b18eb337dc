//! The C functions that compute fixed features of a row, and shorten rows that are too long.

use std::fmt::Write;

use smolfed_core::features::{Cells, Range, Steps};
use smolfed_data::features::{FeatureRecipe, ImageFeatures};
use smolfed_engine::preprocessing::Preprocessing;

use super::literal::float;

/// Returns the definition of `smolfed_read`, which writes the model's whole input for a row. `None`
/// if the model reads each feature separately.
pub(super) fn reader(preprocessing: &Preprocessing) -> Option<String> {
    if preprocessing.features.is_none() && preprocessing.norm_bound.is_none() {
        return None;
    }
    let mut text = format!("#define SMOLFED_READ {}\n", preprocessing.feature_count());
    let body = match &preprocessing.features {
        None => AS_THEY_ARE.to_owned(),
        Some(FeatureRecipe::Steps { steps, ranges }) => {
            text += &bounds(*steps, ranges);
            STEPS.to_owned()
        }
        Some(FeatureRecipe::Image {
            features,
            planes,
            levels,
        }) => {
            text += &image(features.cells(), *planes, *levels);
            let sums = match features {
                ImageFeatures::Gradients(_) => {
                    text += DIRECTION;
                    GRADIENTS
                }
                ImageFeatures::Pool(_) => POOL,
            };
            format!("{sums}{SHARES}")
        }
    };
    let bound = preprocessing.norm_bound.map_or(String::new(), |bound| {
        text += &format!("#define SMOLFED_NORM_BOUND {}\n", float(bound));
        SHORTEN.to_owned()
    });
    let _ = write!(
        text,
        "\n/* Writes the SMOLFED_READ numbers that the model reads of a row. */\n\
         static inline void smolfed_read(const float *features, float *x)\n{{\n{body}{bound}}}\n"
    );
    Some(text)
}

/// Returns the sizes of an image, and its pixels in 8 bits.
fn image(cells: Cells, planes: usize, levels: f32) -> String {
    let level = match levels > 1.0 {
        true => format!("features[i] * {} + 0.5f", float(levels)),
        false => "features[i]".to_owned(),
    };
    format!(
        "#define SMOLFED_PLANES {planes}\n#define SMOLFED_ROWS {}\n\
         #define SMOLFED_COLUMNS {}\n#define SMOLFED_CELL {}\n\n/* Pixel i, from 0 to 255; a \
         missing one is 0. */\nstatic inline int smolfed_pixel(const float *features, size_t \
         i)\n{{\n    const float level = {level};\n    return level > 0.0f ? (level < 255.0f ? \
         (int)level : 255) : 0;\n}}\n",
        cells.rows(),
        cells.columns(),
        cells.cell(),
    )
}

/// Returns the bounds of each value, or NaN for an unchanged one.
fn bounds(steps: Steps, ranges: &[Option<Range<f32>>]) -> String {
    let bounds = ranges.iter().map(|range| {
        let ends = range.map(|range| [range.low(), range.high()].map(float));
        let [low, high] = ends.unwrap_or_else(|| ["NAN", "NAN"].map(str::to_owned));
        format!("{{{low}, {high}}}")
    });
    let lines: Vec<String> = bounds.collect();
    format!(
        "#define SMOLFED_STEPS {}\n\n/* The bounds of each feature; NAN for one that stays as \
         it is. */\nstatic const float smolfed_bounds[SMOLFED_FEATURES][2] = {{\n    {}}};\n",
        steps.count(),
        lines.join(",\n    ")
    )
}

const AS_THEY_ARE: &str = "    for (size_t i = 0; i < SMOLFED_READ; i++) {
        x[i] = smolfed_prepare(features, i);
    }
";

const STEPS: &str = "    size_t at = 0;
    for (size_t i = 0; i < SMOLFED_FEATURES; i++) {
        const float value = smolfed_prepare(features, i);
        const double wide = value;
        const double low = smolfed_bounds[i][0], high = smolfed_bounds[i][1];
        if (isnan(low)) {
            x[at++] = isnan(value) ? 0.0f : value;
            continue;
        }
        for (size_t j = 0; j < SMOLFED_STEPS; j++) {
            const double step = (wide - low) / (high - low) * SMOLFED_STEPS - (double)j;
            const double clipped = step < 0.0 ? 0.0 : step > 1.0 ? 1.0 : step;
            x[at++] = isnan(value) ? 0.0f : (float)(clipped - 0.5);
        }
    }
";

const DIRECTION: &str = "
/* The direction of a gradient, from 0 (to the right) by 2 (down) to 7. */
static inline size_t smolfed_direction(int x, int y)
{
    const int a = x < 0 ? -x : x, b = y < 0 ? -y : y;
    if (29 * (a < b ? a : b) > 12 * (a < b ? b : a)) {
        return y > 0 ? (x > 0 ? 1 : 3) : (x > 0 ? 7 : 5);
    }
    return a > b ? (x > 0 ? 0 : 4) : (y > 0 ? 2 : 6);
}
";

const GRADIENTS: &str = "    for (size_t i = 0; i < SMOLFED_READ; i++) {
        x[i] = 0.0f;
    }
    for (size_t r = 0; r < SMOLFED_ROWS / SMOLFED_CELL * SMOLFED_CELL; r++) {
        for (size_t c = 0; c < SMOLFED_COLUMNS / SMOLFED_CELL * SMOLFED_CELL; c++) {
            int steepest = 0, across = 0, down = 0;
            for (size_t plane = 0; plane < SMOLFED_PLANES; plane++) {
                const size_t i = (plane * SMOLFED_ROWS + r) * SMOLFED_COLUMNS + c;
                const int is_inside_row = c > 0 && c + 1 < SMOLFED_COLUMNS;
                const int is_inside_column = r > 0 && r + 1 < SMOLFED_ROWS;
                const int gx = is_inside_row
                    ? smolfed_pixel(features, i + 1) - smolfed_pixel(features, i - 1)
                    : 0;
                const int gy = is_inside_column
                    ? smolfed_pixel(features, i + SMOLFED_COLUMNS)
                        - smolfed_pixel(features, i - SMOLFED_COLUMNS)
                    : 0;
                const int a = gx < 0 ? -gx : gx, b = gy < 0 ? -gy : gy;
                const int magnitude = a > b ? a + 3 * b / 8 : b + 3 * a / 8;
                if (magnitude > steepest) {
                    steepest = magnitude;
                    across = gx;
                    down = gy;
                }
            }
            if (steepest > 0) {
                const size_t cell = r / SMOLFED_CELL * (SMOLFED_COLUMNS / SMOLFED_CELL)
                    + c / SMOLFED_CELL;
                x[8 * cell + smolfed_direction(across, down)] += (float)steepest;
            }
        }
    }
";

const POOL: &str = "    for (size_t i = 0; i < SMOLFED_READ; i++) {
        x[i] = 0.0f;
    }
    for (size_t r = 0; r < SMOLFED_ROWS / SMOLFED_CELL * SMOLFED_CELL; r++) {
        for (size_t c = 0; c < SMOLFED_COLUMNS / SMOLFED_CELL * SMOLFED_CELL; c++) {
            const size_t i = r * SMOLFED_COLUMNS + c;
            const size_t cell = r / SMOLFED_CELL * (SMOLFED_COLUMNS / SMOLFED_CELL)
                + c / SMOLFED_CELL;
#if SMOLFED_PLANES == 3
            const size_t plane = SMOLFED_ROWS * SMOLFED_COLUMNS;
            x[cell] += (float)((77 * smolfed_pixel(features, i)
                + 150 * smolfed_pixel(features, i + plane)
                + 29 * smolfed_pixel(features, i + 2 * plane)) >> 8);
#else
            x[cell] += (float)smolfed_pixel(features, i);
#endif
        }
    }
";

/// From sums to roots of their shares.
const SHARES: &str = "    double sum = 0.0;
    for (size_t i = 0; i < SMOLFED_READ; i++) {
        sum += x[i];
    }
    for (size_t i = 0; sum > 0.0 && i < SMOLFED_READ; i++) {
        x[i] = sqrtf(x[i] / (float)sum) * (sqrtf(SMOLFED_READ) / 2.0f);
    }
";

const SHORTEN: &str = "    double squares = 0.0;
    for (size_t i = 0; i < SMOLFED_READ; i++) {
        squares += (double)x[i] * x[i];
    }
    const float length = (float)sqrt(squares);
    for (size_t i = 0; length > SMOLFED_NORM_BOUND && i < SMOLFED_READ; i++) {
        x[i] *= SMOLFED_NORM_BOUND / length;
    }
";
