//! A sample as text: an image in shades, or the channels of a window as lines.

/// From nothing to full, by how much ink a character has.
const SHADES: &[u8] = b" .:-=+*#%@";
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns of a picture at most: a terminal of 80 with some room.
const MAX_COLUMNS: usize = 78;
/// Grids of fewer rows than this are channels and not images.
const MIN_ROWS: usize = 5;

/// Lines that show a sample with these axes. A sample that is not a grid of two axes, or is too
/// wide, has none. Of three axes (channels, rows, columns), the first channel is shown.
pub(super) fn lines(features: &[f32], axes: &[usize]) -> Vec<String> {
    let (rows, columns) = match *axes {
        // A window of several channels.
        [channels, 1, columns] => (channels, columns),
        [rows, columns] | [_, rows, columns] => (rows, columns),
        _ => return Vec::new(),
    };
    let Some(grid) = rows
        .checked_mul(columns)
        .and_then(|size| features.get(..size))
    else {
        return Vec::new();
    };
    let is_window = matches!(axes, [_, 1, _]);
    if is_window || rows < MIN_ROWS {
        return if columns <= MAX_COLUMNS {
            channels(grid, columns)
        } else {
            Vec::new()
        };
    }
    if 2 * columns <= MAX_COLUMNS {
        image(grid, columns)
    } else {
        Vec::new()
    }
}

/// Two characters per pixel, since characters are twice as high as wide. The rarer shade, dark or
/// bright, is drawn. Empty lines above and below are left out.
fn image(grid: &[f32], columns: usize) -> Vec<String> {
    let levels = levels(grid, SHADES.len());
    let inverted = levels.iter().sum::<usize>() * 2 > levels.len() * (SHADES.len() - 1);
    let shade = |level: usize| {
        let level = if inverted {
            SHADES.len() - 1 - level
        } else {
            level
        };
        char::from(SHADES[level])
    };
    let line = |row: &[usize]| -> String {
        let line: String = row.iter().flat_map(|&level| [shade(level); 2]).collect();
        line.trim_end().to_owned()
    };
    let lines: Vec<String> = levels.chunks_exact(columns).map(line).collect();
    let drawn = |line: &String| !line.is_empty();
    let first = lines.iter().position(drawn).unwrap_or(0);
    let last = lines.iter().rposition(drawn).unwrap_or(0);
    lines[first..=last].to_vec()
}

fn channels(grid: &[f32], columns: usize) -> Vec<String> {
    let line = |channel: &[f32]| {
        levels(channel, LEVELS.len())
            .into_iter()
            .map(|level| LEVELS[level])
            .collect()
    };
    grid.chunks_exact(columns).map(line).collect()
}

/// Values as steps from 0 (the smallest) to `count` − 1 (the largest). All are 0 if they are equal.
fn levels(values: &[f32], count: usize) -> Vec<usize> {
    let min = values.iter().copied().fold(f32::INFINITY, f32::min);
    let max = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let range = f64::from(max) - f64::from(min);
    let level = |&value: &f32| {
        let share = if range > 0.0 {
            (f64::from(value) - f64::from(min)) / range
        } else {
            0.0
        };
        ((share * count as f64) as usize).min(count - 1)
    };
    values.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 5 × 2: bright (1) on dark (0), one bright row.
    const BRIGHT: [f32; 10] = [0.0, 0.0, 1.0, 0.5, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0];

    #[test]
    fn the_rarer_is_drawn() {
        assert_eq!(lines(&BRIGHT, &[5, 2]), ["@@++", "", "  @@"]);
        let dark = BRIGHT.map(|value| 1.0 - value);
        assert_eq!(lines(&dark, &[5, 2])[2], "  @@");
        assert_eq!(lines(&[3.0; 10], &[5, 2]), [""]);
    }

    #[test]
    fn first_channel_of_a_colour_image_is_shown() {
        let colour = [&BRIGHT[..], &[9.0; 20]].concat();
        assert_eq!(lines(&colour, &[3, 5, 2]), lines(&BRIGHT, &[5, 2]));
    }

    #[test]
    fn windows_are_drawn_by_channel() {
        assert_eq!(lines(&[0.0, 1.0, 5.0, 5.0], &[2, 2]), ["▁█", "▁▁"]);
        let many = [[0.0, 1.0]; 6].concat();
        assert_eq!(lines(&many, &[6, 1, 2]), ["▁█"; 6]);
    }

    #[test]
    fn no_grid_and_too_wide_grids_have_no_picture() {
        assert!(lines(&[0.0; 4], &[]).is_empty());
        assert!(lines(&[0.0; 4], &[4]).is_empty());
        assert!(lines(&[0.0; 400], &[10, 40]).is_empty());
        assert!(lines(&[0.0; 160], &[2, 80]).is_empty());
        assert!(
            lines(&[0.0; 4], &[5, 2]).is_empty(),
            "fewer features than the axes say"
        );
    }
}
