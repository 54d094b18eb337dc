//! A table of classes by classes (confusion matrix), with limits on its classes and on listed
//! confusions. Each cell is tinted by its share of the row.

use std::fmt::Write;

use super::html::escape;
use smolfed_release::number::fixed;

/// Maximum number of classes for the whole table.
pub(super) const MAX_CLASSES: usize = 26;
/// Maximum number of listed confusions for more classes.
pub(super) const MAX_CONFUSIONS: usize = 12;
/// Tint of a cell with its whole row, in percent.
const FULL_TINT: f64 = 60.0;

/// A cell of the table.
#[derive(Clone, Debug)]
pub(super) struct ClassCell {
    /// Its share of the row, from 0 to 1. A cell with share 0 is a dot.
    pub(super) share: f64,
    /// Plain text.
    pub(super) text: String,
    /// Details, shown on hovering.
    pub(super) title: Option<String>,
}

/// Returns the table: one row per class, one column per predicted class.
pub(super) fn class_table(rows: &[Vec<ClassCell>], name: impl Fn(usize) -> String) -> String {
    let mut text =
        "<div class=\"scroll\"><table class=\"confusion\">\n<thead><tr><td></td>".to_owned();
    for class in 0..rows.len() {
        let _ = write!(text, "<th scope=\"col\">{}</th>", escape(&name(class)));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for (class, row) in rows.iter().enumerate() {
        let _ = write!(text, "<tr><th scope=\"row\">{}</th>", escape(&name(class)));
        for cell in row {
            let title = cell.title.as_ref();
            let title = title.map_or(String::new(), |title| {
                format!(" title=\"{}\"", escape(title))
            });
            let _ = match cell.share > 0.0 {
                false => write!(text, "<td{title}>·</td>"),
                true => write!(
                    text,
                    "<td style=\"background:color-mix(in srgb,var(--blue) {}%,transparent)\"\
                     {title}>{}</td>",
                    fixed(FULL_TINT * cell.share, 1),
                    escape(&cell.text)
                ),
            };
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody></table></div>\n");
    text
}
