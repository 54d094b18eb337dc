//! Programs measured in turn, because a machine's speed varies over time: the number of consecutive
//! rounds and the time limit of each program, and medians, minima and ratios.

use std::error::Error;

/// Milliseconds after which a program is not measured again: slow programs would delay the others.
const PATIENCE: f64 = 20e3;
/// Consecutive rounds of one program: the first in a turn finds cold caches and a sleeping core.
pub const IN_A_ROW: usize = 5;

type Step<'a> = Box<dyn FnMut() -> Result<f64, Box<dyn Error>> + 'a>;

/// A program and the milliseconds of its rounds.
pub struct Row<'a> {
    /// Name of the program.
    pub title: String,
    step: Step<'a>,
    times: Vec<f64>,
}

impl<'a> Row<'a> {
    /// Creates a row from a program's next round, which returns its milliseconds.
    pub fn new(title: String, step: impl FnMut() -> Result<f64, Box<dyn Error>> + 'a) -> Self {
        Self {
            title,
            step: Box::new(step),
            times: Vec::new(),
        }
    }

    /// Runs some more consecutive rounds, unless the program's time is used up.
    ///
    /// # Errors
    /// The program failed.
    pub fn turn(&mut self) -> Result<(), Box<dyn Error>> {
        for _ in 0..IN_A_ROW {
            if self.times.iter().sum::<f64>() < PATIENCE {
                self.times.push((self.step)()?);
            }
        }
        Ok(())
    }

    /// Returns the median and the minimum.
    #[must_use]
    pub fn figures(&self) -> [f64; 2] {
        let mut times = self.times.clone();
        times.sort_by(f64::total_cmp);
        [times.len() / 2, 0].map(|at| times.get(at).copied().unwrap_or(f64::NAN))
    }

    /// Returns the factors by which another program's figures are larger.
    #[must_use]
    pub fn ratio(&self, other: &Self) -> [f64; 2] {
        let (own, other) = (self.figures(), other.figures());
        [other[0] / own[0], other[1] / own[1]]
    }
}

impl std::fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Row({}, {:?})", self.title, self.times)
    }
}
