//! Dirichlet dealing: with drawn sizes, or with the same size for all.

use rand_core::Rng;

use super::error::PartitionError;
use crate::draw;

/// Maximum number of draws before these settings are refused because a device has too few samples.
const MAX_DRAWS: u32 = 100;

/// Divides each class among the devices by shares p ~ Dir(α · 1_N), until every device has
/// `min_samples`. Source: Yurochkin et al. 2019, arXiv:1905.12022, section 4.
pub(super) fn uneven(
    classes: &[Vec<u32>],
    devices: u32,
    min_samples: u32,
    alpha: f64,
    rng: &mut impl Rng,
) -> Result<Vec<Vec<u32>>, PartitionError> {
    let mut shares = vec![0.0; devices as usize];
    let mut poorest = (0, 0);
    for _ in 0..MAX_DRAWS {
        let mut dealt = vec![Vec::new(); devices as usize];
        for rows in classes {
            draw::dirichlet_into(rng, alpha, &mut shares);
            deal(rows, &shares, &mut dealt);
        }
        poorest = (0..)
            .zip(&dealt)
            .map(|(device, rows)| (rows.len(), device))
            .min()
            .unwrap_or((0, 0));
        if poorest.0 >= min_samples as usize {
            return Ok(dealt);
        }
    }
    let (found, device) = poorest;
    Err(PartitionError::Starved {
        draws: MAX_DRAWS,
        alpha,
        device,
        found,
        needed: min_samples,
    })
}

/// Cuts `rows` at the running sums of `shares`, to the nearest row.
fn deal(rows: &[u32], shares: &[f64], dealt: &mut [Vec<u32>]) {
    let (mut start, mut sum) = (0, 0.0);
    for (index, (share, device)) in shares.iter().zip(dealt.iter_mut()).enumerate() {
        sum += share;
        let last = index + 1 == shares.len();
        let cut = libm::round(sum * rows.len() as f64) as usize;
        let end = if last {
            rows.len()
        } else {
            cut.clamp(start, rows.len())
        };
        device.extend_from_slice(&rows[start..end]);
        start = end;
    }
}

/// Gives each device `samples` rows, class by class at random with its own shares q ~ Dir(α · 1_C).
/// A class without rows is removed from the shares. Source: Hsu et al. 2019, arXiv:1909.06335,
/// section 3. There must be `devices · samples` rows.
pub(super) fn even(
    classes: &[Vec<u32>],
    devices: u32,
    samples: u32,
    alpha: f64,
    rng: &mut impl Rng,
) -> Vec<Vec<u32>> {
    let mut left = classes.to_vec();
    let mut shares = vec![0.0; left.len()];
    let device = |_| {
        draw::dirichlet_into(rng, alpha, &mut shares);
        (0..samples)
            .filter_map(|_| draw_class(rng, &shares, &left).and_then(|class| left[class].pop()))
            .collect()
    };
    (0..devices).map(device).collect()
}

/// Draws a class that still has rows, by the shares of these classes. If the shares are all zero,
/// by the numbers of remaining rows.
fn draw_class(rng: &mut impl Rng, shares: &[f64], left: &[Vec<u32>]) -> Option<usize> {
    let weights = |weight: &dyn Fn(usize) -> f64| -> Vec<f64> {
        (0..left.len())
            .map(|class| {
                if left[class].is_empty() {
                    0.0
                } else {
                    weight(class)
                }
            })
            .collect()
    };
    let mut weight = weights(&|class| shares[class]);
    let mut total: f64 = weight.iter().sum();
    if total <= 0.0 {
        weight = weights(&|class| left[class].len() as f64);
        total = weight.iter().sum();
    }
    let mut point = draw::unit(rng) * total;
    let mut chosen = None;
    for (class, weight) in weight.into_iter().enumerate() {
        if weight > 0.0 {
            chosen = Some(class);
            point -= weight;
            if point <= 0.0 {
                break;
            }
        }
    }
    chosen
}
