//! Time of planning correlated noise for runs of three sizes, and of decoding one round.

use std::error::Error;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use smolfed_accounting::correlated::{Decoder, Family, Participation, Strategy};

/// Rounds, separation and participations: a small run, and the runs of the goals of 200 ms and of 2
/// s.
const RUNS: [(u32, u32, u32); 3] = [(200, 20, 10), (2_052, 342, 6), (100_000, 1_024, 98)];
/// Numbers of parameters. The middle one is softmax regression on MNIST.
const DIMENSIONS: [usize; 3] = [650, 7_850, 100_000];

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = smolfed_benches::criterion().configure_from_args();
    plan(&mut criterion)?;
    decode(&mut criterion)?;
    criterion.final_summary();
    Ok(())
}

fn plan(criterion: &mut Criterion) -> Result<(), Box<dyn Error>> {
    for family in Family::ALL {
        let mut group = criterion.benchmark_group(format!("correlated/plan/{family}"));
        for (rounds, separation, participations) in RUNS {
            let participation = Participation::new(rounds, separation, participations)?;
            group.throughput(Throughput::Elements(rounds.into()));
            group.bench_function(BenchmarkId::from_parameter(rounds), |bencher| {
                bencher.iter(|| Strategy::plan(family, black_box(participation)));
            });
        }
        group.finish();
    }
    Ok(())
}

/// Measures a round after 342 others, with as many bands.
fn decode(criterion: &mut Criterion) -> Result<(), Box<dyn Error>> {
    let participation = Participation::new(2_052, 342, 6)?;
    let strategy = Strategy::plan(Family::BandedOptimalMean, participation)?;
    let mut group = criterion.benchmark_group("correlated/decode");
    for dimension in DIMENSIONS {
        let mut decoder = Decoder::new(&strategy, dimension);
        for _ in 0..participation.separation() {
            decoder.decode(vec![vec![1.0; dimension]])?;
        }
        group.throughput(Throughput::Elements(dimension as u64));
        group.bench_function(BenchmarkId::from_parameter(dimension), |bencher| {
            bencher.iter(|| decoder.decode(vec![vec![black_box(1.0); dimension]]));
        });
    }
    group.finish();
    Ok(())
}
