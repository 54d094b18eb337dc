//! The data sets that smolfed knows by name: a description, the citation and the configuration.

use std::path::{Path, PathBuf};

use super::folders::DataFolders;

/// A data set with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownSet {
    /// Its name, for `smolfed data inspect`.
    pub name: &'static str,
    /// Description of a sample and of the target.
    pub about: &'static str,
    /// The citation.
    pub cite: &'static str,
    /// Path in a folder of data sets. `None` for a set without files.
    pub path: Option<&'static str>,
    /// An initial `[data]` table.
    pub table: &'static str,
}

/// All known sets.
pub const KNOWN_SETS: [KnownSet; 10] = [
    KnownSet {
        name: "digits",
        about: "1,797 handwritten digits, 8 x 8 pixels, 10 classes",
        cite: "Alpaydin, Kaynak 1998, doi:10.24432/C50P49 (CC BY 4.0)",
        path: None,
        table: "source = \"digits\"\ndevices = 100\n",
    },
    KnownSet {
        name: "synthetic",
        about: "any number of devices, generated: linear tasks or sensor windows",
        cite: "docs/data.md",
        path: None,
        table: "source = \"synthetic\"\n",
    },
    KnownSet {
        name: "mnist",
        about: "70,000 handwritten digits, 28 x 28 pixels, 10 classes",
        cite: "LeCun, Bottou, Bengio, Haffner 1998",
        path: Some("mnist"),
        table: "source = \"mnist\"\ndevices = 1000\nsamples_per_device = 50\nvalidation = 10000\n",
    },
    KnownSet {
        name: "femnist",
        about: "6,237 characters of 206 writers, 28 x 28 pixels, 62 classes",
        cite: "Caldas et al. 2018, arXiv:1812.01097; Cohen et al. 2017, arXiv:1702.05373",
        path: Some("femnist"),
        table: "source = \"femnist\"\n",
    },
    KnownSet {
        name: "cifar10",
        about: "7,500 photographs of CIFAR-10, 3 x 32 x 32 pixels, 10 classes",
        cite: "Krizhevsky 2009, \"Learning multiple layers of features from tiny images\"",
        path: Some("cifar10_subset"),
        table: "source = \"cifar10\"\npath = \"cifar10_subset\"\ndevices = 100\n",
    },
    KnownSet {
        name: "shakespeare",
        about: "37 plays by speaking role: the next of 80 characters",
        cite: "McMahan et al. 2017, arXiv:1602.05629, for the task; the plays are public",
        path: Some("shakespeare/shakespeare_lines_by_role.tsv.gz"),
        table: "source = \"text\"\npath = \"shakespeare/shakespeare_lines_by_role.tsv.gz\"\n\
                text_column = \"line\"\ndevice_columns = [\"play\", \"role\"]\nlength = 40\n\
                min_samples = 100\nvalidation = 0.1\n",
    },
    KnownSet {
        name: "watch",
        about: "140 recordings of 10 people's watches, 6 channels at 50 Hz, 7 exercises",
        cite: "Burns et al. 2018, arXiv:1802.01489",
        path: Some("watch/watch_imu_50hz.csv.gz"),
        table: "source = \"csv\"\npath = \"watch/watch_imu_50hz.csv.gz\"\n\
                label = \"exercise\"\ndevice_column = \"subject\"\n\
                series_column = \"series\"\nignore = [\"side\"]\n\
                classes = [\"PEN\", \"ABD\", \"FEL\", \"IR\", \"ER\", \"TRAP\", \"ROW\"]\n\
                window = 100\nevery = 4\n\
                scale = { mean = 0, std = [1, 1, 1, 2, 2, 2] }\n",
    },
    KnownSet {
        name: "wisdm",
        about: "5,418 windows of 36 phones' accelerometers, 43 features, 6 activities",
        cite: "Kwapisz, Weiss, Moore 2010, SIGKDD Explorations 12(2)",
        path: Some("wisdm/wisdm_ar_v1.1_transformed.csv.gz"),
        table: "source = \"csv\"\npath = \"wisdm/wisdm_ar_v1.1_transformed.csv.gz\"\n\
                label = \"class\"\ndevice_column = \"user\"\nignore = [\"UNIQUE_ID\"]\n",
    },
    KnownSet {
        name: "school",
        about: "15,362 pupils of 139 schools, 28 features, exam score (regression)",
        cite: "Goldstein 1991; Argyriou, Evgeniou, Pontil 2008",
        path: Some("school/school.csv.gz"),
        table: "source = \"csv\"\npath = \"school/school.csv.gz\"\nlabel = \"score\"\n\
                device_column = \"school\"\ntask = \"regression\"\n",
    },
    KnownSet {
        name: "parkinsons",
        about: "5,875 voice recordings of 42 patients, 19 features, motor score (regression)",
        cite: "Tsanas, Little, McSharry, Ramig 2010, IEEE TBME 57(4)",
        path: Some("parkinsons_telemonitoring/parkinsons_updrs.csv.gz"),
        table: "source = \"csv\"\npath = \"parkinsons_telemonitoring/parkinsons_updrs.csv.gz\"\n\
                label = \"motor_UPDRS\"\ndevice_column = \"subject#\"\n\
                ignore = [\"total_UPDRS\"]\ntask = \"regression\"\n",
    },
];

impl KnownSet {
    /// Returns the set with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        KNOWN_SETS.iter().find(|set| set.name == name)
    }

    /// Returns whether samples are cut from its rows: from texts, or from recordings.
    pub fn is_cut(&self) -> bool {
        ["text_column", "window"]
            .iter()
            .any(|key| self.table.contains(&format!("\n{key} = ")))
    }

    /// Returns the location of its files, or `None` if no folder has them or it needs none.
    pub fn place(&self, folders: &DataFolders) -> Option<PathBuf> {
        self.path
            .and_then(|path| folders.find(Path::new(path)).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real_data;
    use crate::{DataConfig, Federation};

    #[test]
    fn names_are_distinct_and_found() {
        for (at, set) in KNOWN_SETS.iter().enumerate() {
            assert_eq!(
                KNOWN_SETS.iter().position(|other| other.name == set.name),
                Some(at)
            );
            assert_eq!(KnownSet::named(set.name), Some(set));
        }
        assert_eq!(KnownSet::named("imagenet"), None);
    }

    #[test]
    fn texts_and_recordings_are_cut() {
        let cut = KNOWN_SETS.iter().filter(|set| set.is_cut());
        let names: Vec<&str> = cut.map(|set| set.name).collect();
        assert_eq!(names, ["shakespeare", "watch"]);
    }

    #[test]
    fn every_table_is_a_checked_configuration() {
        for set in &KNOWN_SETS {
            let config = toml::from_str::<DataConfig>(set.table);
            assert!(config.is_ok(), "{}: {config:?}", set.name);
        }
    }

    #[test]
    fn every_set_holds_what_it_says() {
        for (name, rows, devices, features) in [
            ("wisdm", 5418, 36, 43),
            ("school", 15_362, 139, 28),
            ("parkinsons", 5875, 42, 19),
            ("femnist", 6237, 206, 784),
            ("watch", 2369, 10, 150),
        ] {
            let set = KnownSet::named(name).unwrap();
            let Some(folders) = real_data::folders(set.path.unwrap()) else {
                return;
            };
            assert!(set.place(&folders).is_some());
            let config: DataConfig = toml::from_str(set.table).unwrap();
            let federation = Federation::new(&config, &folders, 1).unwrap();
            let train = (0..devices)
                .map(|device| federation.sample_count(device))
                .sum::<usize>();
            assert_eq!(federation.device_count(), devices, "{name}");
            assert_eq!(train + federation.test().len(), rows, "{name}");
            assert_eq!(federation.feature_count(), features, "{name}");
        }
    }
}
