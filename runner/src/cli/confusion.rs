//! The confusion matrix of classes on a terminal or, with many classes, the most frequent wrong
//! predictions.

use super::text::aligned;
use smolfed_engine::evaluation::assessment::ClassFigures;

/// Most classes whose whole matrix fits a terminal.
const MAX_CLASSES: usize = 12;
/// Wrong predictions that are listed where it does not.
const MAX_CONFUSIONS: usize = 10;

/// The confusion matrix or, with many classes, what was confused most often. Classes without a name
/// have their numbers.
pub(super) fn text(figures: &ClassFigures, names: &[String]) -> String {
    let name = |class: usize| names.get(class).cloned().unwrap_or(class.to_string());
    let count = figures.confusion.len();
    if count <= MAX_CLASSES {
        let head = ["class".to_owned()].into_iter();
        let head = head.chain((0..count).map(name));
        let mut rows = vec![head.collect()];
        rows.extend(figures.confusion.iter().enumerate().map(|(class, row)| {
            let cells = row.iter().map(u64::to_string);
            [name(class)].into_iter().chain(cells).collect()
        }));
        return format!("\npredicted as:\n{}", aligned(&rows));
    }
    let confusions = figures.confusions();
    if confusions.is_empty() {
        return String::new();
    }
    let head = ["class", "predicted as", "rows"]
        .map(str::to_owned)
        .to_vec();
    let most = confusions.iter().take(MAX_CONFUSIONS);
    let rows = most
        .map(|(class, predicted, count)| vec![name(*class), name(*predicted), count.to_string()]);
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    format!("\nconfused most often:\n{}", aligned(&rows))
}
