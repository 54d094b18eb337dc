use std::fmt::Write as _;
use std::path::Path;

use super::*;
use crate::check::ExperimentError;
use crate::config::Config;
use crate::experiment::Experiment;
use crate::method::MethodName;
use crate::method::contract::MethodProperties;
use crate::tables::model::ModelConfig;
use crate::task::Task;
use smolfed_data::DataFolders;
use smolfed_data::federation::Federation;

/// Marks the part of the page printed from the rules.
const BEGIN: &str = "<!-- printed by the tests of smolfed-engine -->\n";
const END: &str = "<!-- end -->\n";
/// Environment variable for writing the page instead of comparing it.
const WRITE: &str = "WRITE_COMBINATIONS";

/// Columns of the table of methods.
const COLUMNS: [(&str, Setting); 9] = [
    ("`smolfed serve`", Setting::RealDevices),
    ("`--participation`", Setting::Recorded),
    ("distributed trust", Setting::DistributedTrust),
    ("correlated noise", Setting::Correlated),
    ("adaptive clip norm", Setting::AdaptiveClipNorm),
    ("private selection", Setting::Selection),
    ("private scale", Setting::PrivateScale),
    ("\"integer\"", Setting::Integer),
    ("\"fast\"", Setting::Fast),
];

#[test]
fn each_rule_is_the_first_that_its_settings_break() {
    for rule in RULES {
        let settings = Settings::from(rule.first).and(rule.second);
        let settings = rule.third.into_iter().fold(settings, Settings::and);
        let found = settings.agree("dp-fed").unwrap_err();
        assert_eq!(found.rule, rule, "{found}");
    }
}

#[test]
fn one_setting_goes_with_itself() {
    for rule in RULES {
        for setting in [rule.first, rule.second] {
            assert_eq!(Settings::from(setting).agree("dp-fed"), Ok(()));
        }
    }
}

#[test]
fn sentences_name_keys_methods_and_sources() {
    let sentence = |settings: &[Setting], method| {
        let settings = settings.iter().copied();
        let settings = settings.fold(Settings::default(), Settings::and);
        settings.agree(method).unwrap_err().to_string()
    };
    assert_eq!(
        sentence(
            &[
                Setting::Separation,
                Setting::Independent,
                Setting::Synchronous
            ],
            "dp-fed"
        ),
        "`privacy.separation` and `privacy.mechanism` contradict each other: it is for \
         `privacy.mechanism` = \"correlated\""
    );
    assert_eq!(
        sentence(
            &[
                Setting::RealDevices,
                Setting::NothingSent,
                Setting::NoSharedModel
            ],
            "local"
        ),
        "method \"local\" is supported only in simulations: its devices send nothing, so they need \
         no coordinator"
    );
    let tuned = [
        Setting::RealDevices,
        Setting::FineTuning,
        Setting::PersonalModels,
    ];
    assert_eq!(
        sentence(&tuned, "pmtl"),
        "`personalise.fine_tune` with method \"pmtl\" is supported only in simulations: real \
         devices keep only one model, the personal one"
    );
    assert_eq!(
        sentence(&[Setting::Recorded, Setting::OneParticipant], "central-sc"),
        "method \"central-sc\" cannot repeat a recorded participation: one device holds all \
         samples, so there are no cohorts"
    );
}

#[test]
fn a_new_method_is_refused_on_real_devices_until_it_declares_support() {
    let task = Task::new(&ModelConfig::default(), &[], 4, Some(3)).unwrap();
    let properties = MethodProperties::new(task);
    let declared = properties.settings().and(Setting::RealDevices);
    assert_eq!(
        declared.agree("own").unwrap_err().to_string(),
        "method \"own\" is supported only in simulations: no firmware computes its updates: use \
         `smolfed run`"
    );
    let properties = MethodProperties {
        is_for_real_devices: true,
        ..properties
    };
    let declared = properties.settings().and(Setting::RealDevices);
    assert_eq!(declared.agree("own"), Ok(()));
}

/// Returns whether a method supports a setting, according to its declaration when it is built with
/// the setting's arithmetic.
fn goes_with(method: MethodName, setting: Setting) -> bool {
    let arithmetic = match setting {
        Setting::Integer => "integer",
        Setting::Fast => "fast",
        _ => "f32",
    };
    let text = format!(
        "method = \"{}\"\nrounds = 2\n[data]\nsource = \"digits\"\nscale = \"unit\"\ndevices = 10\n\
         [cohort]\nsampling = \"full\"\n[personalise]\nprivate = \"biases\"\n[contrast]\nwidth = \
         4\n[simulation]\narithmetic = \"{arithmetic}\"\n",
        method.name()
    );
    let config = Config::parse(&text, "test", &[]).unwrap();
    let folders = DataFolders::of_experiment(None);
    let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
    match Experiment::new(config, &federation) {
        Ok(experiment) => {
            let declared = experiment.method().settings().and(setting);
            declared.agree(method.name()).is_ok()
        }
        Err(ExperimentError::Combination(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Returns the table of methods, and the list of rules.
fn page() -> String {
    let mut page = String::from("| method |");
    for (title, _) in COLUMNS {
        write!(page, " {title} |").unwrap();
    }
    page += "\n| --- |";
    page += &" --- |".repeat(COLUMNS.len());
    for method in MethodName::ALL {
        write!(page, "\n| {} |", method.name()).unwrap();
        for (_, column) in COLUMNS {
            page += match goes_with(method, column) {
                true => " yes |",
                false => " no |",
            };
        }
    }
    page += "\n\n| setting | does not go with | reason and remedy |\n| --- | --- | --- |\n";
    for rule in RULES {
        let third = rule.third.map(|third| format!(", with {}", third.label()));
        writeln!(
            page,
            "| {} | {}{} | {} |",
            rule.first.label(),
            rule.second.label(),
            third.unwrap_or_default(),
            rule.advice
        )
        .unwrap();
    }
    page
}

#[test]
fn the_page_of_combinations_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/combinations.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (printed, after) = rest.split_once(END).unwrap();
    let page = page();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{page}{END}{after}")).unwrap();
        return;
    }
    assert!(
        printed == page,
        "docs/combinations.md is out of date: {WRITE}=1 cargo test -p smolfed-engine combinations"
    );
}
