//! Training steps of networks in smolfed and in PyTorch, alternating in one run: `cargo bench -p
//! smolfed-benches --bench network_peers`, optionally followed by the name of one network.

use std::error::Error;
use std::time::Instant;

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use smolfed_benches::networks::{Device, SAMPLES, all};
use smolfed_benches::peer::{Peer, Script};
use smolfed_benches::turns::Row;
use smolfed_core::model::Sequential;

/// The other program.
const PYTORCH: Script = Script {
    title: "PyTorch",
    name: "pytorch",
    module: "torch",
};
/// Number of turns of each program.
const TURNS: usize = 20;
/// Epochs per measurement: a single device is too fast for the clock's resolution.
const EPOCHS: usize = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` also runs this program, which must not measure then.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
    println!("{:>24} {:>12} {:>12}", "samples a second", "median", "best");
    for (name, network) in &all()? {
        if filter.is_none_or(|filter| name.contains(filter.as_str())) {
            compare(name, network)?;
        }
    }
    Ok(())
}

/// Measures all programs in turn and prints samples per second and their ratios.
fn compare(name: &str, network: &Sequential) -> Result<(), Box<dyn Error>> {
    println!("{name}");
    let mut rows = Vec::new();
    for threads in [1, 2] {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
        let devices = (0..threads * EPOCHS).map(|_| Device::new(network));
        let mut devices: Vec<Device<'_>> = devices.collect::<Result<_, _>>()?;
        let step = move || {
            let started = Instant::now();
            pool.install(|| devices.par_iter_mut().for_each(Device::epoch));
            // Time of one epoch on any thread.
            Ok(started.elapsed().as_secs_f64() * 1e3 / (threads * EPOCHS) as f64)
        };
        rows.push(Row::new(format!("smolfed, {threads} thread(s)"), step));
    }
    match Peer::start(&PYTORCH, "networks", &[name.into()])? {
        Some(mut peer) => rows.push(Row::new(peer.title.clone(), move || peer.step())),
        None => println!("{} is missing: {}", PYTORCH.title, PYTORCH.install()),
    }
    for _ in 0..TURNS {
        rows.iter_mut().try_for_each(Row::turn)?;
    }
    for row in &rows {
        let [median, best] = row
            .figures()
            .map(|milliseconds| SAMPLES as f64 / milliseconds * 1e3);
        println!("{:>24} {median:>12.0} {best:>12.0}", row.title);
    }
    for (a, b) in [(0, 2), (1, 0)] {
        if let (Some(a), Some(b)) = (rows.get(a), rows.get(b)) {
            let [median, best] = a.ratio(b);
            println!(
                "{} / {}: {median:.2} (medians), {best:.2} (best)",
                a.title, b.title
            );
        }
    }
    Ok(())
}
