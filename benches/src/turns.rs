//! Programs that are measured in turn, because a machine is not equally fast at all times.

use std::error::Error;

/// Milliseconds after which nobody is measured again: slow programs would hold up the others.
const PATIENCE: f64 = 20e3;
/// Rounds of one program in a row: the first one in a turn finds caches cold and a core asleep.
pub const IN_A_ROW: usize = 5;

type Step<'a> = Box<dyn FnMut() -> Result<f64, Box<dyn Error>> + 'a>;

/// One program, and the milliseconds of its rounds.
pub struct Row<'a> {
    /// What it is called.
    pub title: String,
    step: Step<'a>,
    times: Vec<f64>,
}

impl<'a> Row<'a> {
    /// A program by its next round, which returns its milliseconds.
    pub fn new(title: String, step: impl FnMut() -> Result<f64, Box<dyn Error>> + 'a) -> Self {
        Self {
            title,
            step: Box::new(step),
            times: Vec::new(),
        }
    }

    /// Some more rounds in a row, unless it has had its time.
    ///
    /// # Errors
    /// If the program failed.
    pub fn turn(&mut self) -> Result<(), Box<dyn Error>> {
        for _ in 0..IN_A_ROW {
            if self.times.iter().sum::<f64>() < PATIENCE {
                self.times.push((self.step)()?);
            }
        }
        Ok(())
    }

    /// The median and the minimum.
    #[must_use]
    pub fn figures(&self) -> [f64; 2] {
        let mut times = self.times.clone();
        times.sort_by(f64::total_cmp);
        [times.len() / 2, 0].map(|at| times.get(at).copied().unwrap_or(f64::NAN))
    }

    /// By how much the figures of another are larger.
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
