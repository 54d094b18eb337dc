//! The variants of the library for C, with other features than the main one, and the platforms for
//! which each is built.

/// A library with other features than the main one.
pub struct Variant {
    /// Its file.
    pub file: &'static str,
    /// Its feature besides the default ones, or `None` without any.
    pub feature: Option<&'static str>,
    /// The board's target for which tests use it, or `None` for the host.
    tested: Option<&'static str>,
}

const CORTEX_M4F: Option<&str> = Some("thumbv7em-none-eabihf");

/// All variants.
pub const VARIANTS: [Variant; 3] = [
    Variant {
        file: "libsmolfed_central.a",
        feature: None,
        tested: CORTEX_M4F,
    },
    Variant {
        file: "libsmolfed_delivery.a",
        feature: Some("delivery"),
        tested: CORTEX_M4F,
    },
    Variant {
        file: "libsmolfed_questions.a",
        feature: Some("questions"),
        tested: None,
    },
];

/// A platform for which libraries are built.
pub struct Platform<'a> {
    pub target: &'a str,
    /// Whether it is this machine.
    pub is_host: bool,
    /// Whether to build only the variants that tests use.
    pub is_tested: bool,
}

impl Platform<'_> {
    /// Returns whether to build a variant.
    pub fn has(&self, variant: &Variant) -> bool {
        let is_used = match variant.tested {
            None => self.is_host,
            Some(target) => target == self.target,
        };
        is_used || !self.is_tested
    }
}
