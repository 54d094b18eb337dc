//! A page about several runs: their figures, the differences in their configurations, and their
//! curves side by side.

use super::html::escape;
use super::page::{
    BADGE, BADGE_MEANING, Column, Figure, document, grid, paragraph, section, table,
};
use super::plot::{Plot, Scale, Series};
use smolfed_release::provenance::Provenance;

/// Contents of the page. All text is plain.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The names of the runs.
    pub names: Vec<String>,
    /// A table of figures. The first row is its head.
    pub figures: Vec<Vec<String>>,
    /// Notes about its cells.
    pub notes: Vec<String>,
    /// The configuration keys that differ. The first row is the head.
    pub differences: Vec<Vec<String>>,
    /// Curves over rounds.
    pub panels: Vec<Panel>,
    /// The privacy statements of each run, in words.
    pub statements: Vec<(String, Vec<String>)>,
}

/// One figure of all runs over rounds.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// The name of the figure.
    pub title: String,
    /// Its name with its unit.
    pub axis: String,
    /// Its origin.
    pub origin: Provenance,
    /// A curve for each run that has it.
    pub series: Vec<Series>,
}

/// Returns the page, which is self-contained like a report.
#[must_use]
pub fn render(input: &Comparison) -> String {
    let names = input.names.join(", ");
    let header = format!(
        "<header>\n<p class=\"kicker\">smolfed comparison</p>\n<h1>{} runs</h1>\n\
         <p class=\"lead\">{}</p>\n</header>\n",
        input.names.len(),
        escape(&names)
    );
    let notes: String = input.notes.iter().map(|note| paragraph(note)).collect();
    let differences = match input.differences.as_slice() {
        [] | [_] => paragraph("None: these are runs of the same experiment."),
        rows => plain_table("settings", rows),
    };
    let panels: Vec<String> = input.panels.iter().map(figure).collect();
    let statements: String = (input.statements.iter())
        .map(|(name, statements)| {
            let words: String = match statements.as_slice() {
                [] => paragraph("No privacy statement covers all rounds of this run yet."),
                statements => statements.iter().map(|words| paragraph(words)).collect(),
            };
            format!("<h3>{}</h3>\n{words}", escape(name))
        })
        .collect();
    let badge = format!("<p>{BADGE} {}</p>\n", escape(BADGE_MEANING));
    let content = [
        header,
        section(
            "Figures",
            &(plain_table("figures", &input.figures) + &notes),
        ),
        section("Curves", &grid(&panels)),
        section("Differences in the configuration", &differences),
        section("The privacy statements", &statements),
        format!("<footer>{badge}</footer>\n"),
    ];
    document(&format!("Comparison of {names}"), &content.concat())
}

/// Returns a table from rows, the first as its head. Unlike numbers, cells may wrap.
fn plain_table(class: &str, rows: &[Vec<String>]) -> String {
    let Some((head, body)) = rows.split_first() else {
        return String::new();
    };
    let head = head.iter().map(|name| (name.as_str(), Column::Words));
    let head: Vec<(&str, Column)> = head.collect();
    table(class, &head, body)
}

fn figure(panel: &Panel) -> String {
    let figure = Figure {
        title: &panel.title,
        caption: "Over the rounds of each run.",
        origin: panel.origin,
        caption_beside: false,
    };
    figure.with_plot(Plot {
        x_label: "round".to_owned(),
        y_label: panel.axis.clone(),
        x_scale: Scale::Whole,
        series: panel.series.clone(),
        ..Plot::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::markup::assert_well_formed;
    use super::super::plot::Point;
    use super::*;

    #[test]
    fn names_are_escaped_and_the_page_is_whole() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let input = Comparison {
            names: vec!["<b>".to_owned(), "R&D".to_owned()],
            figures: vec![row(["figure", "<b>"]), row(["epsilon", "1 [1]"])],
            notes: vec!["[1] by `pld`".to_owned()],
            differences: vec![row(["key", "<b>"])],
            panels: vec![Panel {
                title: "test.loss".to_owned(),
                origin: Provenance::SimulationOnly,
                series: vec![Series {
                    label: "<b>".to_owned(),
                    points: vec![Point::new(1.0, 2.0), Point::new(2.0, 1.0)],
                    ..Series::default()
                }],
                ..Panel::default()
            }],
            statements: vec![("R&D".to_owned(), Vec::new())],
        };
        let page = render(&input);
        assert_well_formed(&page);
        assert!(!page.contains("<b>") && page.contains("&lt;b&gt;"));
        for words in [
            "<code>pld</code>",
            "None: these",
            "simulation only</span>",
            "No privacy",
        ] {
            assert!(page.contains(words), "{words}");
        }
    }
}
