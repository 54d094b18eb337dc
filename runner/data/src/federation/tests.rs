//! Tests of the data that a run sees: sizes, parts, scaling without the test part, fingerprints.

use super::*;
use crate::catalogue::KnownSet;
use crate::dataset::Targets;
use crate::real_data;

fn federation(text: &str, folders: &DataFolders, seed: u64) -> Result<Federation, DataError> {
    let config: DataConfig = toml::from_str(text).unwrap();
    Federation::new(&config, folders, seed)
}

fn digits(more: &str, seed: u64) -> Federation {
    let folders = DataFolders::new(Vec::new());
    federation(&format!("source = \"digits\"\n{more}"), &folders, seed).unwrap()
}

fn sizes(federation: &Federation) -> Vec<usize> {
    (0..federation.device_count())
        .map(|device| federation.sample_count(device))
        .collect()
}

/// Creates a CSV file with two devices: `a` with 8 rows and `b` with 4.
fn table(rows: &str) -> (tempfile::TempDir, DataFolders) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.csv"), format!("who,x,y\n{rows}")).unwrap();
    let folders = DataFolders::new(vec![folder.path().to_path_buf()]);
    (folder, folders)
}

const TABLE: &str = "source = \"csv\"\npath = \"a.csv\"\nlabel = \"y\"\n";

#[test]
fn digits_are_split_and_dealt() {
    let federation = digits("devices = 100\nvalidation = 0.1\ntest = 0.2", 1);
    assert_eq!(
        (federation.test().len(), federation.validation().len()),
        (359, 180)
    );
    assert_eq!(sizes(&federation), [12; 100]);
    assert_eq!(federation.class_count(), Some(10));
    assert_eq!(
        (federation.feature_count(), federation.axes()),
        (64, vec![8, 8])
    );
    let mut buffer = DeviceBuffer::default();
    let device = federation.device(99, &mut buffer);
    assert_eq!((device.len(), device.features(0).len()), (12, 64));
    assert_eq!(federation.device_name(99), "99");
    assert!(federation.device_test(0, &mut buffer).is_none());
}

/// They are in the order of devices, followed by the remaining rows.
#[test]
fn the_samples_of_a_device_lie_together() {
    for dealing in [
        "",
        "device_test = 0.25\n",
        "partition = \"shards\"\nshards_per_device = 2\n",
    ] {
        let federation = digits(&format!("{dealing}devices = 20\ntest = 0.2"), 1);
        let Kind::Stored(stored) = &federation.0 else {
            panic!("the digits are read from a file");
        };
        let dealt = stored.devices.all_rows();
        assert!(dealt.iter().copied().eq(0..dealt.len() as u32), "{dealing}");
        // Every row belongs to at most one part.
        let of_devices = stored.test.by_device.as_ref().map(Partition::all_rows);
        let mut rows = [dealt, &stored.test.rows, of_devices.unwrap_or_default()].concat();
        rows.sort_unstable();
        assert!(rows.windows(2).all(|pair| pair[0] < pair[1]), "{dealing}");
    }
}

#[test]
fn dealt_devices_keep_shares_of_their_own_back() {
    let keep = "devices = 20\npartition = \"shards\"\nshards_per_device = 2";
    let all = digits(keep, 1);
    let some = digits(
        &format!("{keep}\ndevice_test = 0.25\ndevice_validation = 0.125"),
        1,
    );
    let (mut a, mut b, mut c) = Default::default();
    for device in 0..20 {
        let test = some.device_test(device, &mut a).unwrap();
        let validation = some.device_validation(device, &mut b).unwrap();
        let train = some.device(device, &mut c);
        let count = all.sample_count(device);
        assert_eq!(train.len() + test.len() + validation.len(), count);
        assert!(test.len().abs_diff(count / 4) <= 1 && validation.len().abs_diff(count / 8) <= 1);
        // The held-out samples come from the classes of the device.
        let classes = |view: DatasetView<'_>| -> std::collections::BTreeSet<u16> {
            (0..view.len()).map(|i| view.label(i)).collect()
        };
        assert!(classes(test).is_subset(&classes(train)), "{device}");
    }
    assert_eq!(some.device_name(3), "3");
    assert_ne!(all.fingerprint(), some.fingerprint());
    let again = digits(
        &format!("{keep}\ndevice_test = 0.25\ndevice_validation = 0.125"),
        1,
    );
    assert_eq!(again.fingerprint(), some.fingerprint());
}

#[test]
fn training_pixels_have_mean_0_and_deviation_1() {
    let federation = digits("devices = 1\ntest = 0.5", 1);
    let mut buffer = DeviceBuffer::default();
    let device = federation.device(0, &mut buffer);
    let pixels = (0..device.len())
        .flat_map(|i| device.features(i))
        .map(|&pixel| f64::from(pixel));
    let count = pixels.clone().count() as f64;
    let mean = pixels.clone().sum::<f64>() / count;
    let variance = pixels.map(|pixel| pixel * pixel).sum::<f64>() / count - mean * mean;
    assert!(
        mean.abs() < 1e-6 && (variance - 1.0).abs() < 1e-6,
        "{mean} {variance}"
    );
    let mut buffer = DeviceBuffer::default();
    let test = federation.test().all(&mut buffer);
    let pixels = (0..test.len())
        .flat_map(|i| test.features(i))
        .map(|&pixel| f64::from(pixel));
    let test_mean = pixels.sum::<f64>() / (test.len() * 64) as f64;
    assert!(
        test_mean.abs() > 1e-5,
        "the test part was not looked at: {test_mean}"
    );
}

#[test]
fn natural_devices_keep_test_rows_of_their_own() {
    let rows: String = (0..12)
        .map(|row| format!("{},{row},{}\n", if row < 8 { "a" } else { "b" }, row % 2))
        .collect();
    let (_kept, folders) = table(&rows);
    let text = format!("{TABLE}device_column = \"who\"\ntest = 0.25\nvalidation = 0.25");
    let federation = federation(&text, &folders, 1).unwrap();
    assert_eq!(sizes(&federation), [4, 2]);
    assert_eq!(
        (federation.device_name(0), federation.device_name(1)),
        ("a".into(), "b".into())
    );
    let mut buffer = DeviceBuffer::default();
    assert_eq!(federation.device_test(0, &mut buffer).unwrap().len(), 2);
    assert_eq!(federation.device_test(1, &mut buffer).unwrap().len(), 1);
    assert_eq!(
        federation.device_validation(0, &mut buffer).unwrap().len(),
        2
    );
    assert_eq!(
        (federation.test().len(), federation.validation().len()),
        (3, 3)
    );
    assert_eq!(federation.names().classes, ["0", "1"]);
}

#[test]
fn missing_values_become_training_means_before_scaling() {
    let (_kept, folders) = table("a,1,0\na,?,1\na,5,0\na,,1\n");
    let text = format!("{TABLE}device_column = \"who\"\ntest = 1\nscale = \"none\"");
    let federation = federation(&text, &folders, 1).unwrap();
    let mut buffer = DeviceBuffer::default();
    let device = federation.device(0, &mut buffer);
    let features: Vec<f32> = (0..3).map(|i| device.features(i)[0]).collect();
    assert_eq!(features, [1.0, 3.0, 5.0]);
    assert_eq!(
        federation
            .test()
            .all(&mut DeviceBuffer::default())
            .features(0),
        [3.0]
    );
}

#[test]
fn errors_of_every_step_name_the_file() {
    let (_kept, folders) = table("a,?,0\na,?,1\nb,1,1\n");
    for (more, expected) in [
        (
            "devices = 1\ntest = 1\nignore = [\"who\"]",
            "`x` has no value",
        ),
        (
            "devices = 9\ntest = 0\nignore = [\"who\"]\nscale = \"none\"",
            "9 devices",
        ),
        (
            "devices = 1\ntest = 3\nignore = [\"who\"]",
            "none to train on",
        ),
        (
            "devices = 1\ntest = 0\nignore = [\"who\"]\nscale = \"unit\"",
            "`maximum`",
        ),
        ("devices = 1\ntest = 0", "`a` is not a number"),
    ] {
        let error = federation(&format!("{TABLE}{more}"), &folders, 1)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("a.csv") && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn synthetic_devices_are_made_on_demand() {
    let text = "source = \"synthetic\"\ndevices = 4294967295\nfeatures = 6\nclasses = 3\ntest = 50";
    let federation = federation(text, &DataFolders::new(Vec::new()), 1).unwrap();
    assert_eq!(federation.device_count(), u32::MAX);
    let mut buffer = DeviceBuffer::default();
    let device = federation.device(u32::MAX - 1, &mut buffer);
    assert_eq!((device.len(), device.features(49).len()), (50, 6));
    assert_eq!(
        (federation.test().len(), federation.validation().len()),
        (50, 0)
    );
    assert_eq!(federation.device_test(3, &mut buffer).unwrap().len(), 50);
    assert_eq!(
        (federation.class_count(), federation.sample_count(0)),
        (Some(3), 50)
    );
}

#[test]
fn fingerprint_follows_content_split_and_seed() {
    let base = digits("devices = 10", 1).fingerprint();
    assert_eq!(base, digits("devices = 10", 1).fingerprint());
    for other in [
        digits("devices = 10", 2),
        digits("devices = 11", 1),
        digits("devices = 10\nscale = \"unit\"", 1),
        digits("devices = 10\nvalidation = 10", 1),
        digits("devices = 10\npartition = \"shards\"", 1),
    ] {
        assert_ne!(base, other.fingerprint());
    }
    let synthetic = |more: &str, seed| {
        let text = format!("source = \"synthetic\"\n{more}");
        federation(&text, &DataFolders::new(Vec::new()), seed)
            .unwrap()
            .fingerprint()
    };
    assert_eq!(synthetic("", 1), synthetic("", 1));
    assert_ne!(synthetic("", 1), synthetic("", 2));
    assert_ne!(synthetic("test = 0", 1), synthetic("test = 0", 2));
    assert_ne!(synthetic("", 1), synthetic("shift = 0.25", 1));
    assert_ne!(synthetic("", 1), synthetic("devices = 999", 1));
}

/// Creates 40 images of 2 × 2 in an IDX file of bytes or of floats.
fn images(of_bytes: bool, more: &str) -> Federation {
    let pixels: Vec<u8> = (0..160u32).map(|at| (at * at * 7 % 251) as u8).collect();
    let labels: Vec<u8> = (0..40).map(|row| row % 3).collect();
    let file = |code, dimensions: &[u32], values: &[u8]| {
        let sizes = dimensions.iter().flat_map(|size| size.to_be_bytes());
        let head = [0, 0, code, dimensions.len() as u8];
        head.into_iter()
            .chain(sizes)
            .chain(values.iter().copied())
            .collect::<Vec<_>>()
    };
    let floats: Vec<u8> = pixels
        .iter()
        .flat_map(|byte| f32::from(*byte).to_be_bytes())
        .collect();
    let (code, values) = if of_bytes {
        (8, &pixels)
    } else {
        (13, &floats)
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x"), file(code, &[40, 2, 2], values)).unwrap();
    std::fs::write(folder.path().join("y"), file(8, &[40], &labels)).unwrap();
    let folders = DataFolders::new(vec![folder.path().to_path_buf()]);
    let text = format!("source = \"idx\"\npath = \"x\"\nlabel_path = \"y\"\n{more}");
    federation(&text, &folders, 5).unwrap()
}

/// Returns the features and labels of all data that a run sees, as bits.
fn seen(federation: &Federation) -> Vec<(Vec<u32>, u16)> {
    let (mut train, mut test) = (DeviceBuffer::default(), DeviceBuffer::default());
    let mut samples = Vec::new();
    let mut see = |view: DatasetView<'_>| {
        let bits = |i| view.features(i).iter().map(|x| x.to_bits()).collect();
        samples.extend((0..view.len()).map(|i| (bits(i), view.label(i))));
    };
    for device in 0..federation.device_count() {
        see(federation.device(device, &mut train));
        see(federation.device_test(device, &mut test).unwrap());
    }
    see(federation.validation().all(&mut DeviceBuffer::default()));
    see(federation.test().all(&mut DeviceBuffer::default()));
    samples
}

#[test]
fn pixels_that_stay_bytes_have_the_bits_of_floats() {
    let dealt = "devices = 4\ntest = 5\nvalidation = 3\ndevice_test = 0.25";
    for (scale, same) in [
        ("\"none\"", "\"none\""),
        ("\"standardise\"", "\"standardise\""),
        ("\"standardise-features\"", "\"standardise-features\""),
        (
            "{ mean = 0.5, std = 0.25 }",
            "{ mean = 127.5, std = 63.75 }",
        ),
        ("{ min = 20, max = 200 }", "{ min = 20, max = 200 }"),
        (
            "{ min = 0, max = [9, 99, 200, 255] }",
            "{ min = 0, max = [9, 99, 200, 255] }",
        ),
        (
            "\"private\"\nbounds = { min = 3, max = 222 }",
            "\"private\"\nbounds = { min = 3, max = 222 }",
        ),
    ] {
        let of = |of_bytes, scale| images(of_bytes, &format!("{dealt}\nscale = {scale}"));
        let (bytes, floats) = (of(true, scale), of(false, same));
        assert_eq!(seen(&bytes), seen(&floats), "{scale}");
        assert_eq!(bytes.fingerprint(), floats.fingerprint(), "{scale}");
        assert_eq!(bytes.beyond_bounds(), floats.beyond_bounds(), "{scale}");
        if bytes.private_scale().is_some() {
            let means = vec![0.01; bytes.moment_count()];
            let scaled = [&bytes, &floats].map(|it| seen(&it.scaled_by(&means, 0.001)));
            assert_eq!(scaled[0], scaled[1]);
            assert_ne!(scaled[0], seen(&bytes));
        }
    }
}

#[test]
fn mnist_in_the_setting_of_the_paper() {
    let Some(folders) = real_data::folders("mnist") else {
        return;
    };
    let text = "source = \"mnist\"\ndevices = 1000\nsamples_per_device = 50\nvalidation = 10000";
    let federation = federation(text, &folders, 1).unwrap();
    assert_eq!(sizes(&federation), [50; 1000]);
    assert_eq!(
        (federation.validation().len(), federation.test().len()),
        (10_000, 10_000)
    );
    let Kind::Stored(stored) = &federation.0 else {
        unreachable!()
    };
    assert_eq!(stored.validation.rows[0], 50_000);
    // White on black: pixel 0 is 0, standardised by about (0 - 0.1307) / 0.3081.
    let corner = federation
        .test()
        .all(&mut DeviceBuffer::default())
        .features(0)[0];
    assert!((corner + 0.4242).abs() < 0.003, "{corner}");
}

#[test]
fn femnist_has_a_device_for_each_writer() {
    let Some(folders) = real_data::folders("femnist") else {
        return;
    };
    let federation = federation("source = \"femnist\"\ntest = 0.2", &folders, 1).unwrap();
    assert_eq!(federation.device_count(), 206);
    let sizes = sizes(&federation);
    assert_eq!(
        (sizes.iter().min(), sizes.iter().max()),
        (Some(&4), Some(&55))
    );
    assert_eq!(sizes.iter().sum::<usize>() + federation.test().len(), 6237);
}

#[test]
fn wisdm_has_a_device_for_each_phone() {
    let Some(folders) = real_data::folders("wisdm") else {
        return;
    };
    let text = "source = \"csv\"\npath = \"wisdm/wisdm_ar_v1.1_transformed.csv.gz\"\n\
                label = \"class\"\ndevice_column = \"user\"\nignore = [\"UNIQUE_ID\"]\ntest = 0.2";
    let federation = federation(text, &folders, 1).unwrap();
    assert_eq!(
        (federation.device_count(), federation.feature_count()),
        (36, 43)
    );
    assert_eq!(
        sizes(&federation).iter().sum::<usize>() + federation.test().len(),
        5418
    );
    assert_eq!(
        federation.names().classes,
        [
            "Downstairs",
            "Jogging",
            "Sitting",
            "Standing",
            "Upstairs",
            "Walking"
        ]
    );
    // XAVG is constant.
    let at = federation
        .names()
        .features
        .iter()
        .position(|name| name == "XAVG")
        .unwrap();
    let mut buffer = DeviceBuffer::default();
    let test = federation.test().all(&mut buffer);
    assert!((0..test.len()).all(|i| test.features(i)[at].to_bits() == 0));
}

#[test]
fn schools_and_patients_are_regression() {
    let sets = [
        (
            "school",
            "school/school.csv.gz",
            "score",
            "school",
            "",
            139,
            15_362,
        ),
        (
            "parkinsons_telemonitoring",
            "parkinsons_telemonitoring/parkinsons_updrs.csv.gz",
            "motor_UPDRS",
            "subject#",
            "total_UPDRS",
            42,
            5875,
        ),
    ];
    for (set, path, label, device, ignore, devices, rows) in sets {
        let Some(folders) = real_data::folders(set) else {
            return;
        };
        let ignore = if ignore.is_empty() {
            String::new()
        } else {
            format!("\"{ignore}\"")
        };
        let text = format!(
            "source = \"csv\"\npath = \"{path}\"\nlabel = \"{label}\"\n\
             device_column = \"{device}\"\nignore = [{ignore}]\ntask = \"regression\"\n\
             target_scale = \"standardise\"\ntest = 0.25"
        );
        let federation = federation(&text, &folders, 1).unwrap();
        assert_eq!(
            (federation.device_count(), federation.class_count()),
            (devices, None)
        );
        let total = sizes(&federation).iter().sum::<usize>() + federation.test().len();
        assert_eq!(total, rows);
        assert!(federation.target_scale().std() > 1.0);
        let mut buffer = DeviceBuffer::default();
        assert!(federation.device(0, &mut buffer).value(0).abs() < 10.0);
        let Kind::Stored(stored) = &federation.0 else {
            unreachable!()
        };
        assert!(matches!(stored.data.targets(), Targets::Values(_)));
    }
}

/// Rows of numbers with gaps, and a column that never changes in the training part.
const RAW: [[Option<f32>; 4]; 8] = [
    [Some(0.1), Some(-3e5), None, Some(7.0)],
    [Some(0.3), Some(2e5), Some(4.0), Some(7.0)],
    [Some(-0.7), Some(1e5), Some(-1.5), Some(7.0)],
    [Some(9.0), Some(0.0), None, Some(7.0)],
    [Some(0.2), Some(5e4), Some(0.25), Some(7.0)],
    [Some(-2.0), Some(-1e4), Some(8.0), Some(7.0)],
    [Some(0.11), Some(3e5), Some(-9.0), Some(7.0)],
    [Some(0.5), Some(12.5), Some(2.0), Some(7.0)],
];

/// Inference applies to a row the same operations as training did.
#[test]
fn a_new_row_gets_the_bits_that_it_had_in_training() {
    let cell = |value: &Option<f32>| value.map_or(String::new(), |value| value.to_string());
    let line = |row: &[Option<f32>; 4]| row.iter().map(cell).collect::<Vec<_>>().join(",");
    let lines = RAW.iter().zip(["s", "t"].iter().cycle());
    let lines: String = lines
        .map(|(row, y)| format!("{},{y}\n", line(row)))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.csv"), format!("a,b,c,d,y\n{lines}")).unwrap();
    let folders = DataFolders::new(vec![folder.path().to_path_buf()]);
    let bounds = "{ min = [-1, -2e5, -5, 0], max = [1, 2e5, 5, 10] }";
    for scale in [
        String::new(),
        "scale = \"none\"".to_owned(),
        "scale = \"none\"\nmissing = [0, 0, 3.3, 0]".to_owned(),
        "scale = \"unit\"\nmaximum = 100000".to_owned(),
        "scale = \"standardise-set\"".to_owned(),
        "scale = \"standardise-set\"\nmissing = -1".to_owned(),
        format!("scale = {bounds}"),
        "scale = { mean = [0, 1, 2, 3], std = 7 }\nmaximum = 5".to_owned(),
        format!("scale = \"private\"\nbounds = {bounds}"),
        format!("scale = \"private-set\"\nbounds = {bounds}\nmissing = 0.5"),
    ] {
        let text = format!("{TABLE}devices = 1\ntest = 0\n{scale}");
        let mut federation = federation(&text, &folders, 1).unwrap();
        if federation.private_scale().is_some() {
            let mut moments = vec![0.0; federation.moment_count()];
            federation.write_moments(0, &mut moments);
            federation = federation.scaled_by(&moments, 1e-3);
        }
        let columns = federation.preparation().columns;
        let apply = |row: &[Option<f32>; 4]| -> Vec<u32> {
            let values = columns.iter().zip(row);
            let values = values.map(|(column, value)| column.apply(value.map(f64::from)).unwrap());
            values.map(f32::to_bits).collect()
        };
        let mut expected: Vec<Vec<u32>> = RAW.iter().map(apply).collect();
        let mut buffer = DeviceBuffer::default();
        let view = federation.device(0, &mut buffer);
        let bits = |row| view.features(row).iter().map(|x| x.to_bits()).collect();
        let mut found: Vec<Vec<u32>> = (0..view.len()).map(bits).collect();
        // Rows are dealt in another order.
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{scale}");
    }
}

/// Returns the bytes of a federation's features, after scaling and dealing.
fn are_bytes(data: &str, set: &str) -> Option<(Vec<usize>, bool)> {
    let folders = real_data::folders(set)?;
    let federation = federation(data, &folders, 1).unwrap();
    let is_bytes = matches!(federation.test(), HeldOut::Bytes { .. });
    Some((federation.axes(), is_bytes))
}

#[test]
fn images_have_their_shape_and_stay_bytes_when_scaled_and_dealt() {
    let path = "path = \"cifar10_subset\"\n";
    for (set, axes, scale) in [
        ("mnist", &[28, 28][..], "\"unit\"\ndevices = 1000"),
        ("femnist", &[28, 28], "\"standardise\""),
        (
            "cifar10_subset",
            &[3, 32, 32],
            "\"standardise\"\ndevices = 50",
        ),
        (
            "cifar10_subset",
            &[3, 32, 32],
            "{ mean = 0.5, std = 0.25 }\ndevices = 50",
        ),
    ] {
        let (source, path) = match set.strip_suffix("_subset") {
            Some(source) => (source, path),
            None => (set, ""),
        };
        let data = format!("source = \"{source}\"\n{path}scale = {scale}");
        if let Some((found, is_bytes)) = are_bytes(&data, set) {
            assert_eq!((found.as_slice(), is_bytes), (axes, true), "{data}");
        }
    }
}

#[test]
fn shakespeare_is_dealt_to_roles_in_the_order_of_time() {
    let path = "shakespeare/shakespeare_lines_by_role.tsv.gz";
    let Some(folders) = real_data::folders(path) else {
        return;
    };
    let set = KnownSet::named("shakespeare").unwrap();
    let federation = federation(set.table, &folders, 1).unwrap();
    assert_eq!(
        (federation.feature_count(), federation.class_count()),
        (40, Some(80))
    );
    let kept = federation.device_count() as usize;
    assert_eq!(kept + federation.small_devices(), 1359);
    let held_out = (federation.validation().len(), federation.test().len());
    let train: usize = federation.sample_counts().map(|count| count as usize).sum();
    let share = train as f64 / (train + held_out.0 + held_out.1) as f64;
    assert!((share - 0.7).abs() < 0.01, "{share}");
    assert!(matches!(federation.test(), HeldOut::Bytes { .. }));
    // The test part of a role follows its training part: no window is in both.
    let mut buffer = DeviceBuffer::default();
    let last = |samples: &DatasetView<'_>, at: usize| samples.features(at).to_vec();
    let before = {
        let samples = federation.device(0, &mut buffer);
        (0..samples.len())
            .map(|at| last(&samples, at))
            .collect::<Vec<_>>()
    };
    let tested = federation.device_test(0, &mut buffer).unwrap();
    assert!((0..tested.len()).all(|at| !before.contains(&last(&tested, at))));
}
