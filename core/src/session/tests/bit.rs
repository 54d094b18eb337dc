//! The bit of adaptive clipping, from the invitation to the line, and the noise that a device
//! accepts for it.

use super::*;
use smolfed_accounting::{event::Mechanism, params as privacy};

use crate::{
    params::NoiseMultiplier,
    quantize::BITS,
    session::{
        GRID_LOSS,
        masks::tagged,
        round::{
            Round, Stage,
            stage::{Covering, Source},
        },
    },
    wire::message::{Packed, UpdateChunk},
};

/// z_b = 2: σ_b is 1 where a bit is ±½.
fn bit_noise() -> Option<Sigma> {
    Sigma::new(2 << 20, 1).ok()
}

/// Creates an invitation with a bit at this clip norm, where both bit and update have noise or
/// neither.
pub(super) fn adaptive(noise: Option<Sigma>, clip_norm: f32) -> Invitation {
    Invitation {
        grid: Grid::new(ClipNorm::new(clip_norm).unwrap(), 20).unwrap(),
        bit: Some(BitRequest {
            noise: noise.and(bit_noise()),
        }),
        ..invitation(noise)
    }
}

/// Runs a whole round with a policy without requirements.
fn answered(round: u32, invitation: Invitation) -> Coordinator {
    let mut other = coordinator(round, None);
    other.invitation = invitation;
    run(&mut board(policy(), ledger(), 0), &mut other, |bytes| bytes);
    other
}

#[test]
fn an_update_brings_its_bit() {
    let half = 1 << 20;
    for noise in [None, noise()] {
        let mut signs = 0;
        for (round, clip_norm) in [(1, 0.5), (2, 1e-3), (3, 100.0), (4, 30.0)] {
            let invitation = adaptive(noise, clip_norm);
            let other = answered(round, invitation);
            let (update, norm) = simulated(round, &invitation);
            assert_eq!(other.integers, update);
            let sign = if norm <= clip_norm { 1 } else { -1 };
            let mut bit = [sign * half];
            if noise.is_some() {
                let stream = &mut stream(Purpose::DeviceBitNoise, round);
                DiscreteGaussian::of(bit_noise().unwrap()).add_to(&mut bit, stream);
            }
            assert_eq!(other.bit, Some(bit[0]), "{norm} {clip_norm}");
            signs += sign;
        }
        assert_eq!(signs, 0, "both bits were sent");
    }
    // An invitation without a bit gets none.
    assert_eq!(answered(1, invitation(noise())).bit, None);
}

/// Without an update the device sends noise, and the bit does not reveal it either.
#[test]
fn a_device_without_an_update_sends_the_noise_of_its_bit() {
    let mut other = coordinator(3, None);
    other.invitation = adaptive(noise(), 0.5);
    other.model.fill(f32::MAX);
    run(&mut board(policy(), ledger(), 0), &mut other, |bytes| bytes);
    let mut bit = [0];
    let stream = &mut stream(Purpose::DeviceBitNoise, 3);
    DiscreteGaussian::of(bit_noise().unwrap()).add_to(&mut bit, stream);
    assert_eq!(other.bit, Some(bit[0]));
}

/// Bits and first coordinates of 4,000 devices without an update: noise alone. A mean square of
/// 4,000 squares of std 1 has a std of 0.022, and a mean product one of 0.016. Deviations of six
/// stds have a probability below 2e-9 each, and the streams are fixed.
#[test]
fn the_noise_of_a_bit_is_none_of_the_noise_of_its_update() {
    let (z, z_bit) = (1.5 * f64::from(1 << 20), 2.0 * f64::from(1 << 20));
    let mut sums = [0.0; 3];
    let mut finished = board(policy(), ledger(), 0);
    let device = &mut finished.conversation.device;
    for number in 0..4_000 {
        let asked = adaptive(noise(), 0.5);
        let packed = PackedInvitation::from(&asked);
        let mut round = Round::new(number, asked, tagged(packed.bytes()), 0);
        let covering = Covering::new(Source::Zeros, &asked).unwrap();
        round.stage = Stage::Covering(covering);
        while !round.is_covered() {
            round.cover(device, 1).unwrap();
        }
        let value = |chunk: &UpdateChunk<'_>| match chunk.packed {
            Packed::Halves { low, high, .. } => {
                (i64::from(high[0] as i32) << 32 | i64::from(low[0])) as f64
            }
            Packed::Bytes(_) | Packed::Tag(_) => unreachable!(),
        };
        let update = value(&round.update_chunk(device)) / z;
        round.chunk = u16::MAX;
        let bit = value(&round.update_chunk(device)) / z_bit;
        for (sum, x) in sums
            .iter_mut()
            .zip([update * update, bit * bit, update * bit])
        {
            *sum += x / 4_000.0;
        }
    }
    let [update, bit, product] = sums;
    assert!((update - 1.0).abs() < 0.134 && (bit - 1.0).abs() < 0.134);
    assert!(product.abs() < 0.095, "{product}");
}

/// Returns noise of `numerator` / `denominator` steps.
fn steps(numerator: u64, denominator: u64) -> Sigma {
    Sigma::new(numerator, denominator).unwrap()
}

fn accepts(multiplier: u64, invitation: &Invitation) -> bool {
    let policy = Policy {
        min_noise_multiplier: NoiseMultiplier::from_units(multiplier),
        ..policy()
    };
    policy.accepts_noise(invitation)
}

/// 1/15² + 1/20² = 1/12², exactly.
#[test]
fn update_and_bit_together_cost_what_the_policy_says_and_not_a_step_more() {
    let with = |update, bit| Invitation {
        noise: Some(update),
        bit: Some(BitRequest { noise: Some(bit) }),
        ..invitation(None)
    };
    let z = 12 << 32;
    let denominator = 1 << 27;
    let part = |multiplier: u64, less: u64| {
        let numerator = (multiplier << 20) * denominator - less;
        steps(numerator, denominator)
    };
    assert!(accepts(z, &with(part(15, 0), part(20, 0))));
    assert!(!accepts(z + 1, &with(part(15, 0), part(20, 0))));
    assert!(!accepts(z, &with(part(15, 1), part(20, 0))));
    assert!(!accepts(z, &with(part(15, 0), part(20, 1))));
    // Neither part alone may cost everything.
    assert!(!accepts(z, &with(part(12, 0), steps(1 << 52, 1))));
    assert!(!accepts(z, &with(steps(1 << 52, 1), part(12, 0))));
    let alone = |less| Invitation {
        noise: Some(part(12, less)),
        ..invitation(None)
    };
    assert!(accepts(z, &alone(0)) && !accepts(z, &alone(1)));
    // A bit without noise costs more than any policy allows, unless it trusts the coordinator.
    let bare = Invitation {
        noise: Some(steps(1 << 52, 1)),
        bit: Some(BitRequest { noise: None }),
        ..invitation(None)
    };
    assert!(!accepts(1, &bare) && accepts(0, &bare));
}

proptest! {
    /// The whole range of the wire against logarithms, where they decide, and a small grid against
    /// the compiler's integers.
    #[test]
    fn no_noise_on_the_wire_gets_around_the_policy(
        multiplier in 1_u64.., spare in 0_u32..64, bits in 4_u32..=24,
        numerators in any::<[u64; 2]>(), denominators in any::<[u64; 2]>(),
        spares in any::<[u8; 4]>(),
    ) {
        let within = |x: u64, limit: u32, spare: u8| {
            (x >> (64 - limit + u32::from(spare) % limit)).max(1)
        };
        let multiplier = (multiplier >> spare).max(1);
        let n = [within(numerators[0], 52, spares[0]), within(numerators[1], 52, spares[1])];
        let d = [within(denominators[0], 48, spares[2]), within(denominators[1], 48, spares[3])];
        let asked = Invitation {
            grid: Grid::new(ClipNorm::new(0.5).unwrap(), bits).unwrap(),
            noise: Some(steps(n[0], d[0])),
            bit: Some(BitRequest { noise: Some(steps(n[1], d[1])) }),
            ..invitation(None)
        };
        let z = multiplier as f64 / 2f64.powi(32);
        let inverse = |i: usize| (d[i] as f64 / n[i] as f64).powi(2);
        let inverse = inverse(0) + inverse(1);
        let steps = z * 2f64.powi(bits as i32);
        let rounding = if multiplier >= (1 << 44) >> bits { 0.0 } else { 9.0 };
        let cost = (steps.powi(2) + rounding) * inverse;
        if (cost - 1.0).abs() > 1e-9 {
            prop_assert_eq!(accepts(multiplier, &asked), cost < 1.0, "{}", cost);
        }
    }

    /// Near equality: numbers that fit the compiler's integers.
    #[test]
    fn the_decision_is_exact(
        multiplier in 1_u64..1 << 12, n in any::<[u16; 2]>(), d in 1_u64..16, bit_d in 1_u64..16,
    ) {
        let n = n.map(|n| u64::from(n).max(1));
        let asked = Invitation {
            grid: Grid::new(ClipNorm::new(0.5).unwrap(), 4).unwrap(),
            noise: Some(steps(n[0], d)),
            bit: Some(BitRequest { noise: Some(steps(n[1], bit_d)) }),
            ..invitation(None)
        };
        // z = multiplier / 2^8.
        let wide = |x: u64| u128::from(x).pow(2);
        let each = wide(d) * wide(n[1]) + wide(bit_d) * wide(n[0]);
        let left = wide(multiplier) * wide(16) * each;
        let right = wide(1 << 8) * wide(n[0]) * wide(n[1]);
        // On a grid of 4 bits, up to 16 steps of noise: all are few.
        let rounding = 9 * wide(1 << 8) * each;
        prop_assert_eq!(accepts(multiplier << 24, &asked), left + rounding <= right);
    }

    /// Where the device accepts, the multiplier that an accountant counts is never below the
    /// smallest one by more than a millionth. Where it is not below, the device accepts.
    #[test]
    fn the_policy_bounds_what_the_accountant_counts(
        bits in BITS, exponent in -12.0..12.0_f64, share in 0.9..1.1_f64, has_bit in any::<bool>(),
    ) {
        // Around the smallest accepted noise, from far below a grid step to far above.
        let z = exponent.exp2() / f64::from(1_u32 << bits.min(12));
        let policy = NoiseMultiplier::new(z).unwrap();
        let scale = f64::from(1_u32 << bits);
        let least = ((z * scale).powi(2) + 9.0).sqrt();
        let asked_steps = [least * share, least, z * scale, z * scale * share];
        for total in asked_steps {
            // Update and bit with the same noise, or the update alone.
            let each = if has_bit { total * f64::sqrt(2.0) } else { total };
            let denominator = 1_u64 << 20;
            let numerator = (each * denominator as f64).ceil() as u64;
            let sigma = steps(numerator, denominator);
            let asked = Invitation {
                grid: Grid::new(ClipNorm::new(0.5).unwrap(), bits).unwrap(),
                noise: Some(sigma),
                bit: has_bit.then_some(BitRequest { noise: Some(sigma) }),
                ..invitation(None)
            };
            let of_each = numerator as f64 / denominator as f64;
            let joint = if has_bit { of_each / f64::sqrt(2.0) } else { of_each };
            let mechanism = Mechanism::DiscreteGaussian {
                noise_multiplier: privacy::NoiseMultiplier::new(joint / scale).unwrap(),
                grid_bits: bits as u8,
            };
            let counted = mechanism.continuous_multiplier();
            let is_accepted = accepts(policy.units(), &asked);
            // A unit of 2^-32 more is the policy rounded up.
            let z = policy.units() as f64 / 2f64.powi(32);
            prop_assert!(!is_accepted || counted >= z * (1.0 - GRID_LOSS) * (1.0 - 1e-12));
            prop_assert!(is_accepted || counted <= z * (1.0 + 1e-12));
        }
    }
}

/// Two grids of 4 bits on which a coordinator could ask for less noise than the policy requires,
/// and the noise they need. Sufficiently fine grids need no more.
#[test]
fn a_coarse_grid_takes_more_noise() {
    let on_grid = |bits, steps| Invitation {
        grid: Grid::new(ClipNorm::new(0.5).unwrap(), bits).unwrap(),
        noise: Some(steps),
        ..invitation(None)
    };
    let (one, fifth) = (1_u64 << 32, (1_u64 << 32) / 5);
    // 16² + 9 = 265, and √265 = 16.2788.
    assert!(!accepts(one, &on_grid(4, steps(16, 1))));
    assert!(!accepts(one, &on_grid(4, steps(162_787, 10_000))));
    assert!(accepts(one, &on_grid(4, steps(162_789, 10_000))));
    // 3.2² + 9 = 19.24, and √19.24 = 4.38634.
    assert!(!accepts(fifth, &on_grid(4, steps(32, 10))));
    assert!(!accepts(fifth, &on_grid(4, steps(4_386, 1_000))));
    assert!(accepts(fifth, &on_grid(4, steps(4_387, 1_000))));
    // Noise of three steps counts as none.
    assert!(!accepts(1, &on_grid(4, steps(3, 1))));
    // With 4,096 steps or more, the noise is z itself.
    for bits in 12..=24 {
        assert!(accepts(one, &on_grid(bits, steps(1 << bits, 1))));
        assert!(!accepts(one + 1, &on_grid(bits, steps(1 << bits, 1))));
    }
    assert!(!accepts(one, &on_grid(11, steps(1 << 11, 1))));
    let z = |steps: u64| steps << (32 - 11);
    assert!(accepts(z(4_096), &on_grid(11, steps(4_096, 1))));
    assert!(!accepts(z(4_095), &on_grid(11, steps(4_095, 1))));
}

/// A session declines a grid too coarse for its noise, with [`Decline::Noise`].
#[test]
fn a_grid_too_coarse_for_its_noise_is_declined() {
    for (bits, steps_of_noise, declined) in [
        (4, steps(16, 1), Some(Decline::Noise)),
        (4, steps(163, 10), None),
        (20, steps(1 << 20, 1), None),
    ] {
        let policy = Policy {
            min_noise_multiplier: NoiseMultiplier::from_units(1 << 32),
            ..policy()
        };
        let mut other = coordinator(1, Some(steps_of_noise));
        let clip_norm = other.invitation.grid.clip_norm();
        other.invitation.grid = Grid::new(clip_norm, bits).unwrap();
        run(&mut board(policy, ledger(), 0), &mut other, |bytes| bytes);
        assert_eq!(other.declined, declined, "{bits} bits");
    }
}

/// A session declines a bit with too little noise, with [`Decline::Noise`].
#[test]
fn a_bit_under_too_little_noise_is_declined() {
    // 1/1.5² + 1/2² = 1/1.2².
    for (tenths, declined) in [(12, None), (13, Some(Decline::Noise))] {
        let policy = Policy {
            min_noise_multiplier: NoiseMultiplier::from_units((tenths << 32) / 10),
            ..policy()
        };
        let mut other = coordinator(1, None);
        other.invitation = adaptive(noise(), 0.5);
        run(&mut board(policy, ledger(), 0), &mut other, |bytes| bytes);
        assert_eq!(other.declined, declined);
    }
}
