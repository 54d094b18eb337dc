//! Laplacian smoothing takes noise from a vector: post-processing, which costs no privacy.
//!
//! `cargo run -p smolfed-core --features hazmat --example smoothing`

use smolfed_core::{LaplacianSmoothing, stream::symmetric};
use smolfed_core::{Purpose, Root, StreamId};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const LENGTH: usize = 1_000;
    let mut stream = Root::from_seed(1).stream(StreamId {
        purpose: Purpose::ServerNoise,
        round: 0,
        device: 0,
    });
    let wave = |i: usize| (i as f32 * core::f32::consts::TAU / LENGTH as f32).sin();
    let noisy: Vec<f32> = (0..LENGTH)
        .map(|i| wave(i) + symmetric(&mut stream))
        .collect();

    println!("sigma  squared error  effective dimension");
    for sigma in [0.0, 1.0, 3.0, 10.0, 100.0] {
        let smoothing = LaplacianSmoothing::new(sigma)?;
        let mut smoothed = noisy.clone();
        smoothing.apply(&mut smoothed);
        let error: f32 = (0..LENGTH).map(|i| (smoothed[i] - wave(i)).powi(2)).sum();
        println!(
            "{sigma:>5}  {error:>13.2}  {:>19.1}",
            smoothing.effective_dim(LENGTH)
        );
    }
    Ok(())
}
