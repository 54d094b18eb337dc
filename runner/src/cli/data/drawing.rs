//! An image and its fixed features as SVG: pixels on the left, a cell for each sum on the right.

use std::fmt::Write;

use smolfed_core::features::{Cells, DIRECTIONS};
use smolfed_data::features::{FeatureRecipe, ImageFeatures};

/// The longer side of the image, in pixels of the drawing.
const SIDE: f64 = 280.0;
const GAP: f64 = 24.0;

/// The file, or `None` for features that do not come from an image.
pub(super) fn svg(pixels: &[f32], recipe: &FeatureRecipe, features: &[f32]) -> Option<String> {
    let FeatureRecipe::Image { features: kind, .. } = recipe else {
        return None;
    };
    let cells = kind.cells();
    let (rows, columns) = (cells.rows(), cells.columns());
    let size = SIDE / rows.max(columns) as f64;
    let [width, height] = [columns, rows].map(|count| count as f64 * size);
    let right = width + GAP;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {height:.0}\" \
         role=\"img\" aria-label=\"An image and its features\">\n",
        right + width
    );
    // The first plane of a colour image.
    let image = &pixels[..rows * columns];
    squares(&mut text, image, columns, 0.0, size);
    match kind {
        ImageFeatures::Pool(_) => {
            let cell = size * cells.cell() as f64;
            squares(&mut text, features, cells.across(), right, cell);
        }
        ImageFeatures::Gradients(_) => rays(&mut text, cells, features, right, size),
    }
    text += "</svg>\n";
    Some(text)
}

/// Squares in rows of `columns`, the brighter the larger their value.
fn squares(text: &mut String, values: &[f32], columns: usize, left: f64, size: f64) {
    let largest = values.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    for (at, value) in values.iter().enumerate() {
        let level = (255.0 * value / largest) as u8;
        let (x, y) = ((at % columns) as f64, (at / columns) as f64);
        let _ = writeln!(
            text,
            "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{size:.2}\" height=\"{size:.2}\" \
             fill=\"#{level:02x}{level:02x}{level:02x}\"/>",
            left + x * size,
            y * size
        );
    }
}

/// Cells, each with a ray in every direction, as long as its feature.
fn rays(text: &mut String, cells: Cells, features: &[f32], left: f64, size: f64) {
    let side = size * cells.cell() as f64;
    let largest = features.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    for (cell, rays) in features.chunks_exact(DIRECTIONS).enumerate() {
        let x = left + side * (cell % cells.across()) as f64;
        let y = side * (cell / cells.across()) as f64;
        let _ = writeln!(
            text,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{side:.2}\" height=\"{side:.2}\" \
             fill=\"#f4f4f4\" stroke=\"#cccccc\"/>"
        );
        let (x, y) = (x + side / 2.0, y + side / 2.0);
        for (direction, ray) in rays.iter().enumerate().filter(|(_, ray)| **ray > 0.0) {
            let angle = direction as f64 * std::f64::consts::FRAC_PI_4;
            let length = side / 2.0 * f64::from(ray / largest);
            let _ = writeln!(
                text,
                "<line x1=\"{x:.2}\" y1=\"{y:.2}\" x2=\"{:.2}\" y2=\"{:.2}\" stroke=\"#b03020\" \
                 stroke-width=\"2\"/>",
                x + length * libm::cos(angle),
                y + length * libm::sin(angle)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_its_pixels_and_its_cells() {
        let gradients = FeatureRecipe::of_image(&[2, 2], 1, 1.0, ImageFeatures::Gradients).unwrap();
        let mut features = [0.0; 4 * DIRECTIONS];
        features[DIRECTIONS + 2] = 1.0;
        let text = svg(&[0.0, 1.0, 2.0, 255.0], &gradients, &features).unwrap();
        assert_eq!(text.matches("<rect").count(), 4 + 4);
        // Down from the middle of the second cell.
        assert!(
            text.contains("x1=\"514.00\" y1=\"70.00\" x2=\"514.00\" y2=\"140.00\""),
            "{text}"
        );
        assert_eq!(text.matches("<line").count(), 1);
        let pool = FeatureRecipe::of_image(&[2, 2], 2, 1.0, ImageFeatures::Pool).unwrap();
        let text = svg(&[1.0; 4], &pool, &[0.5]).unwrap();
        assert_eq!(text.matches("<rect").count(), 4 + 1);
    }
}
