//! Positive numbers in the environment of the build, such as `SMOLFED_FEATURES`, as constants.

/// Parses a positive number. Anything else does not compile.
#[expect(clippy::panic, reason = "while compiling only")]
pub const fn number(text: &str) -> usize {
    match usize::from_str_radix(text, 10) {
        Ok(number) if number > 0 => number,
        _ => panic!("SMOLFED_FEATURES, SMOLFED_CLASSES and others are positive numbers"),
    }
}
