//! A helper's answer in a round: tags, masks and noise of 1,000 devices, on one thread.
#![allow(clippy::expect_used, reason = "a bench that cannot run says why")]

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use smolfed::release::masked::{HelperParty, HelperPolicy, HelperRequest, Listed};
use smolfed_core::mask::{MaskKey, MaskRoot, Terms};
use smolfed_core::stream::Root;

const DEVICES: u32 = 1_000;

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a thread starts").install(|| {
        let mut criterion = smolfed_benches::criterion().configure_from_args();
        answers(&mut criterion);
        criterion.final_summary();
    });
}

/// Measures updates of 8 bits per entry, and therefore masks of 19 bits.
fn answers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("helper");
    let root = Root::from_secret([7; 32]);
    let key = |device| (device, MaskRoot::new(&root, device).helper(0));
    let keys: BTreeMap<u32, MaskKey> = (0..DEVICES).map(key).collect();
    let policy = HelperPolicy {
        helpers: 1,
        noise_multiplier: 1.0,
        min_cohort: 100,
        max_rounds: 1,
        participations: 1,
        separation: 1,
        coefficients: Vec::new(),
    };
    for length in [650, 7_850, 100_000] {
        let request = request(&keys, length);
        let party = HelperParty::new(0, policy.clone(), keys.clone(), Root::from_seed(1));
        group.throughput(Throughput::Elements(u64::from(DEVICES) * length as u64));
        group.bench_function(BenchmarkId::from_parameter(length), |bencher| {
            bencher.iter(|| party.prepare(black_box(&request)).expect("it answers"));
        });
    }
    group.finish();
}

fn request(keys: &BTreeMap<u32, MaskKey>, length: usize) -> HelperRequest {
    let terms = Terms {
        grid_bits: 8,
        width: 19,
        helpers: 1,
    };
    let (invitation, ledger) = (vec![1; 70], *b"ledger 1");
    let model = smolfed_benches::vector(length);
    let listed = keys.iter().map(|(device, key)| Listed {
        device: *device,
        ledger,
        tag: key.round(0, &ledger).tag(&terms, &invitation, &model),
    });
    HelperRequest {
        round: 0,
        terms,
        devices: listed.collect(),
        invitation,
        model,
        entries: length as u32,
        earlier: Vec::new(),
    }
}
