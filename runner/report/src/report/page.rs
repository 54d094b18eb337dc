//! The shared parts of all sections of the report: frame, figures, tables, the badge of private
//! figures, and the foot.

use std::fmt::Write;

use super::html::escape;
use super::input::Audience;
use super::plot::{Plot, STYLE};
use smolfed_release::provenance::Provenance;

/// Style of the page. The palette comes from the plots.
const PAGE_STYLE: &str = include_str!("page.css");

/// Badge of figures from private data without noise.
pub(super) const BADGE: &str = "<span class=\"badge\">simulation only</span>";

/// Badge of figures of older versions, which do not record their origin.
const UNKNOWN: &str = "<span class=\"badge\">provenance unknown</span>";

/// Returns the badge of a figure, which is empty if the figure may be published.
pub(super) const fn badge(origin: Provenance) -> &'static str {
    match origin {
        Provenance::Public | Provenance::Released => "",
        Provenance::SimulationOnly => BADGE,
        Provenance::Unknown => UNKNOWN,
    }
}

/// The meaning of [`BADGE`].
pub(super) const BADGE_MEANING: &str = "Figures with this mark read private data without noise. A \
    simulation can show them. A federation of real devices does not have them, and they must not \
    be published about one.";

/// The meaning of a page for the public.
const PUBLIC_MEANING: &str = "This page is for the public: it shows only figures covered by the \
    privacy statement. Figures on private samples and the sizes of secret cohorts are left out.";

/// Returns a whole page with this title around its content. The page fetches nothing, and tells the
/// browser to refuse anything external.
pub(super) fn document(title: &str, content: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; \
         style-src &#39;unsafe-inline&#39;; img-src data:\">\n\
         <title>{} – smolfed report</title>\n<style>\n{STYLE}{PAGE_STYLE}</style>\n</head>\n\
         <body>\n<main>\n{content}</main>\n</body>\n</html>\n",
        escape(title)
    )
}

/// Returns the foot of the page, which explains the badge or its absence.
pub(super) fn footer(audience: Audience) -> String {
    let (badge, meaning) = match audience {
        Audience::Owner => (BADGE, BADGE_MEANING),
        Audience::Public => ("", PUBLIC_MEANING),
    };
    format!("<footer><p>{badge} {}</p></footer>\n", escape(meaning))
}

/// Returns a section with its heading.
pub(super) fn section(heading: &str, content: &str) -> String {
    format!(
        "<section>\n<h2>{}</h2>\n{content}</section>\n",
        escape(heading)
    )
}

/// Returns plain text with `names` between backticks set as code.
pub(super) fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(index, part)| match index % 2 {
        0 => escape(part).into_owned(),
        _ => format!("<code>{}</code>", escape(part)),
    });
    parts.collect()
}

/// Returns a paragraph of plain text.
pub(super) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", prose(text))
}

/// Returns figures side by side if there is room.
pub(super) fn grid(figures: &[String]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    format!("<div class=\"grid\">\n{}</div>\n", figures.concat())
}

/// A figure with its title and caption.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure<'a> {
    pub(super) title: &'a str,
    /// Plain text.
    pub(super) caption: &'a str,
    /// Origin of its numbers.
    pub(super) origin: Provenance,
    /// Whether its caption goes next to it if there is room.
    pub(super) caption_beside: bool,
}

impl Figure<'_> {
    /// Returns the figure around its content, which is markup.
    pub(super) fn around(&self, content: &str) -> String {
        format!(
            "<figure class=\"card{}\">\n<div class=\"head\"><h3>{}</h3>{}</div>\n{content}\n\
             <figcaption class=\"caption\">{}</figcaption>\n</figure>\n",
            if self.caption_beside { " beside" } else { "" },
            escape(self.title),
            badge(self.origin),
            escape(self.caption)
        )
    }

    /// Returns the figure around a plot, which takes its title and description from the figure.
    pub(super) fn with_plot(&self, plot: Plot) -> String {
        let plot = Plot {
            title: self.title.to_owned(),
            description: self.caption.to_owned(),
            ..plot
        };
        self.around(&plot.to_svg())
    }
}

/// Format of a table's column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Words, left-aligned.
    Words,
    /// Words with `names` between backticks, left-aligned.
    Prose,
    /// Numbers, right-aligned.
    Number,
}

/// Returns a table of plain text. The first column names the rows.
pub(super) fn table(class: &str, head: &[(&str, Column)], rows: &[Vec<String>]) -> String {
    let class_of = |column: Column| match column {
        Column::Words | Column::Prose => "",
        Column::Number => " class=\"number\"",
    };
    let mut text = format!("<div class=\"scroll\"><table class=\"{class}\">\n<thead><tr>");
    for (name, column) in head {
        let _ = write!(
            text,
            "<th scope=\"col\"{}>{}</th>",
            class_of(*column),
            escape(name)
        );
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        text.push_str("<tr>");
        for (index, (cell, (_, column))) in row.iter().zip(head).enumerate() {
            let (tag, scope) = match index {
                0 => ("th", " scope=\"row\""),
                _ => ("td", ""),
            };
            let _ = write!(
                text,
                "<{tag}{scope}{}>{}</{tag}>",
                class_of(*column),
                match column {
                    Column::Prose => prose(cell).into(),
                    Column::Words | Column::Number => escape(cell),
                }
            );
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody></table></div>\n");
    text
}

/// Returns details to open on demand.
pub(super) fn details(summary: &str, content: &str) -> String {
    format!(
        "<details>\n<summary>{}</summary>\n{content}</details>\n",
        escape(summary)
    )
}

/// Returns preformatted text.
pub(super) fn preformatted(text: &str) -> String {
    format!("<pre><code>{}</code></pre>\n", escape(text.trim_end()))
}
