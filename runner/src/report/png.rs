//! Numbers as small PNG images: blue below zero, orange above, transparent at zero, so that the
//! same image reads on light and on dark paper.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Shades on each side of zero.
const SHADES: u8 = 60;
const BLUE: [u8; 3] = [0x1f, 0x7a, 0xd0];
const ORANGE: [u8; 3] = [0xe0, 0x6c, 0x10];

/// `values` row by row as a PNG of `width` columns in a data URI; full colour at ± `full` and
/// beyond. `None` unless the values fill whole rows of an image.
pub(super) fn data_uri(values: &[f32], width: usize, full: f32) -> Option<String> {
    let height = values.len().checked_div(width)?;
    if height == 0 || height * width != values.len() {
        return None;
    }
    let size = [u32::try_from(width).ok()?, u32::try_from(height).ok()?];
    let mut pixels = Vec::with_capacity(values.len() + height);
    for row in values.chunks_exact(width) {
        // Filter 0: the bytes as they are.
        pixels.push(0);
        pixels.extend(row.iter().map(|value| shade(*value, full)));
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&pixels).ok()?;
    let pixels = encoder.finish().ok()?;

    let shades = || -i32::from(SHADES)..=i32::from(SHADES);
    let palette: Vec<u8> = shades()
        .flat_map(|level| if level < 0 { BLUE } else { ORANGE })
        .collect();
    let alpha: Vec<u8> = shades()
        .map(|level| (255 * level.abs() / i32::from(SHADES)) as u8)
        .collect();
    let mut header = Vec::new();
    header.extend(size.into_iter().flat_map(u32::to_be_bytes));
    // Eight bits a pixel, palette, deflate, the usual filters, not interlaced.
    header.extend([8, 3, 0, 0, 0]);

    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let chunks: [(&[u8; 4], &[u8]); 5] = [
        (b"IHDR", &header),
        (b"PLTE", &palette),
        (b"tRNS", &alpha),
        (b"IDAT", &pixels),
        (b"IEND", &[]),
    ];
    for (kind, data) in chunks {
        png.extend(u32::try_from(data.len()).ok()?.to_be_bytes());
        png.extend(kind);
        png.extend(data);
        let mut check = crc32fast::Hasher::new();
        check.update(kind);
        check.update(data);
        png.extend(check.finalize().to_be_bytes());
    }
    Some(format!("data:image/png;base64,{}", base64(&png)))
}

/// Entry of the palette for a value; zero and NaN are the middle.
fn shade(value: f32, full: f32) -> u8 {
    let level = f32::from(SHADES) * (value / full).clamp(-1.0, 1.0);
    // A cast takes NaN to 0.
    (i32::from(SHADES) + level.round() as i32) as u8
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits: usize, i| {
            bits << 8 | usize::from(three.get(i).copied().unwrap_or(0))
        });
        for digit in 0..4 {
            // One byte fills two digits, two fill three; the rest is padding.
            text.push(if digit <= three.len() {
                char::from(DIGITS[bits >> (18 - 6 * digit) & 63])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_base64() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

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
