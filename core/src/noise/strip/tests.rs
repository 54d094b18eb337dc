//! The strips have their weights, even if a word hits a window or the unit beyond the table.

extern crate std;
use std::vec;
use std::vec::Vec;

use rand_core::Rng;

use super::super::STRIPS;
use super::super::tests::statistics::{Script, assert_frequency, assert_law, stream};
use super::*;

/// A table so coarse that about every sixth word hits a window.
static COARSE: Strips<10> = Strips::new(80);

/// exp(-k²/128).
fn weight(k: u32) -> f64 {
    (-f64::from(k * k) / 128.0).exp()
}

/// All sure units of a table, and all units of its windows.
fn totals<const BITS: u32>(strips: &Strips<BITS>) -> (u32, u32) {
    (0..STRIP_COUNT).fold((0, 0), |(sure, windows), k| {
        let (lower, width) = strips.bounds(k);
        (sure + lower, windows + width)
    })
}

/// Words that make `exp_minus_one` true: K = 3.
const SUCCESS: [u32; 2] = [0, u32::MAX];

#[test]
fn bounds_enclose_the_weights_and_are_close() {
    let units = f64::from(STRIPS.bounds(0).0);
    for k in 0..STRIP_COUNT {
        let (lower, width) = STRIPS.bounds(k);
        let upper = lower + width;
        let exact = units * weight(k);
        // 1e-7 for the error of the float.
        assert!(
            f64::from(lower) <= exact + 1e-7 && exact <= f64::from(upper) + 1e-7,
            "strip {k}"
        );
        assert!(width <= 12, "strip {k} has a window of {width}");
    }
}

#[test]
fn pieces_fill_the_range_of_the_word_with_little_left() {
    let (sure, windows) = totals(&STRIPS);
    assert_eq!(STRIPS.end[LENGTH - 2], sure);
    let left = (1_u32 << 31) - sure - windows - 1;
    assert!(
        windows < 500 && left < 1 << 17,
        "windows {windows}, left {left}"
    );
}

#[test]
fn search_finds_the_strip_at_both_ends_of_its_units() {
    let mut start = 0;
    for (k, end) in STRIPS.end.iter().copied().enumerate().take(LENGTH - 1) {
        if start < end {
            assert_eq!((STRIPS.search(start), STRIPS.search(end - 1)), (k, k));
        }
        start = end;
    }
    assert_eq!(
        (STRIPS.search(start), STRIPS.search((1 << 31) - 1)),
        (LENGTH - 1, LENGTH - 1)
    );
}

#[test]
fn rare_pieces_are_one_unit_beyond_then_the_windows_then_nothing() {
    let mut owned = [0; LENGTH];
    let mut offset = 1;
    while let Some(Rare::Window(k)) = STRIPS.rare_piece(offset) {
        owned[k as usize] += 1;
        offset += 1;
    }
    assert!(matches!(STRIPS.rare_piece(0), Some(Rare::Beyond)));
    assert!(STRIPS.rare_piece(offset).is_none() && STRIPS.rare_piece(u32::MAX).is_none());
    for (k, owned) in owned.iter().enumerate() {
        assert_eq!(*owned, STRIPS.bounds(k as u32).1);
    }
}

/// The law over k, "nothing" included, of a table that often hits its windows: its lower and upper
/// bounds differ by a seventh of the range. False alarm 4e-8.
#[test]
fn coarse_table_has_the_exact_weights() {
    let (_, windows) = totals(&COARSE);
    assert!(windows > 1024 / 8, "only {windows} units in windows");
    let draws = 1_000_000;
    let mut rng = stream(300);
    let mut counts = vec![0; LENGTH + 1];
    for _ in 0..draws {
        let word = rng.next_u32() >> 22;
        let k = COARSE.draw(word, &mut rng).map_or(LENGTH, |k| k as usize);
        counts[k] += 1;
    }
    let mut law: Vec<f64> = (0..STRIP_COUNT)
        .map(|k| 80.0 / 1024.0 * weight(k))
        .collect();
    law.push(1.0 - law.iter().sum::<f64>());
    assert_law(&counts, &law);
}

/// Each window of the real table separately. F_k is known to 1e-7 here. False alarm 1e-6 in all:
/// ten windows with the false alarm of one comparison.
#[test]
fn windows_have_their_probability() {
    let mut rng = stream(301);
    for k in [1, 2, 3, 5, 8, 13, 21, 34, 50, 63] {
        let (lower, width) = STRIPS.bounds(k);
        let share = (f64::from(STRIPS.end[0]) * weight(k) - f64::from(lower)) / f64::from(width);
        let draws = 50_000;
        let hits = (0..draws)
            .filter(|_| STRIPS.inside_window(k, &mut rng))
            .count();
        assert_frequency(hits as u64, draws, share);
    }
}

#[test]
fn strip_zero_has_no_window() {
    assert_eq!(STRIPS.bounds(0), (STRIPS.end[0], 0));
    assert!(!STRIPS.inside_window(0, &mut Script::new([])));
}

/// The unit beyond the table: 31 coins 2/e, one coin 1/e, a strip j and j coins 1/e.
#[test]
fn unit_beyond_the_table_leads_to_strips_from_64_on() {
    let beyond = STRIPS.end[LENGTH - 2];
    let passed = [vec![0; 31], SUCCESS.to_vec()].concat();
    let (strip_0, strip_2) = (0, STRIPS.end[1] << 1);

    let draw = |words: Vec<u32>| {
        let mut rng = Script::new(words);
        (STRIPS.draw(beyond, &mut rng), rng.left())
    };
    assert_eq!(draw(vec![u32::MAX, u32::MAX]), (None, 0));
    assert_eq!(draw([&passed[..], &[strip_0]].concat()), (Some(64), 0));
    let two = [&passed[..], &[strip_2], &SUCCESS, &SUCCESS].concat();
    assert_eq!(draw(two), (Some(66), 0));
    let one_of_two = [&passed[..], &[strip_2], &SUCCESS, &[u32::MAX]].concat();
    assert_eq!(draw(one_of_two), (None, 0));
    // Twice beyond: 64 + (64 + 0), the outer step accepted with e^-64.
    let twice = [
        &passed[..],
        &[beyond << 1],
        &passed,
        &[strip_0],
        &SUCCESS.repeat(64),
    ]
    .concat();
    assert_eq!(draw(twice), (Some(128), 0));
    // A word on no piece also ends the pass there.
    assert_eq!(draw([&passed[..], &[u32::MAX]].concat()), (None, 0));
}

#[test]
fn strips_from_the_limit_on_are_not_drawn() {
    let beyond = STRIPS.end[LENGTH - 2];
    let passed = [vec![0; 31], SUCCESS.to_vec()].concat();
    let again = [&passed[..], &[beyond << 1]].concat();
    let coins: usize = (0..16).map(|step| 64 * step).sum();
    let words = [&again.repeat(15)[..], &passed, &[0], &SUCCESS.repeat(coins)].concat();
    let mut rng = Script::new(words);
    assert_eq!((STRIPS.draw(beyond, &mut rng), rng.left()), (None, 0));
}

/// The coarse table has 10 coins 2/e and 22 coins 1/e for the same share e^-32 of the whole, and
/// takes 10 bits of a word for strip j.
#[test]
fn unit_beyond_scales_with_the_table() {
    let beyond = COARSE.end[LENGTH - 2];
    let words = [vec![0; 10], SUCCESS.repeat(22), vec![1 << 22]].concat();
    let mut rng = Script::new(words);
    assert_eq!((COARSE.draw(beyond, &mut rng), rng.left()), (Some(64), 0));
}

/// Words that make θ true, K = 9, and false, K = 10.
const THETA: [u32; 1] = [u32::MAX];
const NO_THETA: [u32; 3] = [0, 0, u32::MAX];

/// θ of strip 30 has coins y = 59/128 and starts with K = 9: coins 1/9 come next.
#[test]
fn theta_is_what_the_series_lacks_from_its_ninth_term_on() {
    let draw = |words: &[u32]| {
        let mut rng = Script::new(words.iter().copied());
        (theta(30, &mut rng), rng.left())
    };
    assert_eq!(draw(&[59 << 25]), (true, 0));
    let (below, ninth) = ((59 << 25) - 1, u32::MAX / 9 - 1);
    assert_eq!(draw(&[below, ninth + 2]), (true, 0));
    assert_eq!(draw(&[below, ninth, u32::MAX]), (false, 0));
}

/// The four terms of `F_k`, see [`Strips::inside_window`], at the first and the last choice of
/// each: those with θ are too rare for counting.
#[test]
fn choice_in_a_window_selects_its_term() {
    let k = 30;
    let ((lower, width), (lower_before, width_before)) = (STRIPS.bounds(k), STRIPS.bounds(k - 1));
    let (sum, next_term) = partial_sum(k);
    let product = |number: u128, units: u32| number * u128::from(units);
    let whole = product(SERIES_DENOMINATOR, width);
    let mut edge = product(sum, lower_before) - product(SERIES_DENOMINATOR, lower);
    let mut edges = vec![edge];
    for (number, units) in [
        (next_term, lower_before),
        (sum, width_before),
        (next_term, width_before),
    ] {
        edge += product(number, units);
        edges.push(edge);
    }
    let bits = u128::BITS - (whole - 1).leading_zeros();
    // The choice, then the throws. One strip down, the first choice is "yes", the last "no".
    let draw = |choice: u128, then: &[u32]| {
        let words = [
            choice >> (bits - 32),
            choice >> (bits - 64),
            choice << (96 - bits),
        ];
        let words = words.map(|word| word as u32);
        let mut rng = Script::new([&words[..], then].concat());
        (STRIPS.inside_window(k, &mut rng), rng.left())
    };
    let [sure, rest, sure_before, rest_before] = edges[..] else {
        panic!("four terms");
    };
    assert!((65..=96).contains(&bits) && rest_before < whole);
    let (yes, no): (&[u32], &[u32]) = (&[0; 3], &[]);
    assert_eq!((draw(0, no), draw(sure - 1, no)), ((true, 0), (true, 0)));
    for choice in [sure, rest - 1] {
        assert_eq!(draw(choice, &THETA), (true, 0));
        assert_eq!(draw(choice, &NO_THETA), (false, 0));
    }
    for choice in [rest, sure_before - 1] {
        assert_eq!(draw(choice, yes), (true, 0));
    }
    for choice in [sure_before, rest_before - 1] {
        assert_eq!(draw(choice, &[&THETA[..], yes].concat()), (true, 0));
        assert_eq!(draw(choice, &NO_THETA), (false, 0));
    }
    assert_eq!(
        (draw(rest_before, no), draw(whole - 1, no)),
        ((false, 0), (false, 0))
    );
}
