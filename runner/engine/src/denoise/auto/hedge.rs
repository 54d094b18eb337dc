//! The weights of the filters of `denoiser = "auto"`, by AdaHedge from the losses so far and their
//! noise.

/// Minimum advantage over the first expert, in standard deviations of noise.
const MARGIN: f64 = 2.0;

/// Losses of experts so far, and the resulting weights. The losses are relative to the first
/// expert, whose own losses are 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hedge {
    /// Loss of each expert over all rounds.
    losses: Vec<f64>,
    /// Variance of that loss due to the noise of the judging releases.
    variances: Vec<f64>,
    /// Mixability gap over all rounds, 0 before there is evidence.
    gap: f64,
    weights: Vec<f64>,
}

impl Hedge {
    /// Starts without evidence: all weight is with the first of `count` experts.
    pub(super) fn new(count: usize) -> Self {
        let mut weights = vec![0.0; count];
        weights.iter_mut().take(1).for_each(|first| *first = 1.0);
        Self {
            losses: vec![0.0; count],
            variances: vec![0.0; count],
            gap: 0.0,
            weights,
        }
    }

    /// Returns the weight of each expert. Weights are at least 0 and sum to 1.
    pub(super) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Returns the advantage of each expert over the first, in standard deviations of noise.
    pub(super) fn evidence(&self) -> impl Iterator<Item = f64> {
        let both = self.losses.iter().zip(&self.variances);
        both.map(|(loss, variance)| match *variance > 0.0 {
            true => -loss / variance.sqrt(),
            false => 0.0,
        })
    }

    /// Adds the losses of a round, each with its variance, and updates the weights.
    pub(super) fn judge(&mut self, evidence: &[[f64; 2]]) {
        let losses = || evidence.iter().map(|[loss, _]| *loss);
        let least = losses().fold(f64::INFINITY, f64::min);
        if !losses().all(f64::is_finite) || !least.is_finite() {
            return;
        }
        self.gap += if self.gap > 0.0 {
            let rate = self.rate();
            let mean: f64 = losses().zip(&self.weights).map(|(l, p)| l * p).sum();
            // Relative to the least loss, so no exponential overflows.
            let shrunk = losses()
                .zip(&self.weights)
                .map(|(l, p)| p * libm::exp(-rate * (l - least)));
            let mix = least - libm::log(shrunk.sum::<f64>()) / rate;
            // The mix is infinite: the experts with weight are infinitely worse than the best one.
            if mix.is_finite() {
                (mean - mix).max(0.0)
            } else {
                mean - least
            }
        } else {
            losses().sum::<f64>() / evidence.len() as f64 - least
        };
        for ((sum, variance), [loss, of_noise]) in self
            .losses
            .iter_mut()
            .zip(&mut self.variances)
            .zip(evidence)
        {
            *sum += loss;
            *variance += of_noise;
        }
        if self.gap > 0.0 {
            self.weigh();
        }
    }

    /// Sets p ∝ exp(−rate · (loss + margin)).
    fn weigh(&mut self) {
        let careful = self.losses.iter().zip(&self.variances);
        let careful: Vec<f64> = careful.map(|(l, s)| l + MARGIN * s.sqrt()).collect();
        let least = careful.iter().copied().fold(f64::INFINITY, f64::min);
        let rate = self.rate();
        let shares = careful.iter().map(|q| libm::exp(-rate * (q - least)));
        self.weights = shares.collect();
        let total: f64 = self.weights.iter().sum();
        self.weights.iter_mut().for_each(|p| *p /= total);
    }

    fn rate(&self) -> f64 {
        libm::log(self.losses.len() as f64) / self.gap
    }

    /// Returns all numbers for a checkpoint.
    pub(super) fn state(&self) -> Vec<f64> {
        [&*self.losses, &self.variances, &self.weights, &[self.gap]].concat()
    }

    /// Restores the numbers from [`state`](Self::state).
    pub(super) fn restore(&mut self, state: &[f64]) {
        let count = self.losses.len();
        for (part, values) in [&mut self.losses, &mut self.variances, &mut self.weights]
            .into_iter()
            .zip(state.chunks(count))
        {
            part.copy_from_slice(values);
        }
        self.gap = state.last().copied().unwrap_or(0.0);
    }
}
