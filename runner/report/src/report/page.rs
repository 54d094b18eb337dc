//! The pieces of the page that every section uses: frame, figures, tables, the badge.

use std::fmt::Write;

use super::html::escape;
use super::input::Audience;
use super::plot::{Plot, STYLE};
use smolfed_release::provenance::Provenance;

/// Style of the page; the palette comes from the plots.
const PAGE_STYLE: &str = include_str!("page.css");

/// What marks a figure that reads private data without noise.
pub(super) const BADGE: &str = "<span class=\"badge\">simulation only</span>";

/// The badge of a figure of an older version, which does not say whose data it reads.
const UNKNOWN: &str = "<span class=\"badge\">provenance unknown</span>";

/// The badge of a figure; none where the figure may be published.
pub(super) const fn badge(origin: Provenance) -> &'static str {
    match origin {
        Provenance::Public | Provenance::Released => "",
        Provenance::SimulationOnly => BADGE,
        Provenance::Unknown => UNKNOWN,
    }
}

/// The meaning of [`BADGE`].
pub(super) const BADGE_MEANING: &str = "Figures with this mark read private data without noise. \
    A simulation can show them; a federation of real devices has none of them, and they must not \
    be published about one.";

/// The meaning of a page for the public.
const PUBLIC_MEANING: &str = "This page is for the public: it has only what the privacy statement \
    covers. Figures on private samples and the sizes of secret cohorts are left out.";

/// A whole page with this title around its content. The page asks for nothing from elsewhere and
/// tells the browser to refuse what would.
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

/// The foot of the page: the meaning of the badge, or of its absence.
pub(super) fn footer(audience: Audience) -> String {
    let (badge, meaning) = match audience {
        Audience::Owner => (BADGE, BADGE_MEANING),
        Audience::Public => ("", PUBLIC_MEANING),
    };
    format!("<footer><p>{badge} {}</p></footer>\n", escape(meaning))
}

/// A section with its heading.
pub(super) fn section(heading: &str, content: &str) -> String {
    format!(
        "<section>\n<h2>{}</h2>\n{content}</section>\n",
        escape(heading)
    )
}

/// Plain text with `names` between backticks set as code.
pub(super) fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(index, part)| match index % 2 {
        0 => escape(part).into_owned(),
        _ => format!("<code>{}</code>", escape(part)),
    });
    parts.collect()
}

/// A paragraph of plain text.
pub(super) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", prose(text))
}

/// Figures side by side where there is room.
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
    /// Where its numbers come from.
    pub(super) origin: Provenance,
    /// Whether its caption goes beside it where there is room.
    pub(super) caption_beside: bool,
}

impl Figure<'_> {
    /// The figure around its content, which is markup.
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

    /// The figure around a plot, which takes its title and description from the figure.
    pub(super) fn with_plot(&self, plot: Plot) -> String {
        let plot = Plot {
            title: self.title.to_owned(),
            description: self.caption.to_owned(),
            ..plot
        };
        self.around(&plot.to_svg())
    }
}

/// How a column of a table is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Words, from the left.
    Words,
    /// Words with `names` between backticks, from the left.
    Prose,
    /// Numbers, to the right.
    Number,
}

/// A table of plain text. The first column names the rows.
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

/// Something to open on demand.
pub(super) fn details(summary: &str, content: &str) -> String {
    format!(
        "<details>\n<summary>{}</summary>\n{content}</details>\n",
        escape(summary)
    )
}

/// Text as it is typed.
pub(super) fn preformatted(text: &str) -> String {
    format!("<pre><code>{}</code></pre>\n", escape(text.trim_end()))
}
