//! An experiment file to start from: commented, runnable, with values that suit the data.
//!
//! The file follows from private rows, and is for whoever holds them. Its comments say what was
//! guessed, what a reader should check, and what no ε covers.

use std::fmt::Write as _;

use smolfed_data::config::{FeaturesTable, SourceConfig, StoredSet};
use smolfed_data::dataset::TaskKind;
use smolfed_data::inspection::{DeviceSizes, Inspection, TargetFacts};
use smolfed_data::proposed_windows::ProposedWindows;
use smolfed_data::reads::List;
use smolfed_data::suggestion::{Suggestion, Use};
use smolfed_data::table::profile::Profile;
use smolfed_data::table::{TableFormat, quoted_key};
use smolfed_engine::suggested::{BATCH_SIZE, FEW_DEVICES, Suggested, norm_bound};

/// Rows of a device where the file names no devices, and bounds for their number.
const ROWS_PER_DEVICE: usize = 10;
const DEALT_DEVICES: std::ops::RangeInclusive<usize> = 2..=1000;

/// About the means that stand for missing values.
const MISSING: &str = "no epsilon covers it: a constant, such as 0, reads no rows";

/// Columns of a line.
const WIDTH: usize = 96;

/// Step sizes where none follows from the length of a sample.
const LEARNING_RATE: f64 = 0.05;
const LEARNING_RATE_OF_TEXTS: f64 = 0.5;

/// A `[data]` table as text, with comments.
#[derive(Clone, Debug)]
pub struct DataSection {
    /// Its lines, without the header `[data]`.
    pub text: String,
    /// What to know of it, one sentence each, for the head of the file.
    pub notes: Vec<String>,
}

impl DataSection {
    /// Of a table of columns, in the file `path` as the experiment names it.
    #[must_use]
    pub fn of_columns(
        format: TableFormat,
        path: &str,
        profile: &Profile,
        suggestion: &Suggestion,
    ) -> Self {
        let mut lines = Lines::default();
        let about = format!("{}, {} rows", profile.layout, profile.rows);
        lines.key("source", quoted(format.name()), &about);
        lines.key("path", quoted(path), "");
        lines.key("label", quoted(&suggestion.label), "the column to predict");
        lines.task(suggestion);
        let notes = lines.devices(profile, suggestion);
        lines.ignored(suggestion);
        if let Some(windows) = ProposedWindows::of(suggestion, profile) {
            lines.windows(&windows);
        }
        if suggestion.has_missing {
            lines.key("missing", quoted("mean"), MISSING);
        }
        lines.scale(suggestion);
        lines.encodings(suggestion);
        Self {
            text: lines.0,
            notes,
        }
    }

    /// Of a table that a program has in memory, which it gives to the run again.
    #[must_use]
    pub fn of_frame(profile: &Profile, suggestion: &Suggestion) -> Self {
        let mut lines = Lines::default();
        let about = format!("given by the program: {} rows", profile.rows);
        lines.key("source", quoted("memory"), &about);
        lines.task(suggestion);
        let notes = match &suggestion.device_column {
            None => {
                lines.devices(profile, suggestion);
                vec![
                    "No column names devices, so rows are dealt to simulated ones: if a column \
                     says whose row it is, give `device`."
                        .into(),
                ]
            }
            Some(column) => {
                let about = format!("each value of `{column}` is a device");
                lines.key("partition", quoted("natural"), &about);
                Vec::new()
            }
        };
        if suggestion.has_missing {
            lines.key("missing", quoted("mean"), MISSING);
        }
        lines.scale(suggestion);
        if suggestion.uses_are_read {
            lines.unconfirmed(List::Categories);
        }
        Self {
            text: lines.0,
            notes,
        }
    }

    /// Of data whose table needs no guesses.
    #[must_use]
    pub fn ready(text: &str) -> Self {
        Self {
            text: text.trim_end().to_owned() + "\n",
            notes: Vec::new(),
        }
    }
}

/// The experiment on `data`, in which `found` was found.
#[must_use]
pub fn experiment(name: &str, command: &str, data: DataSection, found: &Inspection) -> String {
    let DeviceSizes {
        devices, median, ..
    } = found.devices;
    let is_grid = !found.facts.axes.is_empty() && found.suggested.is_none();
    let task = match found.facts.targets {
        TargetFacts::Values { .. } => TaskKind::Regression,
        TargetFacts::Classes(_) => TaskKind::Classification,
    };
    let size = Suggested::new(devices, Some(median as u64), task);
    let mut lines = Lines::head(command, &data.notes, found);
    lines.key("name", quoted(name), "");
    let (method, about) = match is_grid {
        true => (
            "dp-fed-ls",
            "private federated averaging with Laplacian smoothing",
        ),
        false => ("dp-fed", "private federated averaging"),
    };
    lines.key("method", quoted(method), about);
    lines.key("seed", 1, "another seed, another split, cohorts and noise");
    let about = match size.sampling_rate {
        None => "of all devices: with few of them, more rounds add more noise than they teach",
        Some(_) => "more rounds have more noise each, at the same epsilon",
    };
    lines.key("rounds", size.rounds, about);
    lines.table("data");
    lines.0 += &data.text;
    let is_shortened = lines.found(found) || has_norm_bound(found);
    if let Some(features) = &found.suggested {
        lines.features(features);
    }
    let symbols = found.config.symbol_count();
    if let Some(symbols) = symbols {
        lines.layers(symbols);
    }
    lines.cohort(&size, devices);
    lines.table("train");
    let about = format!(
        "passes over a device's samples. In the median it has {median}, and no epsilon covers that"
    );
    lines.key("epochs", size.epochs, &about);
    lines.key("batch_size", BATCH_SIZE, "");
    match (is_shortened || found.suggested.is_some(), symbols) {
        (true, _) => {
            let about = "the step that follows from the largest length of a sample";
            lines.key("learning_rate", quoted("auto"), about);
        }
        (false, Some(_)) => lines.key("learning_rate", LEARNING_RATE_OF_TEXTS, ""),
        (false, None) => lines.key("learning_rate", LEARNING_RATE, ""),
    }
    lines.key("clip", quoted("final"), "once, after the last step");
    if is_grid {
        lines.table("server");
        lines.key("smoothing_factor", "1.0", "of Laplacian smoothing");
    }
    lines.privacy(&size, devices);
    lines.0
}

/// Whether the data's table shortens samples.
fn has_norm_bound(found: &Inspection) -> bool {
    match &found.config.source {
        SourceConfig::Stored(stored) => stored.norm_bound.is_some(),
        SourceConfig::Synthetic(_) => false,
    }
}

/// Lines of TOML.
#[derive(Default)]
struct Lines(String);

impl Lines {
    /// What a reader should know first.
    fn head(command: &str, notes: &[String], found: &Inspection) -> Self {
        let devices = found.devices.devices;
        let is_in_memory = match &found.config.source {
            SourceConfig::Stored(stored) => matches!(stored.set, StoredSet::Memory(_)),
            SourceConfig::Synthetic(_) => false,
        };
        let how = match is_in_memory {
            true => {
                "To train: smolfed.run(EXPERIMENT, data=FEDERATION), with the `Federation` of the \
                 same frame."
            }
            false => {
                "To train: smolfed run FILE. To see the complete file, and what it would cost: \
                 smolfed run FILE --dry-run."
            }
        };
        let mut text = commented(&format!(
            "Written by `{command}`. {how} The keys: docs/experiments.md, docs/data.md."
        ));
        notes.iter().for_each(|note| text += &commented(note));
        if devices < FEW_DEVICES {
            text += &commented(&format!(
                "Only {devices} devices: the noise that hides one of them also hides much of their \
                 common patterns. More devices, a larger epsilon or personal models \
                 (docs/personalisation.md) help."
            ));
        }
        Self(text + "\n")
    }

    /// What is predicted.
    fn task(&mut self, suggestion: &Suggestion) {
        let task = match suggestion.task {
            TaskKind::Classification => "classification",
            TaskKind::Regression => "regression",
        };
        self.key("task", quoted(task), &suggestion.task_reason);
        if let Some(classes) = &suggestion.classes {
            self.key("classes", list(classes), "read from the rows");
            self.unconfirmed(List::Classes);
        }
    }

    fn table(&mut self, name: &str) {
        self.0 += &format!("\n[{name}]\n");
    }

    /// Keys that follow from samples whose table needs no guesses. Returns whether samples are
    /// shortened.
    fn found(&mut self, found: &Inspection) -> bool {
        let SourceConfig::Stored(stored) = &found.config.source else {
            return false;
        };
        // The table of columns, in a file or in memory, has its keys already.
        if matches!(
            stored.set,
            StoredSet::Table(_) | StoredSet::Text(_) | StoredSet::Memory(_)
        ) {
            return false;
        }
        if let TargetFacts::Classes(classes) = &found.facts.targets
            && stored.set.reads_classes()
        {
            let names: Vec<&str> = classes.iter().map(|size| size.class.as_str()).collect();
            let is_number = |(at, name): (usize, &&str)| *name == at.to_string();
            let value = match names.iter().enumerate().all(is_number) {
                true => names.len().to_string(),
                false => list(&names),
            };
            self.key("classes", value, "those that occur in the rows");
            self.unconfirmed(List::Classes);
        }
        let has_no_unit = found.facts.maximum.is_none() && found.facts.axes.is_empty();
        if has_no_unit {
            let about = "of the rows: no epsilon covers them (docs/data.md)";
            self.key("scale", quoted("standardise-features"), about);
            self.norm_bound(found.facts.feature_count);
        }
        if matches!(found.facts.targets, TargetFacts::Values { .. }) {
            let about = "so that the model begins at the mean; no epsilon covers it, either";
            self.key("target_scale", quoted("standardise"), about);
        }
        if let Some(maximum) = found.facts.maximum.filter(|_| found.suggested.is_none()) {
            self.key(
                "scale",
                quoted("unit"),
                &format!("x / {maximum:?}, which reads no rows"),
            );
        }
        has_no_unit
    }

    /// Fixed features in the place of pixels.
    fn features(&mut self, features: &FeaturesTable) {
        self.0 += "\n# A fixed function of each image: more accurate than pixels, and it costs no \
                   privacy.\n# docs/features.md\n[features]\n";
        // Names and numbers have a form in TOML.
        self.0 += &toml::to_string(features).unwrap_or_default();
    }

    /// A network for texts of so many symbols.
    fn layers(&mut self, symbols: u16) {
        let layers = "\n[[model.layers]]\ntype = ";
        self.0 += &format!("{layers}\"embedding\"\nvocabulary = {symbols}\nwidth = 8\n");
        self.0 += &format!("{layers}\"lstm\"\nhidden = 64\n{layers}\"last\"\n");
    }

    fn cohort(&mut self, size: &Suggested, devices: u32) {
        self.table("cohort");
        let Some(rate) = size.sampling_rate else {
            return self.key("sampling", quoted("full"), "all devices in every round");
        };
        let about = "each device independently, at random";
        self.key("sampling", quoted("poisson"), about);
        let cohort = rate * f64::from(devices);
        let about = format!("about {cohort:.0} of {devices} devices in a round");
        self.key("sampling_rate", rate, &about);
    }

    fn privacy(&mut self, size: &Suggested, devices: u32) {
        self.table("privacy");
        let about = "for all rounds together; smaller is more private";
        self.key("epsilon", "8.0", about);
        let delta = libm::pow(f64::from(devices), -1.1);
        let about = format!("{delta:.1e}, below 1 / {devices}");
        self.key("delta", quoted("1/N^1.1"), &about);
        match size.clip_norm {
            Some(clip_norm) => {
                let about = "the bound on an update: fixed, as noise would lead an adaptive one of \
                             few devices astray";
                self.key("clip_norm", clip_norm, about);
            }
            None => {
                let about = "the bound on an update follows the median, and is covered by epsilon";
                self.key("clip_norm", quoted("adaptive"), about);
            }
        }
    }

    /// A list of the rows, which no ε covers until the user confirms that it is public.
    fn unconfirmed(&mut self, list: List) {
        let about = match list {
            List::Classes => {
                "no epsilon covers a list that was read from rows: set true if all of its values \
                 were public before, or replace the list and remove this line"
            }
            List::Categories => {
                "no epsilon covers uses of columns that were read from rows, such as `ignore` and \
                 `categories`: set true if all of them were public before, or replace them and \
                 remove this line"
            }
        };
        self.key(list.confirmation(), false, about);
    }

    /// A key with a comment, behind it where there is room.
    fn key(&mut self, key: &str, value: impl ToString, comment: &str) {
        let line = format!("{key} = {}", value.to_string());
        let is_room = line.len() + comment.len() + 3 <= WIDTH && !line.contains('\n');
        self.0 += &match (comment.is_empty(), is_room) {
            (true, _) => line,
            (false, true) => format!("{line} # {comment}"),
            (false, false) => commented(comment) + &line,
        };
        self.0.push('\n');
    }

    /// Assigns rows to devices. Returns notes about the assignment.
    fn devices(&mut self, profile: &Profile, suggestion: &Suggestion) -> Vec<String> {
        let Some(column) = &suggestion.device_column else {
            let wanted = profile.rows / ROWS_PER_DEVICE;
            let devices = wanted.clamp(*DEALT_DEVICES.start(), *DEALT_DEVICES.end());
            self.key(
                "partition",
                quoted("iid"),
                "rows are dealt to devices at random",
            );
            self.key("devices", devices, "");
            return vec![
                "The file names no devices, so rows are dealt to simulated ones: if a column says \
                 whose row it is, add --device-column NAME."
                    .into(),
            ];
        };
        let devices = profile.column(column).map_or(0, |column| column.distinct);
        let about = match suggestion.device_is_guessed {
            true => format!("found by its name: each of its {devices} values is a device"),
            false => format!("each of its {devices} values is a device"),
        };
        self.key("device_column", quoted(column), &about);
        Vec::new()
    }

    /// Columns that are left out, with the reasons.
    fn ignored(&mut self, suggestion: &Suggestion) {
        if suggestion
            .uses
            .iter()
            .any(|(_, used)| *used == Use::Unnamed)
        {
            self.0 += &commented("Columns without a name are never read.");
        }
        let mut items = String::new();
        for (name, used) in &suggestion.uses {
            if let Use::Ignored(reason) = used {
                // Reasons may quote a cell, which may hold anything but is one line here.
                let reason = reason.replace(|c: char| c.is_control(), " ");
                let _ = writeln!(items, "    {}, # {reason}", quoted(name));
            }
        }
        if !items.is_empty() {
            self.0 += &format!("ignore = [\n{items}]\n");
        }
    }

    /// How readings of a sensor become windows. The rows do not say that they are readings, so
    /// these are comments.
    fn windows(&mut self, windows: &ProposedWindows) {
        let mut advice = format!(
            "If the rows are sensor readings in time order, cut them into windows. A board \
             computes the same features from them (docs/data.md). {} consecutive rows, on average, \
             belong to one device and class. A window should be as long as one or two periods of \
             the signal. Take the \"# \" from the next lines",
            windows.run
        );
        if let Some(time) = &windows.time {
            let _ = write!(advice, ", put {} into `ignore`", quoted(time));
        }
        let bound = norm_bound(windows.features());
        let _ = write!(advice, ", and set norm_bound = {bound:.1}.");
        self.0 += &commented(&advice);
        let mut lines = Self::default();
        if let Some(series) = &windows.series {
            lines.key("series_column", quoted(series), "a window lies in one");
        }
        lines.key("window.length", windows.length, "rows");
        let features = list(&["mean", "deviation", "minimum", "maximum"]);
        lines.key("window.features", features, "of each channel");
        let bands = format!("{:?}", windows.bands());
        lines.key("window.bands", bands, "of frequencies: slow, middle, fast");
        for line in lines.0.lines() {
            self.0 += &format!("# {line}\n");
        }
    }

    fn scale(&mut self, suggestion: &Suggestion) {
        let about = "a mean and a deviation for each feature, of the rows: no epsilon covers them. \
                     Proved figures need documented ranges: scale = { min = [..], max = [..] }, \
                     one number for each feature, or scale = \"private\" (docs/data.md)";
        self.key("scale", quoted("standardise-features"), about);
        let features = suggestion
            .uses
            .iter()
            .map(|(_, used)| used.independent_features());
        self.norm_bound(features.sum());
        if suggestion.task == TaskKind::Regression {
            let about = "so that the model begins at the mean; a documented range reads no rows: \
                         target_scale = { min = .., max = .. }";
            self.key("target_scale", quoted("standardise"), about);
        }
        self.key("test", "0.2", "share of the rows to report on");
    }

    /// The length of a sample, in which an outlier cannot dominate its device.
    fn norm_bound(&mut self, features: usize) {
        let about = "longer samples are shortened to this length, so that no outlier dominates";
        self.key("norm_bound", format!("{:.1}", norm_bound(features)), about);
    }

    /// Columns that are more than numbers.
    fn encodings(&mut self, suggestion: &Suggestion) {
        let of_kind = |pick: fn(&Use) -> Option<String>| {
            let uses = suggestion.uses.iter();
            let lines = uses.filter_map(|(name, used)| Some((quoted_key(name), pick(used)?)));
            lines.collect::<Vec<(String, String)>>()
        };
        let categories = of_kind(|used| match used {
            Use::Categories(categories) => Some(list(categories)),
            _ => None,
        });
        let times = of_kind(|used| match used {
            Use::Time(parts) => Some(list(
                &parts.iter().map(|part| part.name()).collect::<Vec<_>>(),
            )),
            _ => None,
        });
        if suggestion.uses_are_read {
            self.unconfirmed(List::Categories);
        }
        for (table, columns) in [("categories", categories), ("times", times)] {
            for (column, value) in columns {
                self.key(&format!("{table}.{column}"), value, "");
            }
        }
    }
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A list of texts, broken into lines.
fn list<T: AsRef<str>>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(|item| quoted(item.as_ref())).collect();
    let line = items.join(", ");
    if line.len() + 20 <= WIDTH {
        return format!("[{line}]");
    }
    let mut lines = String::new();
    let mut width = WIDTH;
    for item in items {
        let separator = if width + item.len() + 2 > WIDTH {
            "\n   "
        } else {
            ""
        };
        let entry = format!("{separator} {item},");
        width = if separator.is_empty() { width } else { 0 } + entry.len();
        lines += &entry;
    }
    format!("[{lines}\n]")
}

/// A sentence as comment lines.
fn commented(sentence: &str) -> String {
    let options = textwrap::Options::new(WIDTH)
        // A command is typed as it is written.
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .initial_indent("# ")
        .subsequent_indent("# ")
        .break_words(false);
    textwrap::fill(sentence, options) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use smolfed_data::DataFolders;
    use smolfed_data::suggestion::Choices;

    /// The experiment that is written for a table.
    fn written(table: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.csv"), table).unwrap();
        let folders = DataFolders::new(vec![folder.path().to_path_buf()]);
        let profile = Profile::new(TableFormat::Csv, table.as_bytes()).unwrap();
        let suggestion = Suggestion::new(&profile, &Choices::default()).unwrap();
        let data = DataSection::of_columns(TableFormat::Csv, "a.csv", &profile, &suggestion);
        let config = toml::from_str(&data.text).unwrap();
        let found = Inspection::new(&config, &folders, 1).unwrap();
        experiment("a", "smolfed init a.csv", data, &found)
    }

    #[test]
    fn what_is_written_can_be_read_and_fits_a_page() {
        let row = |i: usize| {
            let (kind, colour) = (
                ["sit", "walk"][i % 2],
                ["sky \"blue\"", "red, dark"][i / 2 % 2],
            );
            let names: String = (0..20).map(|n| format!("a long name {n};")).collect();
            let name = names.split(';').nth(i % 20).unwrap();
            format!(
                "{},{colour:?},{name},2024-03-0{} 10:30,?,{kind}\n",
                i % 7,
                i % 7 + 1
            )
            .replace("\\\"", "\"\"")
        };
        let rows: String = (0..80).map(row).collect();
        let text = written(&format!("x,the colour,name,at,empty,class\n{rows}"));
        let config = Config::parse(&text, "written", &[]).unwrap();
        assert_eq!(config.rounds, 30, "few devices: {text}");
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        for words in [
            "categories.\"the colour\" = [\"red, dark\", 'sky \"blue\"']",
            "times.at = [\"hour\", \"weekday\"]",
            "\"empty\", # it is empty",
            "classes = [\"sit\", \"walk\"]",
            "classes_are_public = false",
            "categories_are_public = false",
            "such as `ignore`",
            "devices = 8",
            // x, two categories and two parts of a time: √10 to one digit.
            "norm_bound = 3.2",
            "learning_rate = \"auto\"",
            "epochs = 10",
            "clip_norm = 0.2",
            "Only 8 devices",
            "# Written by `smolfed init a.csv`",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    /// A column that the rows leave out is a choice that no epsilon covers, and one that the user
    /// leaves out is none.
    #[test]
    fn a_choice_of_columns_by_the_rows_is_named() {
        let rows: String = (0..60)
            .map(|i| format!("{},{},7,{}\n", i % 13, i % 7, ["no", "yes"][i % 2]))
            .collect();
        let table = format!("x,y,same,class\n{rows}");
        let profile = Profile::new(TableFormat::Csv, table.as_bytes()).unwrap();
        let of = |ignore: &[&str]| {
            let choices = Choices {
                ignore: ignore.iter().map(|name| (*name).to_owned()).collect(),
                ..Choices::default()
            };
            let suggestion = Suggestion::new(&profile, &choices).unwrap();
            DataSection::of_columns(TableFormat::Csv, "a.csv", &profile, &suggestion).text
        };
        let (by_rows, asked) = (of(&[]), of(&["same"]));
        assert!(by_rows.contains("\"same\", # it has the same value in every row"));
        assert!(
            by_rows.contains("categories_are_public = false"),
            "{by_rows}"
        );
        assert!(asked.contains("\"same\", # as you asked"));
        assert!(!asked.contains("categories_are_public"), "{asked}");
    }

    #[test]
    fn images_begin_with_gradients() {
        let table = "source = \"digits\"\ndevices = 100\n";
        let folders = DataFolders::new(Vec::new());
        let found = Inspection::new(&toml::from_str(table).unwrap(), &folders, 1).unwrap();
        let text = experiment(
            "d",
            "smolfed init digits",
            DataSection::ready(table),
            &found,
        );
        let config = Config::parse(&text, "written", &[]).unwrap();
        assert!(
            text.contains("[features]\nkind = \"gradients\"\ncell = 2\n"),
            "{text}"
        );
        assert!(text.contains("learning_rate = \"auto\""), "{text}");
        // No scale is left, and smoothing would only take accuracy away.
        assert!(!text.contains("scale ="), "{text}");
        assert_eq!(config.server.smoothing_factor, 0.0);
    }

    #[test]
    fn targets_are_standardised_and_devices_found() {
        let rows: String = (0..600)
            .map(|i| format!("{},{},{}.5\n", i % 100, i % 7, i % 9))
            .collect();
        let text = written(&format!("phone,x,y\n{rows}"));
        let config = Config::parse(&text, "written", &[]).unwrap();
        assert_eq!(config.cohort.sampling_rate, Some(0.5));
        for words in [
            "task = \"regression\" # the labels are numbers with a fraction",
            "target_scale = \"standardise\"",
            "device_column = \"phone\" # found by its name: each of its 100 values is a device",
            "about 50 of 100 devices",
            "norm_bound = 1.5",
            "clip_norm = \"adaptive\"",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        // All columns are numbers that are used: nothing of the rows decided that.
        assert!(!text.contains("categories_are_public"), "{text}");
    }

    /// A comment decides nothing. Once its marks are gone, the windows are those of the data.
    #[test]
    fn windows_are_a_comment_that_can_be_taken_as_it_is() {
        let row = |i: usize| {
            let class = ["sit", "walk"][i / 200 % 2];
            format!(
                "{},{class},{},{}.5,{}\n",
                i / 400,
                i % 200 * 20,
                i * 7 % 31,
                i % 13
            )
        };
        for devices in ["phone", "number"] {
            let rows: String = (0..1600).map(row).collect();
            let text = written(&format!("{devices},class,time_ms,x,y\n{rows}"));
            assert!(text.lines().all(|line| line.len() <= 100), "{text}");
            let of = |text: &str| Config::parse(text, "written", &[]).unwrap();
            assert!(of(&text).data.window_features().is_none(), "{text}");
            // Comments are broken where a line is full.
            let advice = "put \"time_ms\" into `ignore`, and set norm_bound = ";
            assert!(text.replace("\n# ", " ").contains(advice), "{text}");
            let taken = text.replace("\n# window.", "\nwindow.");
            assert!(taken.contains("\nwindow.length = 64 # rows\n"), "{taken}");
            assert!(of(&taken).data.window_features().is_some());
        }
    }
}
