//! Accuracy of the k nearest neighbours: how close samples of one class are to each other.
//!
//! Near means a large cosine of the representations, without centring. The spectral contrastive
//! loss sees representations through their inner products only (HaoChen et al. 2021,
//! arXiv:2106.04156), from the origin: an inner product near zero is "nothing in common", and
//! centring would move that zero. The cosine is better than the inner product itself, because a
//! long representation would be everybody's neighbour. On principal components of the digits,
//! centring costs up to four points of accuracy with few components, and gains nothing with many.
//! Each neighbour has one vote, so there is no temperature to choose.

use rayon::prelude::*;
use smolfed_core::lanes;
use smolfed_core::model::{ModelError, Softmax};
use smolfed_simd::{Kernels, Rows};

use super::Labelled;

/// Queries per task of the thread pool, and samples of the bank compared with them at once. The
/// cosines fit the second level of the cache, the samples the first.
const QUERIES: usize = 128;
const BANK: usize = 512;

/// Returns the share of `queries` whose class is the majority among their `neighbours` nearest
/// samples of `bank`, or `None` if there are no samples, or if the widths differ.
///
/// * Ties: among equally near samples, the first in the bank wins. Among classes with equal votes,
///   the one with the nearest sample wins. A bank with fewer samples votes as a whole. Zero
///   neighbours count as one.
/// * A representation that is zero or not finite has no direction: its cosine with all others is 0.
/// * Cost: `2 · bank · queries · width` flop, in parallel. Any number of threads gives the same
///   bits.
#[must_use]
pub fn knn_accuracy(bank: &Labelled, queries: &Labelled, neighbours: usize) -> Option<f64> {
    if bank.width != queries.width || bank.is_empty() || queries.is_empty() {
        return None;
    }
    let parts = parts(bank);
    let (width, directions) = (queries.width, directions(queries));
    let indices: Vec<u32> = (0..queries.len() as u32).collect();
    let samples = Rows::new(&directions, width, &queries.classes, &indices);
    let neighbours = neighbours.clamp(1, bank.len());
    let pieces: Vec<Result<usize, ModelError>> = indices
        .par_chunks(QUERIES)
        .map(|batch| {
            let nearest = nearest(&parts, &samples, batch, neighbours)?;
            let classes = batch.iter().map(|index| queries.classes[*index as usize]);
            let pairs = nearest.iter().zip(classes);
            Ok(pairs
                .filter(|(nearest, class)| nearest.vote() == Some(*class))
                .count())
        })
        .collect();
    let correct: usize = pieces.into_iter().sum::<Result<_, _>>().ok()?;
    Some(correct as f64 / queries.len() as f64)
}

/// Some samples of the bank as a linear model. Its scores of a query are their cosines, computed by
/// the kernels of models.
struct BankPart<'a> {
    model: Softmax<usize, usize>,
    parameters: Vec<f32>,
    classes: &'a [u16],
}

fn parts(bank: &Labelled) -> Vec<BankPart<'_>> {
    let directions = directions(bank);
    let rows = directions.chunks(BANK * bank.width);
    rows.zip(bank.classes[..bank.len()].chunks(BANK))
        .map(|(rows, classes)| {
            let biases = vec![0.0; classes.len()];
            BankPart {
                model: Softmax::new(bank.width, classes.len()),
                parameters: [rows, &biases].concat(),
                classes,
            }
        })
        .collect()
}

/// Returns the representations with norm 1, or 0 if they have no direction.
fn directions(samples: &Labelled) -> Vec<f32> {
    let rows = samples.rows().flat_map(|row| {
        let norm = lanes::norm(row);
        let has_direction = norm.is_finite() && norm > 0.0;
        let direction = move |x: &f32| if has_direction { x / norm } else { 0.0 };
        row.iter().map(direction)
    });
    rows.collect()
}

/// Returns the nearest samples of each query of a batch.
fn nearest(
    parts: &[BankPart<'_>],
    queries: &Rows<'_, u16>,
    batch: &[u32],
    neighbours: usize,
) -> Result<Vec<Nearest>, ModelError> {
    let mut all = vec![Nearest::new(neighbours); batch.len()];
    let mut cosines = vec![0.0; batch.len() * BANK];
    for part in parts {
        let count = part.classes.len();
        let cosines = &mut cosines[..batch.len() * count];
        part.model
            .row_scores(&part.parameters, queries, batch, &mut [], cosines)?;
        for (nearest, cosines) in all.iter_mut().zip(cosines.chunks_exact(count)) {
            nearest.offer(cosines, part.classes);
        }
    }
    Ok(all)
}

/// The nearest samples so far, the nearest first.
#[derive(Clone)]
struct Nearest {
    count: usize,
    found: Vec<(f32, u16)>,
    /// Minimum cosine (exclusive) for a new sample.
    threshold: f32,
}

impl Nearest {
    fn new(count: usize) -> Self {
        Self {
            count,
            found: Vec::with_capacity(count + 1),
            threshold: f32::NEG_INFINITY,
        }
    }

    /// Offers samples of the bank in order.
    fn offer(&mut self, cosines: &[f32], classes: &[u16]) {
        for (cosine, class) in cosines.iter().zip(classes) {
            if *cosine > self.threshold {
                let place = self.found.partition_point(|(other, _)| other >= cosine);
                self.found.insert(place, (*cosine, *class));
                self.found.truncate(self.count);
                if let Some((last, _)) = self.found.get(self.count - 1) {
                    self.threshold = *last;
                }
            }
        }
    }

    /// Returns the majority class.
    fn vote(&self) -> Option<u16> {
        // Classes in the order of their nearest samples. The first of the largest counts wins.
        let mut votes: Vec<(u16, usize)> = Vec::new();
        for (_, class) in &self.found {
            match votes.iter_mut().find(|(other, _)| other == class) {
                Some((_, count)) => *count += 1,
                None => votes.push((*class, 1)),
            }
        }
        let most = votes.iter().map(|(_, count)| *count).max()?;
        let (class, _) = votes.iter().find(|(_, count)| *count == most)?;
        Some(*class)
    }
}
