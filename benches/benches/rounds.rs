//! Whole rounds: the reference round on one thread and on two, and the large round on two, in `f32`
//! and in `fast` arithmetic, with cached Gram matrices and with recomputed ones. Also the
//! evaluation of 10,000 images.

use std::error::Error;
use std::path::Path;

use criterion::{BatchSize, Criterion};
use rayon::ThreadPoolBuilder;
use smolfed::evaluation::samples::evaluate;
use smolfed::round::{TrainingLoop, TrainingState};
use smolfed::source::Simulated;
use smolfed_benches::reference::{LARGE, REFERENCE, Round};

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = smolfed_benches::criterion().configure_from_args();
    measure(&mut criterion, &REFERENCE, 1)?;
    measure(&mut criterion, &REFERENCE, 2)?;
    measure_fast(&mut criterion, &REFERENCE, 1, "1 GiB")?;
    measure_fast(&mut criterion, &REFERENCE, 1, "0")?;
    measure_fast(&mut criterion, &REFERENCE, 2, "1 GiB")?;
    measure(&mut criterion, &LARGE, 2)?;
    measure_fast(&mut criterion, &LARGE, 2, "0")?;
    measure_evaluation(&mut criterion, "f32")?;
    measure_evaluation(&mut criterion, "fast")?;
    criterion.final_summary();
    Ok(())
}

/// Returns whether the arguments select this round. Preparing it takes longer than measuring it.
fn is_wanted(name: &str) -> bool {
    let mut arguments = std::env::args().skip(1);
    // The number of an option such as `--profile-time 8` is not a filter.
    let is_filter =
        |argument: &String| !argument.starts_with('-') && argument.parse::<f64>().is_err();
    let filter = arguments.find(is_filter);
    filter.is_none_or(|filter| name.contains(&filter))
}

fn measure(criterion: &mut Criterion, round: &Round, threads: usize) -> Result<(), Box<dyn Error>> {
    let name = format!("{}/{threads} thread(s)", round.name);
    if !is_wanted(&name) {
        return Ok(());
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (experiment, federation) = round.prepare(folder)?;
    let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
    // The third round of a run: the model is no longer zero, and every measured round is the same.
    let mut state = TrainingState::default();
    pool.install(|| {
        let mut training = TrainingLoop::simulation(&experiment, &federation)?;
        for _ in 0..2 {
            training.step(&mut Simulated(&federation))?;
        }
        state = training.state("")?;
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    })
    .map_err(|error| error.to_string())?;
    criterion.bench_function(&name, |bencher| {
        pool.install(|| {
            bencher.iter_batched_ref(
                || {
                    let root = experiment.root()?;
                    TrainingLoop::new(&experiment, &federation, root, &state, None, None)
                },
                |training| {
                    let step = |training: &mut TrainingLoop<'_>| {
                        training.step(&mut Simulated(&federation)).is_ok()
                    };
                    training.as_mut().map(step).is_ok_and(|is_done| is_done)
                },
                BatchSize::LargeInput,
            );
        });
    });
    Ok(())
}

/// Measures consecutive rounds of one run, which fill the cache of size `memory`.
fn measure_fast(
    criterion: &mut Criterion,
    round: &Round,
    threads: usize,
    memory: &str,
) -> Result<(), Box<dyn Error>> {
    let name = format!("fast {}, {memory} kept/{threads} thread(s)", round.name);
    if !is_wanted(&name) {
        return Ok(());
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let memory_key = format!("simulation.memory={memory}");
    let changes = ["simulation.arithmetic=fast", &memory_key];
    let (experiment, federation) = round.prepare_with(folder, &changes)?;
    let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
    let mut training = TrainingLoop::simulation(&experiment, &federation)?;
    // With 200 rounds, all devices of the reference round but a few in 10,000 have taken part.
    // Without a cache, all rounds are alike.
    let warm_up = if memory == "0" { 2 } else { 200 };
    for _ in 0..warm_up {
        pool.install(|| training.step(&mut Simulated(&federation)))?;
    }
    criterion.bench_function(&name, |bencher| {
        pool.install(|| bencher.iter(|| training.step(&mut Simulated(&federation)).is_ok()));
    });
    Ok(())
}

/// Evaluates a fifth of the images of the reference round, held out.
fn measure_evaluation(criterion: &mut Criterion, arithmetic: &str) -> Result<(), Box<dyn Error>> {
    let name = format!("{arithmetic} evaluation of 10,000 images/1 thread(s)");
    if !is_wanted(&name) {
        return Ok(());
    }
    let arithmetic_key = format!("simulation.arithmetic={arithmetic}");
    let changes = ["data.test=10000", "data.devices=800", &arithmetic_key];
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (experiment, federation) = REFERENCE.prepare_with(folder, &changes)?;
    let pool = ThreadPoolBuilder::new().num_threads(1).build()?;
    let method = &experiment.method();
    let global = TrainingState::new(&experiment).global;
    criterion.bench_function(&name, |bencher| {
        pool.install(|| {
            bencher.iter(|| {
                let properties = method.properties();
                let (task, arithmetic) = (&properties.task, properties.arithmetic.name());
                evaluate(task, arithmetic, &global, federation.test(), 1.0).is_ok()
            });
        });
    });
    Ok(())
}
