//! The measured counts of `docs/targets.md` at opt-level 3, of the processors of [boards].
//!
//! `cargo xtask bench-target` writes that page. A test compares them.
//!
//! [boards]: super::boards

/// A processor.
#[derive(Debug)]
pub struct Processor {
    /// Its column in the tables.
    pub name: &'static str,
    /// Measured instructions.
    pub instructions: Counts,
    /// Modelled cycles.
    pub cycles: Counts,
}

/// Counts of the parts of a round.
#[derive(Debug)]
pub struct Counts {
    /// Training in `f32`.
    pub f32: Training,
    /// Training in integers.
    pub integer: Training,
    /// Smoothing of 256 numbers.
    pub smooth_256: u32,
    /// Quantising of 650 numbers.
    pub quantise_650: u32,
    /// One sample of the discrete Gaussian.
    pub gaussian: u32,
    /// Tag and frame of a full chunk of an update.
    pub frame: u32,
    /// The masks of 650 entries of 19 bits, for one helper.
    pub masks_650: u32,
    /// The tag of an invitation and 650 parameters, for one helper.
    pub tag_650: u32,
}

/// Counts of training a model of 64 × 10.
#[derive(Debug)]
pub struct Training {
    /// Loss and gradient of one sample.
    pub gradient: u32,
    /// A step on one sample, with projection.
    pub step: u32,
    /// A round of 50 samples, five epochs and batches of ten.
    pub round: u32,
}

/// The Cortex-M0.
pub const CORTEX_M0: Processor = Processor {
    name: "Cortex-M0",
    instructions: Counts {
        f32: Training {
            gradient: 249_175,
            step: 898_442,
            round: 95_499_000,
        },
        integer: Training {
            gradient: 7_851,
            step: 42_746,
            round: 2_922_497,
        },
        smooth_256: 154_243,
        quantise_650: 85_490,
        gaussian: 903,
        frame: 39_556,
        masks_650: 100_182,
        tag_650: 152_033,
    },
    cycles: Counts {
        f32: Training {
            gradient: 401_209,
            step: 1_475_801,
            round: 153_407_864,
        },
        integer: Training {
            gradient: 12_334,
            step: 61_724,
            round: 4_467_228,
        },
        smooth_256: 247_599,
        quantise_650: 131_010,
        gaussian: 1_454,
        frame: 61_638,
        masks_650: 159_347,
        tag_650: 244_410,
    },
};

/// The Cortex-M4F.
pub const CORTEX_M4F: Processor = Processor {
    name: "Cortex-M4F",
    instructions: Counts {
        f32: Training {
            gradient: 4_902,
            step: 18_718,
            round: 1_924_815,
        },
        integer: Training {
            gradient: 5_267,
            step: 30_192,
            round: 1_945_568,
        },
        smooth_256: 2_763,
        quantise_650: 22_313,
        gaussian: 389,
        frame: 18_665,
        masks_650: 54_676,
        tag_650: 23_953,
    },
    cycles: Counts {
        f32: Training {
            gradient: 6_916,
            step: 26_458,
            round: 2_749_478,
        },
        integer: Training {
            gradient: 9_272,
            step: 43_616,
            round: 3_205_810,
        },
        smooth_256: 3_985,
        quantise_650: 28_877,
        gaussian: 577,
        frame: 27_885,
        masks_650: 77_406,
        tag_650: 38_318,
    },
};

/// The Cortex-M33.
pub const CORTEX_M33: Processor = Processor {
    name: "Cortex-M33",
    instructions: Counts {
        f32: Training {
            gradient: 4_260,
            step: 14_855,
            round: 1_543_708,
        },
        integer: Training {
            gradient: 5_851,
            step: 32_063,
            round: 2_116_600,
        },
        smooth_256: 2_229,
        quantise_650: 22_543,
        gaussian: 386,
        frame: 18_625,
        masks_650: 55_735,
        tag_650: 21_854,
    },
    cycles: Counts {
        f32: Training {
            gradient: 7_628,
            step: 30_522,
            round: 3_161_783,
        },
        integer: Training {
            gradient: 10_330,
            step: 47_165,
            round: 3_517_895,
        },
        smooth_256: 4_553,
        quantise_650: 29_298,
        gaussian: 582,
        frame: 27_969,
        masks_650: 79_736,
        tag_650: 35_158,
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a table of `docs/targets.md`: their names, and the column of a processor.
    fn table(title: &str, processor: &str) -> Vec<(String, String)> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/targets.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (_, page) = page.split_once(&format!("\n{title}:\n\n")).unwrap();
        let lines = page.lines().take_while(|line| line.starts_with('|'));
        let rows: Vec<Vec<String>> = lines
            .map(|line| {
                let cells = line.trim_matches('|').split('|');
                cells.map(|cell| cell.trim().replace(',', "")).collect()
            })
            .collect();
        let column = rows[0].iter().position(|name| name == processor).unwrap();
        rows.into_iter()
            .map(|row| (row[0].clone(), row[column].clone()))
            .collect()
    }

    /// The count in the row with this name, or `below` it.
    fn count(table: &[(String, String)], row: &str, below: usize) -> u32 {
        let row = row.replace(',', "");
        let at = table.iter().position(|(name, _)| *name == row);
        let (_, count) = &table[at.unwrap_or_else(|| panic!("no row {row}")) + below];
        count.parse().unwrap()
    }

    #[test]
    fn counts_are_those_of_the_page_of_targets() {
        for processor in [&CORTEX_M0, &CORTEX_M4F, &CORTEX_M33] {
            for (title, counts) in [
                ("Instructions, opt-level 3", &processor.instructions),
                ("Modelled cycles, opt-level 3", &processor.cycles),
            ] {
                let table = table(title, processor.name);
                let of = |row, below| count(&table, row, below);
                let gradient = "loss and gradient of one sample, 64 × 10";
                let batch = "the same, of a further sample of a batch";
                let step = "one step on one sample, with projection";
                let round = "a round: training, 50 samples, E = 5";
                let Counts { f32, integer, .. } = counts;
                let found = [f32.gradient, f32.step, f32.round];
                assert_eq!(found, [of(gradient, 0), of(step, 0), of(round, 0)]);
                let found = [integer.gradient, integer.step, integer.round];
                assert_eq!(found, [of(batch, 0), of(step, 1), of(round, 1)]);
                for (found, row) in [
                    (counts.smooth_256, "smooth 256"),
                    (counts.quantise_650, "quantise 650"),
                    (counts.gaussian, "discrete Gaussian, a sample"),
                    (counts.frame, "tag and frame of an update's chunk"),
                    (
                        counts.masks_650,
                        "masks of 650 entries of 19 bits, for one helper",
                    ),
                    (counts.tag_650, "tag of an invitation and 650 parameters"),
                ] {
                    assert_eq!(found, of(row, 0), "{title}, {}: {row}", processor.name);
                }
            }
        }
    }
}
