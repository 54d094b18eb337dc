//! The reference round and the large round, here and in NumPy, alternately in one run.
//!
//! `cargo bench -p smolfed-benches --bench peers` needs `python3` with `numpy`; without them it
//! says so and measures nothing.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use rayon::ThreadPoolBuilder;
use smolfed::round::Training;
use smolfed::source::Simulated;
use smolfed_benches::reference::{self, COHORT, Files, LARGE_COHORT};

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test --benches` runs this program as well; it must not measure then.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    compare("reference round", COHORT, 1, 40)?;
    compare("large round", LARGE_COHORT, 2, 10)
}

/// Measures both alternately, `runs` times each; prints the medians, the minima and their ratios.
fn compare(
    name: &str,
    cohort_size: u32,
    threads: usize,
    runs: usize,
) -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let files = Files::new(folder)?;
    let Some(mut numpy) = NumPy::start(&files, cohort_size, threads)? else {
        println!(
            "{name}: not compared, because python3 with numpy is missing (`pip install numpy`)"
        );
        return Ok(());
    };
    let (experiment, federation) = reference::prepare(folder, cohort_size)?;
    let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
    let mut training = Training::simulation(&experiment, &federation)?;
    let mut step = || {
        let started = Instant::now();
        let record = pool.install(|| training.step(&mut Simulated(&federation)));
        record.map(|_| started.elapsed().as_secs_f64() * 1e3)
    };
    for _ in 0..2 {
        step()?;
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        ours.push(step()?);
        theirs.push(numpy.step()?);
    }
    let (ours, theirs) = (Times::new(ours), Times::new(theirs));
    println!("{name}, {cohort_size} devices, {threads} thread(s), {runs} runs each, alternately");
    println!("{:>24} {:>12} {:>12}", "", "median ms", "minimum ms");
    let row = |name: &str, median: f64, minimum: f64| {
        println!("{name:>24} {median:>12.1} {minimum:>12.1}");
    };
    row("smolfed", ours.median, ours.minimum);
    row(
        &format!("NumPy {}", numpy.version),
        theirs.median,
        theirs.minimum,
    );
    row(
        "times as fast",
        theirs.median / ours.median,
        theirs.minimum / ours.minimum,
    );
    Ok(())
}

struct Times {
    median: f64,
    minimum: f64,
}

impl Times {
    fn new(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |index: usize| times.get(index).copied().unwrap_or(f64::NAN);
        Self {
            median: at(times.len() / 2),
            minimum: at(0),
        }
    }
}

/// A running `reference_round.py`.
struct NumPy {
    process: Child,
    /// A line is a request for a round.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    version: String,
}

impl NumPy {
    /// Starts it with this many threads; `None` if Python or NumPy is missing.
    fn start(
        files: &Files,
        cohort_size: u32,
        threads: usize,
    ) -> Result<Option<Self>, Box<dyn Error>> {
        let has_numpy = Command::new("python3")
            .args(["-c", "import numpy"])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !has_numpy {
            return Ok(None);
        }
        let mut process = Command::new("python3")
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/peers/reference_round.py"
            ))
            .args([&files.images, &files.labels])
            .args([cohort_size.to_string(), threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let requests = process.stdin.take();
        let answers = process.stdout.take().ok_or("python3 has no output")?;
        let mut numpy = Self {
            process,
            requests,
            answers: BufReader::new(answers),
            version: String::new(),
        };
        let greeting = numpy.line()?;
        let version = greeting.strip_prefix("ready ");
        numpy.version = version.ok_or("reference_round.py failed")?.to_owned();
        Ok(Some(numpy))
    }

    /// Milliseconds of one round.
    fn step(&mut self) -> Result<f64, Box<dyn Error>> {
        if let Some(requests) = &mut self.requests {
            requests.write_all(b"\n")?;
            requests.flush()?;
        }
        Ok(self.line()?.parse()?)
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for NumPy {
    fn drop(&mut self) {
        // The script ends with its input.
        drop(self.requests.take());
        let _ = self.process.wait();
    }
}
