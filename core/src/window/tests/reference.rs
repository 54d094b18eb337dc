//! The definitions in `f64`, without a fast transform.

/// The features of one channel.
pub(super) struct Reference {
    pub(super) mean: f64,
    pub(super) deviation: f64,
    /// Largest deviation from the mean.
    pub(super) peak: f64,
    pub(super) energy: f64,
    /// The energies of bands.
    pub(super) bands: std::vec::Vec<f64>,
}

pub(super) fn reference(samples: &[f64], bounds: &[u16]) -> Reference {
    let length = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / length;
    let count = samples.len().next_power_of_two();
    let energy = |k: usize| {
        let (mut re, mut im) = (0.0, 0.0);
        for (t, x) in samples.iter().enumerate() {
            let angle = 2.0 * core::f64::consts::PI * (k * t % count) as f64 / count as f64;
            re += (x - mean) * angle.cos();
            im += (x - mean) * angle.sin();
        }
        let twice = if k == 0 || 2 * k == count { 1.0 } else { 2.0 };
        twice * (re * re + im * im) / (count as f64 * length)
    };
    let bands = bounds.windows(2).map(|band| {
        (usize::from(band[0])..usize::from(band[1]))
            .map(energy)
            .sum()
    });
    let squares = |f: &dyn Fn(f64) -> f64| samples.iter().map(|x| f(*x) * f(*x)).sum::<f64>();
    Reference {
        mean,
        deviation: (squares(&|x| x - mean) / length).sqrt(),
        peak: samples
            .iter()
            .fold(0.0, |peak, x| f64::max(peak, (x - mean).abs())),
        energy: squares(&|x| x) / length,
        bands: bands.collect(),
    }
}
