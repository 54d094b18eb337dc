//! Sizes of images in a network of 8-bit integers, their windows, and the largest number of values.

/// Maximum number of values of an image, so that indices do not overflow.
pub(super) const MAX_COUNT: usize = if usize::MAX >> 1 < i32::MAX as usize {
    usize::MAX >> 1
} else {
    i32::MAX as usize
};

/// The size of an image stored pixel by pixel. A vector is one pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Number of rows.
    pub height: u16,
    /// Pixels of a row.
    pub width: u16,
    /// Values of a pixel.
    pub channels: u16,
}

/// Windows side by side. Pairs are height, width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Pixels of a window.
    pub size: [u16; 2],
    /// Distance between neighbouring windows.
    pub stride: [u16; 2],
}

impl Image {
    /// Returns the number of values, saturated.
    #[must_use]
    pub const fn count(self) -> usize {
        (self.height as usize)
            .saturating_mul(self.width as usize)
            .saturating_mul(self.channels as usize)
    }

    /// Returns height and width.
    pub(super) const fn sides(self) -> [usize; 2] {
        [self.height as usize, self.width as usize]
    }
}

impl Windows {
    /// Windows of one pixel.
    pub const PIXELS: Self = Self {
        size: [1, 1],
        stride: [1, 1],
    };

    /// Returns the size of an image with one pixel for each whole window of a padded image, or
    /// `None` without any.
    pub(super) const fn of(self, image: Image, padding: [u16; 2]) -> Option<Image> {
        let sides = [image.height, image.width];
        let (mut axis, mut result) = (0, [0; 2]);
        while axis < 2 {
            let padded = sides[axis] as u32 + 2 * padding[axis] as u32;
            let (size, stride) = (self.size[axis] as u32, self.stride[axis] as u32);
            if size == 0 || stride == 0 || size > padded {
                return None;
            }
            let windows = (padded - size) / stride + 1;
            if windows > u16::MAX as u32 {
                return None;
            }
            result[axis] = windows as u16;
            axis += 1;
        }
        let [height, width] = result;
        Some(Image {
            height,
            width,
            channels: image.channels,
        })
    }
}
