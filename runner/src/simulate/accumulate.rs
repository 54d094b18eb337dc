//! From a device's update to the exact sum of a cohort: the grid, its checks, the device's own noise.

use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::stream::Stream;
use smolfed_core::train::TrainError;

use super::Encoding;

/// The sum of some devices' updates, in integers, so that their order cannot matter.
pub struct Accumulator {
    integers: Vec<i32>,
    noised: Vec<i64>,
    sum: Vec<i64>,
}

impl Accumulator {
    /// Nothing yet, for updates of `length` parameters.
    #[must_use]
    pub fn new(length: usize) -> Self {
        Self {
            integers: vec![0; length],
            noised: Vec::new(),
            sum: vec![0; length],
        }
    }

    /// Adds a device's update, with noise of its own if it must have some.
    ///
    /// # Errors
    /// Why the device is left out: a zero update then.
    pub fn add(
        &mut self,
        encoding: Encoding,
        update: &[f32],
        noise: Option<(&DiscreteGaussian, Stream)>,
    ) -> Result<(), String> {
        match encoding {
            Encoding::Clipped(grid) => {
                // The device's check, then the server's.
                grid.quantize_into(update, &mut self.integers)
                    .and_then(|()| grid.check(&self.integers))
                    .map_err(|error| error.to_string())?;
                let integers = self.integers.iter().map(|q| i64::from(*q));
                match noise {
                    None => {
                        for (sum, q) in self.sum.iter_mut().zip(integers) {
                            *sum += q;
                        }
                    }
                    Some((noise, mut stream)) => {
                        self.noised.clear();
                        self.noised.extend(integers);
                        noise.add_to(&mut self.noised, &mut stream);
                        for (sum, q) in self.sum.iter_mut().zip(&self.noised) {
                            *sum += q;
                        }
                    }
                }
            }
            Encoding::Unbounded => {
                let inside = |x: &f32| x.abs() <= Encoding::UNBOUNDED_LIMIT;
                if !update.iter().all(inside) {
                    return Err(TrainError::Diverged.to_string());
                }
                for (sum, x) in self.sum.iter_mut().zip(update) {
                    *sum += (f64::from(*x) / Encoding::UNBOUNDED_STEP) as i64;
                }
            }
        }
        Ok(())
    }

    /// Adds the noise of a device that has no update. Whether training fails depends on private data, so a
    /// device with noise of its own sends that noise alone, as often as it would have released something,
    /// and nobody can tell.
    pub fn add_noise_alone(
        &mut self,
        noise: Option<&DiscreteGaussian>,
        releases: u32,
        stream: impl FnOnce() -> Stream,
    ) {
        if let Some(noise) = noise {
            let mut stream = stream();
            for _ in 0..releases {
                noise.add_to(&mut self.sum, &mut stream);
            }
        }
    }

    /// Subtracts what a device has released already.
    pub fn subtract(&mut self, released: &[i64]) {
        for (sum, q) in self.sum.iter_mut().zip(released) {
            *sum -= q;
        }
    }

    /// Adds this sum to a larger one.
    pub fn add_to(&self, total: &mut [i64]) {
        for (total, part) in total.iter_mut().zip(&self.sum) {
            *total += part;
        }
    }
}
