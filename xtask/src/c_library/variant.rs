//! The variants of the library for C, with other features than the main one, and the platforms for
//! which each is built.

/// A library with other features than the main one.
pub struct Variant {
    /// Its file.
    pub file: &'static str,
    /// Its feature besides the default ones, or `None` without any.
    pub feature: Option<&'static str>,
    tested: Tested,
}

/// Where tests use a library.
enum Tested {
    CortexM4f,
    Host,
    Nowhere,
}

/// All variants.
pub const VARIANTS: [Variant; 4] = [
    Variant {
        file: "libsmolfed_central.a",
        feature: None,
        tested: Tested::CortexM4f,
    },
    Variant {
        file: "libsmolfed_delivery.a",
        feature: Some("delivery"),
        tested: Tested::CortexM4f,
    },
    Variant {
        file: "libsmolfed_questions.a",
        feature: Some("questions"),
        tested: Tested::Host,
    },
    Variant {
        file: "libsmolfed_sleep.a",
        feature: Some("sleep"),
        tested: Tested::Nowhere,
    },
];

/// A platform for which libraries are built.
pub struct Platform<'a> {
    pub target: &'a str,
    /// Whether it is this machine.
    pub is_host: bool,
    /// Whether to build only the variants that tests use. The archives then lack the others.
    pub is_tested: bool,
}

impl Platform<'_> {
    /// Returns whether to build a variant.
    pub fn has(&self, variant: &Variant) -> bool {
        let is_used = match variant.tested {
            Tested::CortexM4f => self.target == "thumbv7em-none-eabihf",
            Tested::Host => self.is_host,
            Tested::Nowhere => false,
        };
        is_used || !self.is_tested
    }
}
