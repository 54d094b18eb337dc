//! Numbers as small PNG images: blue below zero, orange above, transparent at zero, so that the
//! same image works on light and on dark paper.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
use png::{ColorType, DeflateCompression, Encoder, Filter};

/// Shades on each side of zero.
const SHADES: u8 = 60;
const BLUE: [u8; 3] = [0x1f, 0x7a, 0xd0];
const ORANGE: [u8; 3] = [0xe0, 0x6c, 0x10];

/// Returns `values` row by row as a PNG of `width` columns in a data URI, with full colour at ±
/// `full` and beyond. `None` unless the values fill whole rows of an image.
pub(super) fn data_uri(values: &[f32], width: usize, full: f32) -> Option<String> {
    let height = values.len().checked_div(width)?;
    if height == 0 || height * width != values.len() {
        return None;
    }
    let size = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    let pixels: Vec<u8> = values.iter().map(|value| shade(*value, full)).collect();
    let shades = || -i32::from(SHADES)..=i32::from(SHADES);
    let palette: Vec<u8> = shades()
        .flat_map(|level| if level < 0 { BLUE } else { ORANGE })
        .collect();
    let alpha: Vec<u8> = shades()
        .map(|level| (255 * level.abs() / i32::from(SHADES)) as u8)
        .collect();

    let mut image = Vec::new();
    let mut encoder = Encoder::new(&mut image, size.0, size.1);
    encoder.set_color(ColorType::Indexed);
    encoder.set_palette(palette);
    encoder.set_trns(alpha);
    // Palette indices are not quantities: their differences compress worse.
    encoder.set_filter(Filter::NoFilter);
    encoder.set_deflate_compression(DeflateCompression::Level(9));
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(&pixels))
        .ok()?;
    Some(format!("data:image/png;base64,{}", STANDARD.encode(&image)))
}

/// Returns the palette index of a value. Zero and NaN are the middle.
fn shade(value: f32, full: f32) -> u8 {
    let level = f32::from(SHADES) * (value / full).clamp(-1.0, 1.0);
    // A cast converts NaN to 0.
    (i32::from(SHADES) + level.round() as i32) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_are_symmetric_and_bounded() {
        let shades = [-9.0, -1.0, 0.0, 1.0, 9.0].map(|value| shade(value, 1.0));
        assert_eq!(shades, [0, 0, SHADES, 2 * SHADES, 2 * SHADES]);
        assert_eq!(shade(f32::NAN, 1.0), SHADES);
        assert_eq!(shade(0.0, 0.0), SHADES);
    }

    #[test]
    fn only_whole_rows_are_images() {
        assert!(
            data_uri(&[0.5; 6], 3, 1.0)
                .unwrap()
                .starts_with("data:image/png;base64,iVBOR")
        );
        assert_eq!(data_uri(&[0.5; 5], 3, 1.0), None);
        assert_eq!(data_uri(&[], 3, 1.0), None);
        assert_eq!(data_uri(&[0.5], 0, 1.0), None);
    }

    #[test]
    fn a_digit_takes_about_a_kilobyte() {
        let values: Vec<f32> = (0..784)
            .map(|i| ((i * 37 % 101) as f32) / 50.0 - 1.0)
            .collect();
        assert!(data_uri(&values, 28, 1.0).unwrap().len() < 2_500);
    }
}
