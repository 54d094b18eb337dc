use super::*;
use smolfed_data::DataFolders;
use smolfed_engine::config::Config;
use smolfed_engine::run;

/// Windows of two channels of four devices, with keys of `[data.window]` and a scale.
fn windows(window: &str, scale: &str, more: &str) -> Result<DeviceRecipe, DeviceRecipeError> {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..320)
        .map(|row| {
            format!(
                "{},{},{},{}\n",
                row / 80,
                row / 40 % 2,
                row * 7 % 97,
                row % 13
            )
        })
        .collect();
    std::fs::write(folder.path().join("a.csv"), format!("who,kind,x,y\n{rows}")).unwrap();
    let text = format!(
        "method = \"dp-fed\"\nrounds = 2\n{more}\n[data]\nsource = \"csv\"\n\
         path = \"a.csv\"\nlabel = \"kind\"\n\
         device_column = \"who\"\ntest = 0\nscale = {scale}\n[data.window]\nlength = 16\n{window}\n\
         [cohort]\nsampling = \"full\"\n[privacy]\nnoise_multiplier = 1\nclip_norm = 1\n"
    );
    let config = Config::parse(&text, "a test", &[]).unwrap();
    let folders = DataFolders::new(vec![folder.path().to_path_buf()]);
    let (experiment, federation) = run::prepare(config, &folders).unwrap();
    DeviceRecipe::new(&experiment, &federation)
}

const INTEGER: &str = "simulation.arithmetic = \"integer\"";

#[test]
fn windows_in_integers_have_scales_of_whole_numbers() {
    let window = "step = 8\nfeatures = [\"mean\", \"maximum\"]\nbands = [1, 3]\ncounts = [4]";
    let recipe = windows(window, "{ mean = 0, std = [256, 3.2] }", INTEGER).unwrap();
    let rust = recipe.rust();
    for words in [
        "// x, y\npub const CHANNELS: usize = 2;",
        "pub const LENGTH: usize = 16;",
        "pub const STEP: usize = 8;",
        "&[Feature::Mean, Feature::Maximum]",
        "&[1, 3]",
        "pub type Value = i8;",
        "scale(0, 1, 2)",
        // 64 / 3.2.
        "scale(0, 20, 0)",
        "scale.to_i8(found)",
    ] {
        assert!(rust.contains(words), "{words}: {rust}");
    }
}

#[test]
fn windows_in_numbers_are_scaled_in_64_bits() {
    let window = "features = [\"mean\"]\nevery = 2";
    let rust = windows(window, "{ mean = 0.1, std = 3 }", "")
        .unwrap()
        .rust();
    for words in [
        "pub const EVERY: usize = 2;",
        "pub type Value = f32;",
        "    (0.1, 3.0),\n    (0.1, 3.0),\n];",
        "((f64::from(found) - mean) / std) as f32",
        "let number = |channel, step| f32::from(sample(channel, step));",
    ] {
        assert!(rust.contains(words), "{words}: {rust}");
    }
    let bounded = windows(window, "{ min = 0, max = 97 }", "").unwrap();
    let (rust, c) = (bounded.rust(), bounded.c());
    assert!(rust.contains("(0.0, 97.0, 0.0, 97.0)"), "{rust}");
    assert!(rust.contains(".clamp(low, high)"), "{rust}");
    for words in [
        "#define SMOLFED_KIND sf_softmax_f32 ",
        "sf_range smolfed_ranges[2] = {\n    {0.0, 97.0, 0.0, 97.0},",
        "NULL, smolfed_ranges, 2, SMOLFED_PLACES, false,",
    ] {
        assert!(c.contains(words), "{words}: {c}");
    }
}

#[test]
fn a_header_has_the_same_constants() {
    let window = "features = [\"mean\"]\nbands = [1, 3]\ncounts = [4, 8]";
    let c = windows(window, "{ mean = 0, std = 256 }", INTEGER)
        .unwrap()
        .c();
    for words in [
        "#define SMOLFED_KIND sf_softmax_i8 ",
        "#define SMOLFED_INFER_KIND sf_infer_softmax_i8 ",
        "#define SMOLFED_FEATURES 4 ",
        "#define SMOLFED_CLASSES 2 // 0, 1\n",
        "#define SMOLFED_PLACES 6 ",
        "#define SMOLFED_CHANNELS 2 // x, y\n",
        "#define SMOLFED_WORK 16 ",
        "smolfed_scales[4] = {\n    {0, 1, 2},",
        "smolfed_scales, NULL, 1, SMOLFED_PLACES, true,",
        // Windows, amplitude, 2 channels, 16 rows, the mean, 2 bounds.
        "    4,\n    1,\n    2,\n    0,\n    16,\n    0,\n    1,\n    2,\n    1,\n    0,",
    ] {
        assert!(c.contains(words), "{words}: {c}");
    }
}

#[test]
fn constants_of_rows_and_without_exact_form_are_refused() {
    let window = "features = [\"mean\"]\ncounts = [4]";
    let refused = |scale: &str, window: &str, more: &str| {
        windows(window, scale, more).unwrap_err().to_string()
    };
    let of_rows = refused("\"standardise-features\"", window, "");
    assert!(of_rows.contains("public constants"), "{of_rows}");
    let inexact = refused("{ mean = 0, std = 3000 }", window, INTEGER);
    assert!(
        inexact.contains("feature 0: `std` = 3000.0 has no exact form"),
        "{inexact}"
    );
    let of_numbers = refused("{ mean = 0, std = 256 }", "features = [\"mean\"]", INTEGER);
    assert!(of_numbers.contains("data.window.counts"), "{of_numbers}");
    assert_eq!(
        windows("", "\"none\"", "").unwrap_err(),
        DeviceRecipeError::NoFeatures
    );
}

#[test]
fn images_have_their_cells() {
    let text = |arithmetic: &str| {
        let text = format!(
            "method = \"dp-fed\"\nrounds = 2\nsimulation.arithmetic = \"{arithmetic}\"\n\
             [data]\nsource = \"digits\"\ndevices = 4\n\
             [features]\nkind = \"gradients\"\ncell = 2\n[cohort]\nsampling = \"full\"\n\
             [privacy]\nnoise_multiplier = 1\nclip_norm = 1\n"
        );
        let config = Config::parse(&text, "a test", &[]).unwrap();
        let (experiment, federation) = run::prepare(config, &DataFolders::new(Vec::new())).unwrap();
        DeviceRecipe::new(&experiment, &federation).unwrap()
    };
    let rust = text("integer").rust();
    for words in [
        "Cells::new(ROWS, COLUMNS, 2)",
        "pub const ROWS: usize = 8;",
        "pub const CLASSES: usize = 10;",
        "quantised_into(planes, SCALE, &mut sums, features)",
    ] {
        assert!(rust.contains(words), "{words}: {rust}");
    }
    let rust = text("f32").rust();
    assert!(
        rust.contains("GRADIENTS.features_into(planes, features)"),
        "{rust}"
    );
    let c = text("f32").c();
    assert!(
        c.contains("#define SMOLFED_ROWS 8 ")
            && c.contains("NULL, NULL, 1, SMOLFED_PLACES, false,"),
        "{c}"
    );
}
