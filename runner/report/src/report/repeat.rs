//! The report's section "How to repeat this run": the commands, and the complete configuration.

use super::input::ReportInput;
use super::page::{details, paragraph, preformatted, section};

/// Returns the section.
pub(super) fn section_of(input: &ReportInput) -> String {
    let content = match input.config.run_seed() {
        Some(_) => commands(input),
        None => paragraph(
            "This run cannot be repeated: a private selection chose it, and its randomness came \
             from the operating system and was not kept. smolfed report . writes this page again.",
        ),
    };
    let config = match input.config.to_toml() {
        Ok(text) => preformatted(&text),
        Err(error) => paragraph(&error.to_string()),
    };
    let content = content + &details("The complete configuration, config.toml", &config);
    section("How to repeat this run", &content)
}

/// Returns the commands for a run with a known seed.
fn commands(input: &ReportInput) -> String {
    let next_seed = input.config.seed.wrapping_add(1);
    let other_noise = format!(
        "smolfed run config.toml --set seed={next_seed}{:pad$}# other cohorts, other noise\n",
        "",
        pad = 7usize.saturating_sub(next_seed.to_string().len())
    );
    // A run with other noise would state the cost of a selection without having been selected.
    let is_selected = input.config.privacy.selection.is_some();
    let other_noise = if is_selected { "" } else { &other_noise };
    let is_portable = input.config.simulation.arithmetic.caution().is_none();
    let exactly = match is_portable {
        true => "# this run, bit for bit",
        false => "# this run, bit for bit where vectors have the same width",
    };
    let commands = format!(
        "smolfed run config.toml                   {exactly}\n\
         {other_noise}\
         smolfed report .                          # this page again"
    );
    let explanation = format!(
        "In the directory of this page, with smolfed {}. The result does not depend on {}the \
         number of threads. Anyone who knows the seed can subtract the noise: a known seed is for \
         simulations only.",
        env!("CARGO_PKG_VERSION"),
        if is_portable { "the machine or " } else { "" }
    );
    paragraph(&explanation) + &preformatted(&commands)
}
