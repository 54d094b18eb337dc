//! The layout of a sweep's dimensions: down the table, across it, or in separate tables.

use super::grid::Dimension;

/// The positions of the dimensions, by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Down the table. `None` if the sweep has no dimension.
    pub(super) rows: Option<usize>,
    /// Across the table. `None` for one column.
    pub(super) columns: Option<usize>,
    /// Each combination of these makes a separate table.
    pub(super) rest: Vec<usize>,
    /// The level of the rows used for comparison, seed by seed.
    pub(super) compare_with: Option<usize>,
}

impl Layout {
    /// Places the named dimensions. By default the first is down and the next across.
    ///
    /// # Errors
    /// The key of `[sweep]` and its problem.
    pub(super) fn new(
        dimensions: &[Dimension],
        rows: Option<&str>,
        columns: Option<&str>,
    ) -> Result<Self, (&'static str, String)> {
        let rows = rows
            .map(|name| find(dimensions, "sweep.rows", name))
            .transpose()?;
        let columns = columns
            .map(|name| find(dimensions, "sweep.columns", name))
            .transpose()?;
        if let (Some(row), true) = (rows, rows == columns) {
            let reason = format!("is \"{}\", which is `sweep.rows`", dimensions[row].name);
            return Err(("sweep.columns", reason));
        }
        let free = |taken: Option<usize>| (0..dimensions.len()).find(|index| Some(*index) != taken);
        let rows = rows.or_else(|| free(columns));
        let columns = columns.or_else(|| free(rows));
        let is_placed = |index: &usize| Some(*index) == rows || Some(*index) == columns;
        Ok(Self {
            rows,
            columns,
            rest: (0..dimensions.len())
                .filter(|index| !is_placed(index))
                .collect(),
            compare_with: None,
        })
    }

    /// Sets the level of the rows for comparison, by its label.
    ///
    /// # Errors
    /// The key of `[sweep]` and its problem.
    pub(super) fn comparing_with(
        mut self,
        dimensions: &[Dimension],
        label: Option<&str>,
    ) -> Result<Self, (&'static str, String)> {
        if let Some(label) = label {
            let rows = self.rows.map_or(&[][..], |rows| &dimensions[rows].levels);
            self.compare_with = rows.iter().position(|level| level.label == label);
            if self.compare_with.is_none() {
                let labels: Vec<_> = rows.iter().map(|l| format!("\"{}\"", l.label)).collect();
                let rows = match labels.as_slice() {
                    [] => "the sweep has none".to_owned(),
                    labels => format!("the rows are {}", labels.join(", ")),
                };
                let reason = format!("is \"{label}\", a row, but {rows}");
                return Err(("sweep.compare_with", reason));
            }
        }
        Ok(self)
    }

    /// Returns for each table its levels of all dimensions. The levels of rows and columns are 0.
    pub(super) fn tables(&self, dimensions: &[Dimension]) -> Vec<Vec<usize>> {
        let start = vec![vec![0; dimensions.len()]];
        self.rest.iter().fold(start, |tables, &index| {
            let spread = |levels: &Vec<usize>| {
                let levels = levels.clone();
                let count = dimensions[index].levels.len();
                (0..count).map(move |level| with(&levels, Some(index), level))
            };
            tables.iter().flat_map(spread).collect()
        })
    }
}

/// Returns `levels` with another level of one dimension.
pub(super) fn with(levels: &[usize], dimension: Option<usize>, level: usize) -> Vec<usize> {
    let mut levels = levels.to_vec();
    if let Some(dimension) = dimension {
        levels[dimension] = level;
    }
    levels
}

/// Returns the number of the cell with these levels: the first dimension is the slowest.
pub(super) fn cell_number(dimensions: &[Dimension], levels: &[usize]) -> usize {
    let pairs = dimensions.iter().zip(levels);
    pairs.fold(0, |number, (dimension, level)| {
        number * dimension.levels.len() + level
    })
}

fn find(
    dimensions: &[Dimension],
    key: &'static str,
    name: &str,
) -> Result<usize, (&'static str, String)> {
    let found = dimensions
        .iter()
        .position(|dimension| dimension.name == name);
    found.ok_or_else(|| {
        let names: Vec<_> = dimensions
            .iter()
            .map(|d| format!("\"{}\"", d.name))
            .collect();
        let expected = match names.as_slice() {
            [] => "but the sweep has neither a grid nor variants".to_owned(),
            names => format!("but the sweep has {}", names.join(", ")),
        };
        (key, format!("is \"{name}\", {expected}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::grid::cells;

    fn dimensions() -> Vec<Dimension> {
        let dimension = |key, count: i64| {
            let values: Vec<toml::Value> = (0..count).map(Into::into).collect();
            Dimension::of_key(key, &values)
        };
        vec![dimension("a", 2), dimension("b", 3), dimension("c", 2)]
    }

    #[test]
    fn the_first_dimension_is_down_and_the_next_across() {
        let layout = Layout::new(&dimensions(), None, None).unwrap();
        assert_eq!(
            (layout.rows, layout.columns, layout.rest),
            (Some(0), Some(1), vec![2])
        );
        let layout = Layout::new(&dimensions(), None, Some("a")).unwrap();
        assert_eq!(
            (layout.rows, layout.columns, layout.rest),
            (Some(1), Some(0), vec![2])
        );
        let layout = Layout::new(&dimensions()[..1], None, None).unwrap();
        assert_eq!((layout.rows, layout.columns), (Some(0), None));
        let layout = Layout::new(&[], None, None).unwrap();
        assert_eq!((layout.rows, layout.columns), (None, None));
    }

    #[test]
    fn other_dimensions_make_tables_of_their_own() {
        let dimensions = dimensions();
        let layout = Layout::new(&dimensions, Some("c"), Some("a")).unwrap();
        assert_eq!(
            layout.tables(&dimensions),
            [[0, 0, 0], [0, 1, 0], [0, 2, 0]]
        );
        let none = Layout::new(&[], None, None).unwrap();
        assert_eq!(none.tables(&[]), [Vec::<usize>::new()]);
    }

    #[test]
    fn cells_are_found_by_their_levels() {
        let dimensions = dimensions();
        for (number, cell) in cells(&dimensions).iter().enumerate() {
            assert_eq!(cell_number(&dimensions, &cell.levels), number);
        }
    }

    #[test]
    fn names_that_are_not_there_or_twice_are_refused() {
        let (key, reason) = Layout::new(&dimensions(), Some("d"), None).unwrap_err();
        assert_eq!(
            (key, reason.as_str()),
            (
                "sweep.rows",
                "is \"d\", but the sweep has \"a\", \"b\", \"c\""
            )
        );
        let (key, reason) = Layout::new(&dimensions(), Some("a"), Some("a")).unwrap_err();
        assert_eq!(
            (key, reason.as_str()),
            ("sweep.columns", "is \"a\", which is `sweep.rows`")
        );
        let (_, reason) = Layout::new(&[], Some("d"), None).unwrap_err();
        assert_eq!(
            reason,
            "is \"d\", but the sweep has neither a grid nor variants"
        );
    }
}
