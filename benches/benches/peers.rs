//! The reference round and the large round, in smolfed and other programs, alternating in one run.
//!
//! `cargo bench -p smolfed-benches --bench peers` measures all, and `.. --bench peers reference`
//! the rounds whose name contains that word. The peers are the scripts of `benches/peers`. For a
//! missing peer, the installation command is printed instead of its times.

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use rayon::ThreadPoolBuilder;
use smolfed::data::{DataFolders, Federation};
use smolfed::experiment::Experiment;
use smolfed::round::TrainingLoop;
use smolfed::source::Simulated;
use smolfed_benches::peer::{Peer, Script};
use smolfed_benches::reference::{Files, LARGE, REFERENCE, Round};
use smolfed_benches::turns::{IN_A_ROW, Row};

/// Variants of smolfed: a title, and changes to the experiment.
const OURS: [(&str, &[&str]); 2] = [
    ("smolfed f32", &[]),
    ("smolfed fast", &["simulation.arithmetic=fast"]),
];

/// Other programs.
const PEERS: [Script; 4] = [
    Script {
        title: "NumPy",
        name: "numpy",
        module: "numpy",
    },
    Script {
        title: "PyTorch",
        name: "pytorch",
        module: "torch",
    },
    Script {
        title: "pfl",
        name: "pfl",
        module: "pfl.model.pytorch",
    },
    // smolfed from Python, with arrays instead of files.
    Script {
        title: "smolfed for Python",
        name: "smolfed",
        module: "smolfed",
    },
];

/// Measured rounds, each on one thread and on two.
const MEASUREMENTS: [Measurement; 2] = [
    // After a hundred rounds, `fast` has cached the Gram matrices of most devices.
    Measurement {
        round: REFERENCE,
        warm_up: 100,
        turns: 8,
    },
    Measurement {
        round: LARGE,
        warm_up: 2,
        turns: 2,
    },
];

/// Settings of a measured round.
struct Measurement {
    round: Round,
    /// Rounds of smolfed before the first measured one. The peers cache nothing.
    warm_up: usize,
    /// Number of turns of each program.
    turns: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` also runs this program, which must not measure then.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
    for measurement in &MEASUREMENTS {
        let Measurement { round, turns, .. } = measurement;
        if filter.is_some_and(|filter| !round.name.contains(filter.as_str())) {
            continue;
        }
        let files = Files::new(Path::new(env!("CARGO_TARGET_TMPDIR")), round)?;
        let config = round.config(&files, &[])?;
        let folders = DataFolders::of_experiment(None);
        let federation = Federation::new(&config.data, &folders, config.seed)?;
        for threads in [1, 2] {
            println!(
                "{round}, {threads} thread(s), {IN_A_ROW} times in a row, at most {turns} turns"
            );
            compare(measurement, &files, &federation, threads)?;
        }
    }
    Ok(())
}

/// Measures all programs in turn and prints the medians, the minima and their ratios.
fn compare(
    measurement: &Measurement,
    files: &Files,
    federation: &Federation,
    threads: usize,
) -> Result<(), Box<dyn Error>> {
    let round = &measurement.round;
    let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
    let mut experiments = Vec::new();
    for (title, changes) in OURS {
        let config = round.config(files, changes)?;
        experiments.push((title, Experiment::new(config, federation)?));
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for (title, experiment) in &experiments {
        let mut training = TrainingLoop::simulation(experiment, federation)?;
        let pool = &pool;
        let mut step = move || {
            let started = Instant::now();
            pool.install(|| training.step(&mut Simulated(federation)))?;
            Ok(started.elapsed().as_secs_f64() * 1e3)
        };
        for _ in 0..measurement.warm_up {
            step()?;
        }
        ours.push(Row::new((*title).to_owned(), step));
    }
    let numbers = [round.cohort_size.to_string(), threads.to_string()].map(OsString::from);
    let files = [&files.images, &files.labels].map(OsString::from);
    let arguments = [files, numbers].concat();
    for script in &PEERS {
        match Peer::start(script, "round", &arguments)? {
            Some(mut peer) => theirs.push(Row::new(peer.title.clone(), move || peer.step())),
            None => println!("{} is missing: {}", script.title, script.install()),
        }
    }
    for _ in 0..measurement.turns {
        for row in ours.iter_mut().chain(&mut theirs) {
            row.turn()?;
        }
    }
    println!("{:>24} {:>12} {:>12}", "", "median ms", "minimum ms");
    let line = |title: &str, [median, minimum]: [f64; 2]| {
        println!("{title:>24} {median:>12.1} {minimum:>12.1}");
    };
    for row in ours.iter().chain(&theirs) {
        line(&row.title, row.figures());
    }
    if let ([first, ..], [peer, ..]) = (&*ours, &*theirs) {
        line("times as fast", first.ratio(peer));
    }
    for (ours, theirs) in ours
        .iter()
        .flat_map(|row| theirs.iter().map(move |peer| (row, peer)))
    {
        let [median, _] = ours.ratio(theirs);
        println!(
            "{} takes {median:.1} times as long as {}",
            theirs.title, ours.title
        );
    }
    Ok(())
}
