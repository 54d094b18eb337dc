//! Files and fields that the documentation of each framework asks for.

use super::tools::{file, package};

/// The values of `key: value` or `key=value` in a file.
fn value(text: &str, key: &str, separator: char) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split_once(separator));
    let (_, value) = lines.find(|(name, _)| *name == key)?;
    Some(value.trim().trim_matches('"').to_owned())
}

/// The items of a list in YAML: indented lines after the key.
fn items(text: &str, key: &str) -> Vec<String> {
    let after = text.lines().skip_while(|line| *line != format!("{key}:"));
    let lines = after.skip(1).map_while(|line| line.strip_prefix("  - "));
    lines.map(str::to_owned).collect()
}

fn assert_exist(folder: &str, names: &[&str]) {
    for name in names {
        let path = file("packages").join(folder).join(name);
        assert!(path.exists(), "{}", path.display());
    }
}

/// docs.zephyrproject.org, "Modules (External projects)", "Module yaml file description".
#[test]
fn the_module_for_zephyr_names_files_that_exist() {
    let module = package("zephyr/zephyr/module.yml");
    assert_eq!(value(&module, "name", ':').as_deref(), Some("smolfed"));
    for line in module.lines().filter(|line| !line.starts_with(' ')) {
        let key = line.split(':').next().unwrap_or_default();
        assert!(["name", "build", "samples"].contains(&key), "{line}");
    }
    let cmake = value(&module, "  cmake", ':').expect("a folder");
    let kconfig = value(&module, "  kconfig", ':').expect("a file");
    assert_exist("zephyr", &[&format!("{cmake}/CMakeLists.txt"), &kconfig]);
    let options = package("zephyr/zephyr/Kconfig");
    assert!(options.starts_with("config SMOLFED\n"), "{options}");
    for folder in items(&module, "samples") {
        let sample = format!("{folder}/uart");
        let needed = ["CMakeLists.txt", "prj.conf", "sample.yaml", "src/port.c"];
        let needed = needed.map(|name| format!("{sample}/{name}"));
        assert_exist("zephyr", &needed.each_ref().map(String::as_str));
    }
}

#[test]
fn the_configuration_of_the_sample_is_made_of_options() {
    let options = package("zephyr/samples/uart/prj.conf");
    assert!(options.contains("CONFIG_SMOLFED=y\n"));
    for line in options.lines() {
        let is_option = line.starts_with("CONFIG_") && line.contains('=');
        assert!(
            is_option || line.is_empty() || line.starts_with('#'),
            "{line}"
        );
    }
    let sample = package("zephyr/samples/uart/sample.yaml");
    for part in ["sample:\n  name: ", "\ntests:\n  sample.smolfed.uart:\n"] {
        assert!(sample.contains(part), "{part}");
    }
}

/// docs.espressif.com, "`idf_component.yml` Manifest File".
#[test]
fn the_component_for_esp_idf_is_for_chips_with_risc_v_cores() {
    let manifest = package("esp-idf/idf_component.yml");
    let version = value(&manifest, "version", ':');
    assert_eq!(version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    let targets = items(&manifest, "targets");
    assert!(targets.len() >= 3, "{targets:?}");
    for target in targets {
        let is_xtensa = ["esp32", "esp32s2", "esp32s3"].contains(&target.as_str());
        assert!(!is_xtensa, "{target}");
    }
    assert_exist(
        "esp-idf",
        &[
            "CMakeLists.txt",
            "examples/uart/CMakeLists.txt",
            "examples/uart/partitions.csv",
            "examples/uart/main/CMakeLists.txt",
            "examples/uart/main/port.c",
        ],
    );
}

/// docs.espressif.com, "Build System": `EXTRA_COMPONENT_DIRS` may name a component, and its folder
/// gives the component its name.
#[test]
fn the_project_finds_the_component_around_it() {
    let project = package("esp-idf/examples/uart/CMakeLists.txt");
    let folder = "set(EXTRA_COMPONENT_DIRS \"${smolfed}\")\ninclude(";
    assert!(project.contains(folder), "{project}");
    let main = package("esp-idf/examples/uart/main/CMakeLists.txt");
    assert!(main.contains(" PRIV_REQUIRES smolfed "), "{main}");
}

#[test]
fn the_partitions_are_those_that_the_port_opens() {
    let table = package("esp-idf/examples/uart/partitions.csv");
    let port = package("esp-idf/examples/uart/main/port.c");
    for name in ["record", "ledger"] {
        let rows = table.lines().filter(|row| row.starts_with(name));
        let fields: Vec<_> = rows.map(|row| row.split(", ").count()).collect();
        assert_eq!(fields, [5], "{name}");
        assert!(port.contains(&format!("partition(\"{name}\")")), "{name}");
    }
}

/// arduino.github.io/arduino-cli, "Library specification", revision 2.2.
#[test]
fn the_library_for_arduino_has_all_required_fields() {
    let properties = package("arduino/library.properties");
    let field = |key| value(&properties, key, '=').unwrap_or_else(|| panic!("no {key}"));
    for key in [
        "author",
        "maintainer",
        "sentence",
        "paragraph",
        "url",
        "architectures",
    ] {
        assert!(!field(key).is_empty(), "{key}");
    }
    let name = field("name");
    assert!(name.chars().all(|letter| letter.is_ascii_alphanumeric()));
    assert!(!name.to_lowercase().starts_with("arduino"));
    assert_eq!(field("version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(field("category"), "Data Processing");
    assert_eq!(field("precompiled"), "true");
    assert_eq!(field("ldflags"), "-lsmolfed");
    assert_eq!(field("includes"), "smolfed.h");
    // A sketch has the name of its folder.
    assert_exist("arduino", &["examples/uart/uart.ino"]);
}
