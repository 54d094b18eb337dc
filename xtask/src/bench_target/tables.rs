//! Measurements of the bench (flash, instructions, cycles) as Markdown tables.

use std::collections::BTreeMap;
use std::fmt::{Error, Write as _};

use crate::board::Board;
use crate::elf::Sizes;
use crate::federation::SMALL_RAM;

/// Variants of the bench build.
const VARIANTS: [&str; 3] = [
    "opt-level 3",
    "opt-level \"s\"",
    "opt-level 3, with `micromath`",
];

/// An operation measured by the bench.
struct Operation {
    title: &'static str,
    /// Outputs of the bench to add.
    counts: &'static [&'static str],
    /// Outputs to subtract.
    less: &'static [&'static str],
    /// Number of repetitions in the bench.
    repeats: u32,
}

impl Operation {
    /// Returns its value from the measurements under these names.
    fn of(&self, measured: impl Fn(&str) -> Option<u64>) -> Option<u64> {
        let sum = |names: &[&str]| names.iter().map(|name| measured(name)).sum::<Option<u64>>();
        let difference = sum(self.counts)?.checked_sub(sum(self.less)?)?;
        Some(difference.div_ceil(self.repeats.into()))
    }
}

const fn once(counts: &'static [&'static str], title: &'static str) -> Operation {
    difference(counts, &[], title)
}

const fn difference(
    counts: &'static [&'static str],
    less: &'static [&'static str],
    title: &'static str,
) -> Operation {
    Operation {
        title,
        counts,
        less,
        repeats: 1,
    }
}

const OPERATIONS: [Operation; 27] = [
    once(&["gradient"], "loss and gradient of one sample, 64 × 10"),
    once(&["integer-gradient"], "gradient, 64 × 10, integer"),
    difference(
        &["integer-gradient-of-two"],
        &["integer-gradient"],
        "the same, of a further sample of a batch",
    ),
    difference(
        &["step-3"],
        &["step-2"],
        "one step on one sample, with projection",
    ),
    difference(
        &["integer-step-3"],
        &["integer-step-2"],
        "the same, integer",
    ),
    difference(
        &["integer-step-3", "integer-free-2"],
        &["integer-step-2", "integer-free-3"],
        "of which the projection, integer",
    ),
    once(&["clip-650"], "clip 650"),
    once(&["quantise-650"], "quantise 650"),
    once(&["smooth-256"], "smooth 256"),
    once(&["smooth-1024"], "smooth 1,024"),
    Operation {
        repeats: 1_000,
        ..once(&["noise-1000"], "discrete Gaussian, a sample")
    },
    once(&["frame"], "tag and frame of an update's chunk"),
    once(
        &["mask-650"],
        "masks of 650 entries of 19 bits, for one helper",
    ),
    once(&["mask-tag"], "tag of an invitation and 650 parameters"),
    once(&["window"], "features of a window of 6 × 64 samples"),
    once(&["window-integer"], "the same, integer"),
    once(
        &["gradients"],
        "gradients of 28 × 28 pixels in cells of 4 × 4",
    ),
    once(&["gradients-integer"], "the same, integer"),
    once(&["round-training"], "a round: training, 50 samples, E = 5"),
    once(&["integer-round-training"], "the same, integer"),
    once(
        &["round-sending"],
        "a round: quantise, noise, frames of 650",
    ),
    once(&["piece"], "longest piece of a round, a sample at a time"),
    once(&["integer-piece"], "the same, integer"),
    once(
        &["network-small-gradient"],
        "network of 355: loss and gradient of one sample",
    ),
    once(
        &["network-small-training"],
        "the same: training of a round, 50 samples, E = 5",
    ),
    once(
        &["network-gradient"],
        "network of 1,023: loss and gradient of one sample",
    ),
    once(
        &["network-training"],
        "the same: training of a round, 50 samples, E = 5",
    ),
];

/// Bytes of three vectors of 650 parameters: global model, local model, update.
const VECTORS: u64 = 3 * 650 * 4;

/// Returns the bytes for samples: windows of 64 values with their classes, the number of windows
/// seen, and the order of up to 64 samples in an epoch.
const fn samples(board: &Board) -> u64 {
    board.windows as u64 * (64 * 4 + 2) + 4 + 64 * 4
}

/// Instructions by operation.
pub type Counts = BTreeMap<String, u64>;

/// The client with a network.
pub struct NetworkSizes {
    /// Its flash, including code for host facilities.
    pub flash: u64,
    /// Flash of the client with the softmax model.
    pub client_flash: u64,
    pub stack: u64,
}

/// A client that computes image features of a camera.
pub struct CameraSizes {
    /// Name, as in [`CAMERAS`].
    pub program: &'static str,
    /// Its flash, including code for host facilities.
    pub flash: u64,
    pub stack: u64,
}

/// Camera programs and their descriptions.
pub const CAMERAS: [(&str, &str); 3] = [
    ("backbone", "frozen backbone, integer"),
    ("gradients-integer", "gradients, integer"),
    ("gradients", "gradients, `f32`"),
];

/// The measurements on a board.
pub struct Measurement {
    pub board: Board,
    pub sizes: Sizes,
    /// Flash of a round without session, ledger and record.
    pub round: u64,
    pub stack: u64,
    pub network: NetworkSizes,
    pub cameras: Vec<CameraSizes>,
    /// Counts in the order of [`VARIANTS`].
    pub counts: [Counts; 3],
    /// Modelled cycles of the first two variants.
    pub cycles: [Counts; 2],
}

/// Returns all tables.
pub fn tables(boards: &[Measurement]) -> Result<String, Error> {
    let mut page = String::new();
    sizes(boards, &mut page)?;
    networks(boards, &mut page)?;
    cameras(boards, &mut page)?;
    for (variant, title) in VARIANTS.into_iter().enumerate() {
        operations(
            boards,
            &format!("Instructions, {title}"),
            &mut page,
            |measured| measured.counts.get(variant),
        )?;
        if variant < boards.first().map_or(0, |measured| measured.cycles.len()) {
            operations(
                boards,
                &format!("Modelled cycles, {title}"),
                &mut page,
                |measured| measured.cycles.get(variant),
            )?;
        }
    }
    times(boards, &mut page)?;
    Ok(page)
}

fn sizes(boards: &[Measurement], page: &mut String) -> Result<(), Error> {
    writeln!(page, "\nThe client, 64 × 10, opt-level \"s\", bytes:\n")?;
    writeln!(
        page,
        "| target | processor | flash | a round alone: flash | RAM: variables | RAM: stack \
         | RAM beside vectors and samples |"
    )?;
    writeln!(page, "| --- | --- | ---: | ---: | ---: | ---: | ---: |")?;
    for measured in boards {
        let Board {
            target, processor, ..
        } = measured.board;
        let flash = grouped(measured.sizes.flash());
        let round = grouped(measured.round);
        let variables = measured.sizes.data + measured.sizes.bss;
        let beside = variables + measured.stack - VECTORS - samples(&measured.board);
        let (variables, stack) = (grouped(variables), grouped(measured.stack));
        let beside = grouped(beside);
        writeln!(
            page,
            "| `{target}` | {processor} | {flash} | {round} | {variables} | {stack} | {beside} |"
        )?;
    }
    Ok(())
}

/// Returns the bytes for samples of a network: windows with their classes, and their order.
const fn windows(board: &Board, features: u64) -> u64 {
    board.windows as u64 * (features * 4 + 2) + 4 + 64 * 4
}

fn networks(boards: &[Measurement], page: &mut String) -> Result<(), Error> {
    writeln!(
        page,
        "\nThe client with a network on windows of six channels, opt-level \"s\", in bytes. \
         Both programs use a file on a\n\
         host as flash:\n"
    )?;
    writeln!(
        page,
        "| processor | parameters | flash | with 64 × 10 instead | three vectors \
         | activations of a sample | scratch | RAM: stack | beside vectors, scratch and windows |"
    )?;
    writeln!(page, "| --- |{}", " ---: |".repeat(8))?;
    for measured in boards {
        let NetworkSizes {
            flash,
            client_flash,
            stack,
        } = measured.network;
        let [_, small, _] = &measured.counts;
        let (name, features) = match small.contains_key("network-parameters") {
            true => ("network", 300),
            false => ("network-small", 150),
        };
        let of = |what| small.get(&format!("{name}-{what}")).copied().unwrap_or(0);
        let (vectors, scratch) = (of("vectors"), of("scratch"));
        let used = vectors + scratch + windows(&measured.board, features);
        let variables = measured.sizes.data + measured.sizes.bss;
        let beside = (variables + stack).saturating_sub(used);
        let numbers = [
            of("parameters"),
            flash,
            client_flash,
            vectors,
            of("activations"),
            scratch,
            stack,
            beside,
        ];
        let numbers = numbers.map(grouped).join(" | ");
        writeln!(page, "| {} | {numbers} |", measured.board.processor)?;
    }
    Ok(())
}

/// Features and parameters of a program on this board. `firmware-example/build.rs` has the cells.
const fn camera_features(board: &Board, program: &str) -> [u64; 2] {
    let features = match (program.as_bytes(), board.ram.length < SMALL_RAM) {
        (b"backbone", _) => 64,
        (_, true) => 32,
        (_, false) => 128,
    };
    [features, (features + 1) * 10]
}

fn cameras(boards: &[Measurement], page: &mut String) -> Result<(), Error> {
    writeln!(
        page,
        "\nThe client on features of a camera's images of 8 × 8 pixels, ten classes, opt-level \
         \"s\", in bytes. All programs use\n\
         a file on a host as flash:\n"
    )?;
    writeln!(
        page,
        "| processor | features of an image | features | parameters | flash | RAM: stack |"
    )?;
    writeln!(page, "| --- | --- |{}", " ---: |".repeat(4))?;
    for measured in boards {
        for sizes in &measured.cameras {
            let title = CAMERAS.iter().find(|(name, _)| *name == sizes.program);
            let title = title.map_or(sizes.program, |(_, title)| title);
            let [features, parameters] = camera_features(&measured.board, sizes.program);
            let numbers = [features, parameters, sizes.flash, sizes.stack];
            let numbers = numbers.map(grouped).join(" | ");
            let processor = measured.board.processor;
            writeln!(page, "| {processor} | {title} | {numbers} |")?;
        }
    }
    Ok(())
}

fn operations(
    boards: &[Measurement],
    title: &str,
    page: &mut String,
    counts: impl Fn(&Measurement) -> Option<&Counts>,
) -> Result<(), Error> {
    writeln!(page, "\n{title}:\n")?;
    let processors = boards.iter().map(|measured| measured.board.processor);
    let heads: Vec<&str> = processors.collect();
    writeln!(page, "| what | {} |", heads.join(" | "))?;
    writeln!(page, "| --- |{}", " ---: |".repeat(boards.len()))?;
    for operation in OPERATIONS {
        let numbers = boards.iter().map(|measured| {
            let counts = counts(measured)?;
            operation.of(|name| counts.get(name).copied())
        });
        let numbers: Vec<Option<u64>> = numbers.collect();
        if numbers.iter().all(Option::is_none) {
            continue;
        }
        write!(page, "| {} |", operation.title)?;
        for number in numbers {
            write!(page, " {} |", number.map_or("–".to_owned(), grouped))?;
        }
        writeln!(page)?;
    }
    Ok(())
}

fn times(boards: &[Measurement], page: &mut String) -> Result<(), Error> {
    writeln!(
        page,
        "\nEstimated time of a round's work, opt-level 3, from modelled cycles at a usual clock. \
         The"
    )?;
    writeln!(
        page,
        "training of networks is not traced. The estimate assumes the cycles per instruction of \
         their gradient:\n"
    )?;
    writeln!(
        page,
        "| processor | clock, MHz | 64 × 10, ms | the same, integer, ms \
         | network of 355: training, ms | network of 1,023: training, ms |"
    )?;
    writeln!(page, "| --- | ---: | ---: | ---: | ---: | ---: |")?;
    for measured in boards {
        let Board {
            processor,
            clock_mhz,
            ..
        } = measured.board;
        let ([fast, ..], [cycles, _]) = (&measured.counts, &measured.cycles);
        let ms = |cycles: Option<u64>| {
            let ms = cycles.map(|cycles| cycles as f64 / f64::from(clock_mhz) / 1_000.0);
            ms.map_or("–".to_owned(), |ms| format!("{ms:.0}"))
        };
        let round = |training| {
            let names = [training, "round-sending"];
            ms(names.iter().map(|name| cycles.get(*name)).sum())
        };
        let network = |name| {
            let gradient = format!("{name}-gradient");
            let (training, counted) =
                (fast.get(&format!("{name}-training"))?, fast.get(&gradient)?);
            let product = u128::from(*training) * u128::from(*cycles.get(&gradient)?);
            u64::try_from(product / u128::from(*counted)).ok()
        };
        let columns = [
            round("round-training"),
            round("integer-round-training"),
            ms(network("network-small")),
            ms(network("network")),
        ];
        writeln!(
            page,
            "| {processor} | {clock_mhz} | {} |",
            columns.join(" | ")
        )?;
    }
    writeln!(page)
}

/// Formats a number as 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
