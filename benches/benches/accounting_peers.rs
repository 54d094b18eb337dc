//! A query of ε and a calibration in smolfed, from Python, and in dp_accounting, alternating in one
//! run: `cargo bench -p smolfed-benches --bench accounting_peers`.

use std::error::Error;
use std::ffi::OsString;
use std::time::Instant;

use smolfed_accounting::{
    Accountant, CalibrationProblem, Delta, Epsilon, Mechanism, NoiseMultiplier, PrivacyEvent,
    Sampling, SamplingRate,
};
use smolfed_benches::peer::{Peer, Script};
use smolfed_benches::turns::Row;

/// Other programs: the package of `python/`, and dp_accounting's privacy loss distributions.
const PEERS: [Script; 2] = [
    Script {
        title: "smolfed for Python",
        name: "smolfed",
        module: "smolfed",
    },
    Script {
        title: "dp_accounting",
        name: "dp_accounting",
        module: "dp_accounting",
    },
];
/// Questions, as named in the scripts, and the number of turns for each.
const QUESTIONS: [(&str, usize); 2] = [("epsilon", 8), ("noise", 2)];
/// Relative growth of δ between questions: answers are cached, and each must be computed.
const DELTA_GROWTH: f64 = 1e-9;

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test --benches` also runs this program, which must not measure then.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let event = event()?;
    for (question, turns) in QUESTIONS {
        println!("{question}: noise multiplier 1, Poisson at 5 %, 1,000 rounds, delta 1e-6");
        let mut delta = 1e-6;
        let ours = move || {
            delta *= 1.0 + DELTA_GROWTH;
            let started = Instant::now();
            ask(question, event, Delta::new(delta)?)?;
            Ok(started.elapsed().as_secs_f64() * 1e3)
        };
        let mut rows = vec![Row::new("smolfed".to_owned(), ours)];
        for script in &PEERS {
            match Peer::start(script, "accounting", &[OsString::from(question)])? {
                Some(mut peer) => rows.push(Row::new(peer.title.clone(), move || peer.step())),
                None => println!("{} is missing: {}", script.title, script.install()),
            }
        }
        for _ in 0..turns {
            rows.iter_mut().try_for_each(Row::turn)?;
        }
        println!("{:>32} {:>12} {:>12}", "", "median ms", "minimum ms");
        for row in &rows {
            let [median, minimum] = row.figures();
            println!("{:>32} {median:>12.3} {minimum:>12.3}", row.title);
        }
    }
    Ok(())
}

fn event() -> Result<PrivacyEvent, Box<dyn Error>> {
    let noise_multiplier = NoiseMultiplier::new(1.0)?;
    let sampling = Sampling::poisson(1, SamplingRate::new(0.05)?)?;
    Ok(PrivacyEvent::new(
        Mechanism::Gaussian { noise_multiplier },
        sampling,
        1_000,
    ))
}

/// Computes ε of the event, or the noise for ε = 8.
fn ask(question: &str, event: PrivacyEvent, delta: Delta) -> Result<(), Box<dyn Error>> {
    match question {
        "epsilon" => {
            Accountant::Pld.epsilon(&[event], delta)?;
        }
        _ => {
            let problem = CalibrationProblem {
                accountant: Accountant::Pld,
                event,
                spent: &[],
                target: Epsilon::new(8.0)?,
                delta,
            };
            problem.noise_multiplier()?;
        }
    }
    Ok(())
}
