//! The outlier of the training rows: the number that is farthest from the mean of its feature, in
//! standard deviations, for the message about diverged training.

use super::{Federation, Kind};
use crate::reads::Read;

/// A number of a training row that is far from the mean of its feature.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlier {
    /// The feature's name, or its number from 0.
    pub feature: String,
    /// Its distance from the mean, in standard deviations.
    pub deviations: f32,
}

impl Federation {
    /// Returns the number of a training row that is farthest from the mean of its feature, if
    /// features are standardised. It is private: only for the owner of the rows.
    #[must_use]
    pub fn outlier(&self) -> Option<Outlier> {
        let Kind::Stored(stored) = &self.0 else {
            return None;
        };
        // With a scale computed from rows, the numbers are such distances.
        if !stored.reads.contains(&Read::Scale) {
            return None;
        }
        let devices = 0..self.device_count();
        let rows = devices.flat_map(|device| stored.devices.rows(device));
        let numbers = rows.flat_map(|row| stored.data.row(*row as usize).enumerate());
        let (at, number) = numbers.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
        Some(Outlier {
            feature: stored.data.feature_name(at),
            deviations: number.abs(),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::DataFolders;
    use crate::federation::Federation;

    /// Returns 100 rows of two numbers. The last has 1e6 in its second column.
    fn federation(settings: &str) -> Federation {
        let rows = (0..100).map(|row| match row {
            99 => "0,1e6,1\n".to_owned(),
            _ => format!("{},{},{}\n", row % 7, row % 5, row % 2),
        });
        let folder = tempfile::tempdir().unwrap();
        let table = String::from("length,width,y\n") + &rows.collect::<String>();
        std::fs::write(folder.path().join("a.csv"), table).unwrap();
        let folders = DataFolders::new(vec![folder.path().to_path_buf()]);
        let config = format!(
            "source = \"csv\"\npath = \"a.csv\"\nlabel = \"y\"\npartition = \"iid\"\n\
             devices = 4\ntest = 0\n{settings}"
        );
        Federation::new(&toml::from_str(&config).unwrap(), &folders, 1).unwrap()
    }

    #[test]
    fn the_farthest_number_is_found_in_units_of_deviations() {
        let outlier = federation("").outlier().unwrap();
        assert_eq!(outlier.feature, "width");
        // One of n numbers is at most √(n − 1) deviations away.
        assert!((9.9..9.96).contains(&outlier.deviations), "{outlier:?}");
        let shortened = federation("norm_bound = 2.0").outlier().unwrap();
        assert!(shortened.deviations <= 2.0);
        assert_eq!(federation("scale = \"none\"").outlier(), None);
    }
}
