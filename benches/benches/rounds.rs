/// Rounds of one run, one after the other, so that it has kept what it keeps.
fn fast_round(
    criterion: &mut Criterion,
    (name, memory): (&str, &str),
    cohort_size: u32,
    threads: usize,
) -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let settings = [
        "simulation.arithmetic=fast",
        &format!("simulation.memory={memory}"),
    ];
    let (experiment, federation) = reference::prepare_with(folder, cohort_size, &settings)?;
    let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
    let mut training = Training::simulation(&experiment, &federation)?;
    // By then all devices but a few in 10,000 have taken part.
    let rounds = 10 * reference::DEVICES / cohort_size;
    pool.install(|| {
        for _ in 0..rounds {
            training.step(&mut Simulated(&federation))?;
        }
        Ok::<_, RoundError>(())
    })?;
    criterion.bench_function(&format!("round/{name}/{threads} thread(s)"), |bencher| {
        pool.install(|| bencher.iter(|| training.step(&mut Simulated(&federation)).is_ok()));
    });
    Ok(())
}
