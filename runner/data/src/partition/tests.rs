//! Properties of dealing: each row at most once, the requested sizes, and a partition determined by
//! the seed.

use proptest::prelude::*;

use super::*;

fn data(row_count: usize, class_count: usize) -> Dataset {
    let labels: Vec<u32> = (0..row_count)
        .map(|row| (row % class_count) as u32)
        .collect();
    let targets = Targets::classes(&labels, class_count).unwrap();
    Dataset::new(vec![0.0; row_count], 1, targets).unwrap()
}

fn numbers(row_count: usize) -> Dataset {
    let values = (0..row_count).map(|row| (row * 7 % 10) as f32).collect();
    Dataset::new(vec![0.0; row_count], 1, Targets::Values(values)).unwrap()
}

fn all_rows(data: &Dataset) -> Vec<u32> {
    (0..data.len() as u32).collect()
}

fn deal(data: &Dataset, dealing: Dealing, seed: u64) -> Result<Partition, PartitionError> {
    Partition::new(data, &all_rows(data), dealing, seed)
}

fn sizes(partition: &Partition) -> Vec<usize> {
    (0..partition.device_count())
        .map(|device| partition.rows(device).len())
        .collect()
}

fn has_no_row_twice(partition: &Partition) -> bool {
    let mut rows = partition.all_rows().to_vec();
    rows.sort_unstable();
    rows.windows(2).all(|pair| pair[0] < pair[1])
}

/// Returns the average number of distinct labels of a device.
fn labels_per_device(data: &Dataset, partition: &Partition) -> f64 {
    let count = |device| {
        let view = data.shared_view(partition.rows(device)).unwrap();
        let mut labels: Vec<u16> = (0..view.len()).map(|i| view.label(i)).collect();
        labels.sort_unstable();
        labels.dedup();
        labels.len()
    };
    let total: usize = (0..partition.device_count()).map(count).sum();
    total as f64 / f64::from(partition.device_count())
}

const DIRICHLET: Dealing = Dealing::Dirichlet {
    devices: 10,
    alpha: 1.0,
    samples_per_device: None,
    min_samples: 5,
};

#[test]
fn iid_deals_the_paper_setting() {
    let data = data(60_000, 10);
    let dealing = Dealing::Iid {
        devices: 1000,
        samples_per_device: Some(50),
    };
    let partition = deal(&data, dealing, 1).unwrap();
    assert_eq!(sizes(&partition), [50; 1000]);
    assert!(has_no_row_twice(&partition));
    assert!(labels_per_device(&data, &partition) > 9.5);
}

#[test]
fn iid_without_a_size_deals_all_that_go_round() {
    let dealing = Dealing::Iid {
        devices: 3,
        samples_per_device: None,
    };
    assert_eq!(sizes(&deal(&data(11, 2), dealing, 1).unwrap()), [3; 3]);
}

#[test]
fn shards_give_few_labels_a_device() {
    let data = data(2000, 10);
    let dealing = Dealing::Shards {
        devices: 100,
        shards_per_device: 2,
    };
    let partition = deal(&data, dealing, 1).unwrap();
    assert_eq!(sizes(&partition), [20; 100]);
    assert!(has_no_row_twice(&partition));
    let labels = labels_per_device(&data, &partition);
    assert!(labels > 1.5 && labels <= 2.0, "{labels}");
}

#[test]
fn shards_of_numbers_are_runs_of_their_order() {
    let data = numbers(10);
    let dealing = Dealing::Shards {
        devices: 5,
        shards_per_device: 1,
    };
    let partition = deal(&data, dealing, 1).unwrap();
    for device in 0..5 {
        let view = data.shared_view(partition.rows(device)).unwrap();
        assert!((view.value(0) - view.value(1)).abs() < 1.5);
    }
}

#[test]
fn small_alpha_gives_fewer_labels_a_device() {
    let data = data(10_000, 10);
    let labels = |alpha, samples_per_device| {
        let dealing = Dealing::Dirichlet {
            devices: 20,
            alpha,
            samples_per_device,
            min_samples: 1,
        };
        let partition = deal(&data, dealing, 1).unwrap();
        assert!(has_no_row_twice(&partition));
        labels_per_device(&data, &partition)
    };
    for samples_per_device in [None, Some(500)] {
        let (skewed, even) = (
            labels(0.1, samples_per_device),
            labels(100.0, samples_per_device),
        );
        assert!(
            skewed < 8.0 && even > 9.9,
            "{samples_per_device:?}: {skewed} {even}"
        );
    }
}

#[test]
fn dirichlet_of_a_fixed_size_can_deal_every_row() {
    let data = data(1000, 7);
    let dealing = Dealing::Dirichlet {
        devices: 20,
        alpha: 0.01,
        samples_per_device: Some(50),
        min_samples: 1,
    };
    let partition = deal(&data, dealing, 1).unwrap();
    assert_eq!(sizes(&partition), [50; 20]);
    assert!(has_no_row_twice(&partition));
}

#[test]
fn natural_devices_keep_their_rows() {
    let names = vec!["a".into(), "b".into()];
    let data = data(4, 2)
        .with_groups(Groups::new(vec![1, 0, 1, 1], names).unwrap())
        .unwrap();
    let partition = deal(&data, Dealing::Natural, 1).unwrap();
    assert_eq!(
        (partition.rows(0), partition.rows(1)),
        (&[1][..], &[0, 2, 3][..])
    );
}

#[test]
fn natural_device_without_training_rows_is_named() {
    let names = vec!["a".into(), "b".into()];
    let data = data(4, 2)
        .with_groups(Groups::new(vec![1, 0, 1, 1], names).unwrap())
        .unwrap();
    let error = Partition::new(&data, &[0, 2], Dealing::Natural, 1).unwrap_err();
    let expected = PartitionError::EmptyDevice {
        device: "`a`".into(),
        found: 0,
        needed: 1,
    };
    assert_eq!(error, expected);
}

#[test]
fn natural_dealing_needs_natural_devices() {
    assert_eq!(
        deal(&data(4, 2), Dealing::Natural, 1).unwrap_err(),
        PartitionError::NotNatural
    );
}

#[test]
fn too_few_rows_are_refused() {
    let data = data(10, 2);
    for dealing in [
        Dealing::Iid {
            devices: 11,
            samples_per_device: None,
        },
        Dealing::Iid {
            devices: 2,
            samples_per_device: Some(6),
        },
        Dealing::Iid {
            devices: u32::MAX,
            samples_per_device: Some(u32::MAX),
        },
        Dealing::Shards {
            devices: 6,
            shards_per_device: 2,
        },
        Dealing::Shards {
            devices: u32::MAX,
            shards_per_device: u32::MAX,
        },
        Dealing::Dirichlet {
            devices: 4,
            alpha: 1.0,
            samples_per_device: Some(3),
            min_samples: 1,
        },
        Dealing::Dirichlet {
            devices: 4,
            alpha: 1.0,
            samples_per_device: None,
            min_samples: 3,
        },
    ] {
        let error = deal(&data, dealing, 1).unwrap_err();
        assert!(
            matches!(error, PartitionError::TooFewRows { rows: 10, .. }),
            "{dealing:?} {error}"
        );
    }
}

#[test]
fn no_devices_are_refused() {
    for dealing in [
        Dealing::Iid {
            devices: 0,
            samples_per_device: None,
        },
        Dealing::Shards {
            devices: 0,
            shards_per_device: 1,
        },
        Dealing::Dirichlet {
            devices: 0,
            alpha: 1.0,
            samples_per_device: None,
            min_samples: 1,
        },
    ] {
        assert_eq!(
            deal(&data(10, 2), dealing, 1).unwrap_err(),
            PartitionError::NoDevices
        );
    }
}

#[test]
fn starving_dirichlet_gives_up_and_says_so() {
    let dealing = Dealing::Dirichlet {
        devices: 50,
        alpha: 0.01,
        samples_per_device: None,
        min_samples: 2,
    };
    let error = deal(&data(100, 2), dealing, 1).unwrap_err();
    assert!(
        matches!(
            error,
            PartitionError::Starved {
                found: 0,
                needed: 2,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn dirichlet_needs_classes() {
    assert_eq!(
        deal(&numbers(100), DIRICHLET, 1).unwrap_err(),
        PartitionError::NotClasses
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any dealing uses each row at most once and only training rows, and depends only on the seed.
    #[test]
    fn rows_are_dealt_at_most_once(
        seed: u64, devices in 1u32..12, samples in 1u32..12, alpha in 0.05f64..10.0, kind in 0..4,
    ) {
        let data = data(200, 5);
        let training: Vec<u32> = (0..200).filter(|row| row % 3 != 0).collect();
        let dealing = match kind {
            0 => Dealing::Iid { devices, samples_per_device: Some(samples) },
            1 => Dealing::Shards { devices, shards_per_device: samples },
            2 => Dealing::Dirichlet { devices, alpha, samples_per_device: None, min_samples: 1 },
            _ => Dealing::Dirichlet {
                devices, alpha, samples_per_device: Some(samples), min_samples: 1,
            },
        };
        let Ok(partition) = Partition::new(&data, &training, dealing, seed) else {
            return Ok(());
        };
        prop_assert!(has_no_row_twice(&partition));
        prop_assert!(partition.all_rows().iter().all(|row| row % 3 != 0));
        prop_assert_eq!(partition.device_count(), devices);
        prop_assert!(sizes(&partition).iter().all(|&size| size >= 1));
        if kind == 0 || kind == 3 {
            prop_assert!(sizes(&partition).iter().all(|&size| size == samples as usize));
        }
        let again = Partition::new(&data, &training, dealing, seed).unwrap();
        prop_assert_eq!(partition, again);
    }

    /// Uneven Dirichlet dealing gives each device its minimum and uses every row.
    #[test]
    fn dirichlet_respects_the_minimum(seed: u64) {
        let data = data(500, 5);
        let partition = deal(&data, DIRICHLET, seed).unwrap();
        prop_assert!(sizes(&partition).iter().all(|&size| size >= 5));
        prop_assert_eq!(partition.all_rows().len(), 500);
    }
}
