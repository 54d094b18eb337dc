//! Training steps of networks in batches of 10, as in the simulator: convolutions for images of
//! digits and for windows of six sensor channels, and an LSTM for characters.

use std::error::Error;

use criterion::{BenchmarkId, Throughput};
use smolfed_benches::networks::{Device, SAMPLES, all};

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = smolfed_benches::criterion().configure_from_args();
    for (name, network) in all()? {
        let mut device = Device::new(&network)?;
        let mut group = criterion.benchmark_group("networks");
        group.throughput(Throughput::Elements(SAMPLES as u64));
        let id = BenchmarkId::from_parameter(name);
        group.bench_function(id, |bencher| bencher.iter(|| device.epoch()));
        group.finish();
    }
    criterion.final_summary();
    Ok(())
}
