//! Users with several devices: the distribution of the number of a user's devices in a round,
//! binomial or hypergeometric.

/// The sampling of the devices of one user.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Users {
    /// Each of the devices is drawn independently: Binomial(k, τ) of them are in a round.
    Poisson {
        /// k, the number of devices of a user.
        devices: u32,
        /// τ.
        rate: f64,
    },
    /// A cohort of fixed size is drawn: a hypergeometric number.
    Uniform {
        /// k, the number of devices of a user.
        devices: u32,
        /// N, the number of all devices.
        device_count: u32,
        /// S, the number of devices of a cohort.
        cohort_size: u32,
    },
}

impl Users {
    /// Returns ln P(X = c), up to a constant, from the smallest c on, and this c, using ratios of
    /// neighbours.
    pub(crate) fn ln_weights(&self) -> (u32, Vec<f64>) {
        let (first, last) = self.numbers();
        let mut ln = 0.0;
        let mut weights = vec![ln];
        for c in first..last {
            let ratio = match *self {
                Self::Poisson { devices, rate } => {
                    f64::from(devices - c) / f64::from(c + 1) * (rate / (1.0 - rate))
                }
                Self::Uniform {
                    devices,
                    device_count,
                    cohort_size,
                } => {
                    let spare =
                        i64::from(device_count) - i64::from(devices) - i64::from(cohort_size)
                            + i64::from(c)
                            + 1;
                    f64::from(devices - c) / f64::from(c + 1) * f64::from(cohort_size - c)
                        / spare as f64
                }
            };
            ln += ratio.ln();
            weights.push(ln);
        }
        (first, weights)
    }

    /// Returns the smallest and the largest possible number of devices in a round.
    pub(crate) fn numbers(&self) -> (u32, u32) {
        match *self {
            Self::Poisson { devices, .. } => (0, devices),
            Self::Uniform {
                devices,
                device_count,
                cohort_size,
            } => {
                let others = device_count - devices;
                (cohort_size.saturating_sub(others), devices.min(cohort_size))
            }
        }
    }
}
