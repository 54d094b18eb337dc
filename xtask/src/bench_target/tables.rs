//! The measurements as Markdown tables.

use std::collections::BTreeMap;
use std::fmt::{Error, Write as _};

use crate::board::Board;
use crate::elf::Sizes;

/// How the bench was built.
const VARIANTS: [&str; 3] = [
    "opt-level 3",
    "opt-level \"s\"",
    "opt-level 3, with `micromath`",
];

/// An operation that the bench measures.
struct Operation {
    /// As the bench prints it.
    name: &'static str,
    title: &'static str,
    /// How often the bench repeats it.
    repeats: u32,
}

const fn once(name: &'static str, title: &'static str) -> Operation {
    Operation {
        name,
        title,
        repeats: 1,
    }
}

const OPERATIONS: [Operation; 21] = [
    once("gradient", "loss and gradient of one sample, 64 × 10"),
    once("integer-gradient", "gradient, 64 × 10, integer"),
    once(
        "integer-gradient-added",
        "the same, of a further sample of a batch",
    ),
    once("step", "one step on one sample, with projection"),
    once("integer-step", "the same, integer"),
    once("integer-projection", "of it the projection, integer"),
    once("clip-650", "clip 650"),
    once("quantise-650", "quantise 650"),
    once("smooth-256", "smooth 256"),
    once("smooth-1024", "smooth 1,024"),
    Operation {
        name: "noise-1000",
        title: "discrete Gaussian, a sample",
        repeats: 1_000,
    },
    once("frame", "tag and frame of an update's chunk"),
    once(
        "mask-650",
        "masks of 650 entries of 19 bits, for one helper",
    ),
    once("mask-tag", "tag of an invitation and 650 parameters"),
    once("round-training", "a round: training, 50 samples, E = 5"),
    once("integer-round-training", "the same, integer"),
    once("round-sending", "a round: quantise, noise, frames of 650"),
    once(
        "network-small-gradient",
        "network of 355: loss and gradient of one sample",
    ),
    once(
        "network-small-training",
        "the same: training of a round, 50 samples, E = 5",
    ),
    once(
        "network-gradient",
        "network of 1,023: loss and gradient of one sample",
    ),
    once(
        "network-training",
        "the same: training of a round, 50 samples, E = 5",
    ),
];

/// Bytes of three vectors of 650 parameters: global model, local model, update.
const VECTORS: u64 = 3 * 650 * 4;

/// Bytes for samples: windows of 64 values with their classes, the number of windows seen, and the
/// order of up to 64 samples in an epoch.
const fn samples(board: &Board) -> u64 {
    board.windows as u64 * (64 * 4 + 2) + 4 + 64 * 4
}

/// Instructions by operation.
pub type Counts = BTreeMap<String, u64>;

/// The client with a network.
pub struct NetworkSizes {
    /// Its flash, with what it borrows from a host.
    pub flash: u64,
    /// The same of the client with the softmax model.
    pub client_flash: u64,
    pub stack: u64,
}

/// The measurements on a board.
pub struct Measurement {
    pub board: Board,
    pub sizes: Sizes,
    /// Flash of a round without session, ledger and record.
    pub round: u64,
    pub stack: u64,
    pub network: NetworkSizes,
    /// In the order of [`VARIANTS`].
    pub counts: [Counts; 3],
}

/// All tables.
pub fn tables(boards: &[Measurement]) -> Result<String, Error> {
    let mut page = String::new();
    sizes(boards, &mut page)?;
    networks(boards, &mut page)?;
    for (variant, title) in VARIANTS.into_iter().enumerate() {
        instructions(boards, variant, title, &mut page)?;
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

/// Bytes for samples of a network: windows with their classes, and their order.
const fn windows(board: &Board, features: u64) -> u64 {
    board.windows as u64 * (features * 4 + 2) + 4 + 64 * 4
}

fn networks(boards: &[Measurement], page: &mut String) -> Result<(), Error> {
    writeln!(
        page,
        "\nThe client with a network on windows of six channels, opt-level \"s\", bytes; both \
         programs borrow their flash from a host:\n"
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

fn instructions(
    boards: &[Measurement],
    variant: usize,
    title: &str,
    page: &mut String,
) -> Result<(), Error> {
    writeln!(page, "\nInstructions, {title}:\n")?;
    let processors = boards.iter().map(|measured| measured.board.processor);
    let heads: Vec<&str> = processors.collect();
    writeln!(page, "| what | {} |", heads.join(" | "))?;
    writeln!(page, "| --- |{}", " ---: |".repeat(boards.len()))?;
    for Operation {
        name,
        title,
        repeats,
    } in OPERATIONS
    {
        write!(page, "| {title} |")?;
        for measured in boards {
            let counts = measured.counts.get(variant);
            match counts.and_then(|counts| counts.get(name)) {
                Some(count) => write!(page, " {} |", grouped(count.div_ceil(repeats.into())))?,
                None => write!(page, " – |")?,
            }
        }
        writeln!(page)?;
    }
    Ok(())
}

fn times(boards: &[Measurement], page: &mut String) -> Result<(), Error> {
    writeln!(
        page,
        "\nEstimated time of a round's work, opt-level 3, at a clock and with cycles an instruction"
    )?;
    writeln!(page, "that are assumed, not measured:\n")?;
    writeln!(
        page,
        "| processor | clock, MHz | cycles an instruction | 64 × 10, ms \
         | network of 355: training, ms | network of 1,023: training, ms |"
    )?;
    writeln!(page, "| --- | ---: | ---: | ---: | ---: | ---: |")?;
    for measured in boards {
        let Board {
            processor,
            clock_mhz,
            cycles_per_instruction,
            ..
        } = measured.board;
        let names = ["round-training", "round-sending"];
        let [fast, ..] = &measured.counts;
        let ms = |instructions: u64| {
            instructions as f64 * cycles_per_instruction / f64::from(clock_mhz) / 1_000.0
        };
        let softmax = ms(names.iter().filter_map(|name| fast.get(*name)).sum());
        let network = |name| match fast.get(name) {
            Some(count) => format!("{:.0}", ms(*count)),
            None => "–".to_owned(),
        };
        let (small, large) = (
            network("network-small-training"),
            network("network-training"),
        );
        writeln!(
            page,
            "| {processor} | {clock_mhz} | {cycles_per_instruction} | {softmax:.0} | {small} \
             | {large} |"
        )?;
    }
    writeln!(page)
}

/// 1,234,567
fn grouped(number: u64) -> String {
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
