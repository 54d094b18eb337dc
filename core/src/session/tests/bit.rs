//! The bit of adaptive clipping, from the invitation to the line, and what a device accepts for it.

use super::*;
use crate::{
    params::NoiseMultiplier,
    session::{
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

/// An invitation with a bit, under noise of both or of neither, at this clip norm.
pub(super) fn adaptive(noise: Option<Sigma>, clip_norm: f32) -> Invitation {
    Invitation {
        grid: Grid::new(ClipNorm::new(clip_norm).unwrap(), 20).unwrap(),
        bit: Some(BitRequest {
            noise: noise.and(bit_noise()),
        }),
        ..invitation(noise)
    }
}

/// A whole round; the policy asks for nothing.
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
    // Who does not ask for it gets none.
    assert_eq!(answered(1, invitation(noise())).bit, None);
}

/// Without an update the device sends noise, and nobody can tell from the bit either.
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

/// 4,000 devices' bits and first coordinates without an update: noise alone. A mean square of 4,000
/// squares of std 1 has itself a std of 0.022, a mean product one of 0.016; six of them are
/// exceeded with a probability below 2e-9 each, and the streams are fixed.
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
        round.stage = Stage::Covering(Covering::new(Source::Zeros, &asked));
        while !round.is_covered() {
            round.cover(device, 1);
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

/// Noise of this many steps in `denominator`.
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
    /// The whole range of the wire against logarithms, where these decide; and on a small grid
    /// against integers of the compiler.
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
        let part = |i: usize| (z * d[i] as f64 * 2f64.powi(bits as i32) / n[i] as f64).powi(2);
        let cost = part(0) + part(1);
        if (cost - 1.0).abs() > 1e-9 {
            prop_assert_eq!(accepts(multiplier, &asked), cost < 1.0, "{}", cost);
        }
    }

    /// Around equality: numbers that fit the compiler's integers.
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
        let left = wide(multiplier) * wide(16) * (wide(d) * wide(n[1]) + wide(bit_d) * wide(n[0]));
        let right = wide(1 << 8) * wide(n[0]) * wide(n[1]);
        prop_assert_eq!(accepts(multiplier << 24, &asked), left <= right);
    }
}

/// A coordinator that asks for a bit under too little noise is declined by name.
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
