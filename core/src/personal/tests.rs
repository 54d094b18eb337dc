//! Personal training against golden values of an independent implementation (f64), and properties
//! of every device.

use core::num::NonZeroU32;
use std::{string::String, vec, vec::Vec};

use serde_json::Value;

use super::*;
use crate::{
    clip::clip_l2,
    model::{
        Activation, Distilled, Encoder, Linear, Parametric, Softmax, WithRow, log_probabilities,
    },
    noise::DiscreteGaussian,
    params::{ClipNorm, LearningRate},
    quantize::Grid,
    samples::SampleSlice,
    stream::{Purpose, Root, Stream, StreamId},
};

fn file(name: &str) -> Value {
    let path = std::format!(
        "{}/../tests/vectors/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f32> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        other => vec![other.as_f64().unwrap() as f32],
    }
}

fn number(value: &Value) -> f32 {
    value.as_f64().unwrap() as f32
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Converts the file's layer, features (with the bias last) over outputs, to class-major weights
/// and then biases.
fn layer(value: &Value) -> Vec<f32> {
    let rows: Vec<Vec<f32>> = list(value).iter().map(numbers).collect();
    let (bias, weights) = rows.split_last().unwrap();
    let outputs = 0..bias.len();
    let weights = outputs.flat_map(|c| weights.iter().map(move |row| row[c]));
    weights.chain(bias.iter().copied()).collect()
}

/// Returns the features without the file's constant 1, and the labels.
fn device(x: &Value, y: &Value) -> (Vec<f32>, Vec<u16>) {
    let features = list(x).iter().flat_map(|row| {
        let row = numbers(row);
        row[..row.len() - 1].to_vec()
    });
    let labels = numbers(y).iter().map(|y| *y as u16).collect();
    (features.collect(), labels)
}

fn close(found: &[f32], expected: &[f32], name: &str) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() < 2e-6,
            "{name}: {found} {expected}"
        );
    }
}

fn stream(purpose: Purpose) -> Stream {
    Root::from_seed(1).stream(StreamId {
        purpose,
        round: 0,
        device: 0,
    })
}

/// Full batches, as in the files.
fn settings(rate: f32, steps: u32) -> PersonalTraining {
    PersonalTraining {
        effort: Effort::Epochs(steps),
        batch_size: NonZeroU32::new(100).unwrap(),
        learning_rate: LearningRate::new(rate).unwrap(),
        weight_decay: Penalty::NONE,
    }
}

struct Memory {
    gradient: Vec<f32>,
    order: Vec<u32>,
    scratch: Vec<f32>,
}

impl Memory {
    fn of(model: &impl Model, samples: usize) -> Self {
        Self {
            gradient: vec![0.0; model.parameter_count()],
            order: vec![0; samples],
            scratch: vec![0.0; model.scratch_count(2)],
        }
    }

    fn steps(&mut self) -> StepMemory<'_> {
        StepMemory {
            gradient: &mut self.gradient,
            order: &mut self.order,
            scratch: &mut self.scratch,
        }
    }
}

fn penalty(value: &Value) -> Penalty {
    Penalty::new(number(value)).unwrap()
}

/// Every device of every round of every run, each from the file's state before the round.
#[test]
#[cfg_attr(feature = "micromath", ignore = "its exp is approximate")]
fn pmtl_and_its_baselines_agree() {
    let file = file("pmtl");
    let (rate, steps) = (number(&file["eta"]), file["E"].as_u64().unwrap() as u32);
    let model = Softmax::new(2, 3);
    for run in list(&file["runs"]) {
        let variant = run["variant"].as_str().unwrap();
        let mut own: Vec<Vec<f32>> = list(&file["inputs"]["w_k0"]).iter().map(layer).collect();
        let mut offsets = vec![vec![0.0; 9]; 3];
        for round in list(&run["rounds"]) {
            let shared = layer(&round["w_tilde"]);
            for client in list(&round["clients"]) {
                let k = client["k"].as_u64().unwrap() as usize;
                let name = std::format!("{variant} {} device {k}", run["gamma"]);
                let (x, y) = device(&file["inputs"]["X"][k], &file["inputs"]["y"][k]);
                let samples = SampleSlice::new(&x, &y, 2).unwrap();
                let anchor = Anchor {
                    at: &shared,
                    strength: penalty(&file["lambda_"]),
                    importance: None,
                };
                let pulled = ["pmtl", "pmtl_code", "fedprox"].contains(&variant);
                let (start, rate) = match variant {
                    "pmtl" | "pmtl_code" => (own[k].clone(), rate),
                    "ppsgd" => {
                        let both = shared.iter().zip(&offsets[k]).map(|(w, o)| w + o);
                        (both.collect(), 2.0 * rate)
                    }
                    _ => (shared.clone(), rate),
                };
                let mut local = start;
                let before = own[k].clone();
                let mut memory = Memory::of(&model, y.len());
                descend(
                    &model,
                    &samples,
                    &mut local,
                    pulled.then_some(&anchor),
                    &settings(rate, steps),
                    &mut stream(Purpose::BatchShuffle),
                    memory.steps(),
                )
                .unwrap();
                let mut update = vec![0.0; 9];
                match variant {
                    "pmtl" => difference(&local, &before, &mut update),
                    "ppsgd" => {
                        split_step(&local, &shared, &mut offsets[k], 1.0, &mut update);
                        close(&offsets[k], &layer(&client["theta"]), &name);
                    }
                    _ => difference(&local, &shared, &mut update),
                }
                own[k] = local;
                close(&update, &layer(&client["update"]), &name);
                let norm = clip_l2(&mut update, number(&run["gamma"])).unwrap();
                close(&[norm], &[number(&client["norm"])], &name);
                close(&update, &layer(&client["clipped"]), &name);
            }
        }
    }
}

#[test]
#[cfg_attr(feature = "micromath", ignore = "its exp is approximate")]
fn fine_tuning_objectives_agree() {
    let file = file("finetune");
    let (x, y) = device(&file["X"], &file["y"]);
    let samples = SampleSlice::new(&x, &y, 2).unwrap();
    let model = Softmax::new(2, 3);
    let (global, student) = (layer(&file["W_global"]), layer(&file["W"]));
    let rate = number(&file["eta"]);
    let strength = penalty(&file["lambda_"]);
    let mut memory = Memory::of(&model, 4);

    let mut fisher = vec![0.0; 9];
    fisher_diagonal(&model, &global, &samples, &mut memory.scratch, &mut fisher).unwrap();
    close(&fisher, &layer(&file["fisher"]["expected"]), "fisher");

    let empirical = layer(&file["fisher"]["empirical"]);
    let ones = vec![1.0; 9];
    let objectives = [
        ("vanilla", None),
        ("mean_regularisation", Some(&ones)),
        ("ewc_expected_fisher", Some(&fisher)),
        ("ewc_empirical_fisher", Some(&empirical)),
    ];
    for (name, importance) in objectives {
        let mut local = student.clone();
        let anchor = importance.map(|importance| Anchor {
            at: &global,
            strength,
            importance: Some(importance),
        });
        let order = &mut stream(Purpose::BatchShuffle);
        let once = settings(rate, 1);
        descend(
            &model,
            &samples,
            &mut local,
            anchor.as_ref(),
            &once,
            order,
            memory.steps(),
        )
        .unwrap();
        let expected = &file["objectives"][name]["w_after_one_step"];
        close(&local, &layer(expected), name);
    }

    let mut teacher = vec![0.0; 12];
    model
        .batch_scores(&global, &samples, &[0, 1, 2, 3], &mut [], &mut teacher)
        .unwrap();
    for row in teacher.chunks_exact_mut(3) {
        log_probabilities(row);
    }
    let expected = numbers(&file["teacher_probabilities"]);
    let found: Vec<f32> = teacher.iter().map(|x| crate::math::exp(*x)).collect();
    close(&found, &expected, "teacher");
    let model = Distilled::new(model, &teacher, strength.get());
    let expected = &file["objectives"]["symmetrised_kl"];
    let samples = WithRow(&samples);
    let loss = model
        .loss_and_gradient(
            &student,
            &samples,
            &[0, 1, 2, 3],
            &mut memory.scratch,
            &mut memory.gradient,
        )
        .unwrap();
    close(&[loss], &[number(&expected["loss"])], "kl");
    close(&memory.gradient, &layer(&expected["gradient"]), "kl");
}

fn network() -> Encoder<usize, usize, usize> {
    Encoder::new(3, 2, 3, Activation::Tanh)
}

/// The encoder of the file, then device k's head.
fn parameters(file: &Value, k: usize) -> Vec<f32> {
    let inputs = &file["inputs"];
    [layer(&inputs["U0"]), layer(&inputs["V0"][k])].concat()
}

#[test]
#[cfg_attr(feature = "micromath", ignore = "its exp is approximate")]
fn the_encoder_agrees() {
    let file = file("dpfedmtl");
    let (x, y) = device(&file["inputs"]["X"][0], &file["inputs"]["y"][0]);
    let samples = SampleSlice::new(&x, &y, 3).unwrap();
    let (model, parameters) = (network(), parameters(&file, 0));
    let expected = &file["forward_backward_client0"];
    let mut memory = Memory::of(&model, 3);
    let loss = model
        .loss_and_gradient(
            &parameters,
            &samples,
            &[0, 1, 2],
            &mut memory.scratch,
            &mut memory.gradient,
        )
        .unwrap();
    close(&[loss], &[number(&expected["loss"])], "loss");
    let gradient = [layer(&expected["dU"]), layer(&expected["dV"])].concat();
    close(&memory.gradient, &gradient, "gradient");
    let mut scores = vec![0.0; 9];
    model
        .batch_scores(&parameters, &samples, &[0, 1, 2], &mut [], &mut scores)
        .unwrap();
    close(&scores, &numbers(&expected["logits"]), "logits");
}

/// One round of three settings: free, clipped, clipped with the file's noise in each step.
#[test]
#[cfg_attr(feature = "micromath", ignore = "its exp is approximate")]
fn shared_encoders_agree() {
    let file = file("dpfedmtl");
    let model = network();
    let shared = model.encoder_count();
    let settings = settings(
        number(&file["eta"]),
        file["local_steps"].as_u64().unwrap() as u32,
    );
    for name in ["round_plain", "round_clipped", "round_clipped_noise"] {
        let round = &file[name];
        let mut mean = vec![0.0; shared];
        for (index, client) in list(&round["clients"]).iter().enumerate() {
            let k = client["client"].as_u64().unwrap() as usize;
            let (x, y) = device(&file["inputs"]["X"][k], &file["inputs"]["y"][k]);
            let samples = SampleSlice::new(&x, &y, 3).unwrap();
            let mut local = parameters(&file, k);
            let mut memory = Memory::of(&model, y.len());
            let mut step = 0;
            let release = |gradient: &mut [f32]| {
                let gradient = &mut gradient[..shared];
                if let Some(bound) = round["clip"].as_f64() {
                    clip_l2(gradient, bound as f32).unwrap();
                }
                if round["noise"] == true {
                    let noise = layer(&file["noise"][index][step]);
                    for (g, noise) in gradient.iter_mut().zip(noise) {
                        *g += noise;
                    }
                }
                step += 1;
                Ok(())
            };
            descend_released(
                &model,
                &samples,
                &mut local,
                &settings,
                &mut stream(Purpose::BatchShuffle),
                memory.steps(),
                release,
            )
            .unwrap();
            for (mean, w) in mean.iter_mut().zip(&local) {
                *mean += w / 2.0;
            }
        }
        close(&mean, &layer(&round["U_next"]), name);
    }
}

/// The update is the movement of the local model, on the grid, without the head.
#[test]
fn noisy_steps_send_what_they_stepped() {
    let file = file("dpfedmtl");
    let (x, y) = device(&file["inputs"]["X"][2], &file["inputs"]["y"][2]);
    let samples = SampleSlice::new(&x, &y, 3).unwrap();
    let model = network();
    let shared = model.encoder_count();
    let grid = Grid::new(ClipNorm::new(0.15).unwrap(), 16).unwrap();
    let noise = DiscreteGaussian::new(1 << 14, 1).unwrap();
    for noise in [None, Some(&noise)] {
        let start = parameters(&file, 2);
        let (mut local, mut sent) = (start.clone(), vec![0; shared]);
        let mut steps = NoisySteps {
            grid,
            noise,
            stream: stream(Purpose::DeviceNoise),
            sent: &mut sent,
            clipped: 0,
            releases: 0,
        };
        let mut memory = Memory::of(&model, y.len());
        descend_released(
            &model,
            &samples,
            &mut local,
            &settings(0.4, 3),
            &mut stream(Purpose::BatchShuffle),
            memory.steps(),
            |gradient| steps.release(gradient),
        )
        .unwrap();
        assert!(steps.clipped > 0);
        for ((w, start), sent) in local.iter().zip(&start).zip(&sent) {
            let moved = start - (0.4 * *sent as f64 * grid.step()) as f32;
            assert!((w - moved).abs() < 1e-6, "{w} {moved}");
        }
        if noise.is_none() {
            // Three gradients of at most 2^16 steps each.
            let squares: i64 = sent.iter().map(|s| s * s).sum();
            assert!(squares <= 9 << 32);
        }
    }
}

/// The regulariser acts in every step, not only in the first (papers.md P2): with a pull this
/// strong the model stays where the first step leaves it.
#[test]
fn the_pull_is_active_in_every_step() {
    let (x, y) = ([0.5, -1.0, 1.0, 0.2], [0u16, 1]);
    let samples = SampleSlice::new(&x, &y, 2).unwrap();
    let model = Softmax::new(2, 2);
    let far = |steps: u32, strength: f32| {
        let anchor = Anchor {
            at: &[0.0; 6],
            strength: Penalty::new(strength).unwrap(),
            importance: None,
        };
        let mut local = vec![0.0; 6];
        let mut memory = Memory::of(&model, 2);
        let settings = settings(0.1, steps);
        let order = &mut stream(Purpose::BatchShuffle);
        descend(
            &model,
            &samples,
            &mut local,
            Some(&anchor),
            &settings,
            order,
            memory.steps(),
        )
        .unwrap();
        crate::lanes::norm(&local)
    };
    let one = far(1, 10.0);
    assert!((far(20, 10.0) / one - 1.0).abs() < 0.05);
    assert!(far(20, 0.0) > 5.0 * one);
}

#[test]
fn steps_are_counted_and_wrong_memory_is_refused() {
    let (x, y) = ([0.5, -1.0, 1.0, 0.2, 0.3, 0.1], [0u16, 1, 1]);
    let samples = SampleSlice::new(&x, &y, 2).unwrap();
    let model = Softmax::new(2, 2);
    let run = |effort, length: usize, rate: f32| {
        let mut settings = settings(rate, 1);
        settings.effort = effort;
        settings.batch_size = NonZeroU32::new(2).unwrap();
        let mut memory = Memory::of(&model, 3);
        let order = &mut stream(Purpose::BatchShuffle);
        descend(
            &model,
            &samples,
            &mut vec![0.0; length],
            None,
            &settings,
            order,
            memory.steps(),
        )
    };
    let steps = |n| Effort::Steps(NonZeroU32::new(n).unwrap());
    assert_eq!(run(steps(1), 6, 0.1).unwrap().steps, 1);
    assert_eq!(run(steps(5), 6, 0.1).unwrap().steps, 5);
    assert_eq!(run(Effort::Epochs(3), 6, 0.1).unwrap().steps, 6);
    let wrong = TrainError::Workspace {
        expected: 6,
        found: 5,
    };
    assert_eq!(run(steps(1), 5, 0.1), Err(wrong));
    // A step of 10^38 exceeds the range of f32.
    let model = Linear::new(2);
    let samples = SampleSlice::new(&x, &[1e3f32, -1e3, 0.0], 2).unwrap();
    let mut memory = Memory::of(&model, 3);
    let order = &mut stream(Purpose::BatchShuffle);
    let (local, wild) = (&mut [0.0; 3], settings(1e38, 3));
    let found = descend(&model, &samples, local, None, &wild, order, memory.steps());
    assert_eq!(found, Err(TrainError::Diverged));
}

/// [`descend`] in pieces of up to `most` samples, or with split samples and steps.
fn descend_in_pieces<M: Model<Target = u16>, const SPLIT: bool>(
    model: &M,
    samples: &SampleSlice<'_, u16>,
    settings: &PersonalTraining,
    anchor: &Anchor<'_>,
    most: usize,
) -> (Vec<f32>, TrainReport) {
    let steps: Steps<'_, _, _, SPLIT> = Steps {
        model,
        samples,
        settings,
    };
    let (mut local, mut memory) = (anchor.at.to_vec(), Memory::of(model, samples.len()));
    let mut memory = memory.steps();
    let mut cursor = steps.begin(&local, &mut memory).unwrap();
    let (mut report, mut rng) = (Report::default(), stream(Purpose::BatchShuffle));
    let adjust = &mut penalties(Some(anchor), settings);
    while !steps.is_complete(&cursor) {
        let shuffle = |order: &mut [u32]| crate::stream::shuffle(order, &mut rng);
        let (cursor, local, memory) = (&mut cursor, &mut local, &mut memory);
        steps
            .advance(cursor, shuffle, local, memory, most, adjust, &mut report)
            .unwrap();
    }
    let report = steps.finish(&cursor, &local, report).unwrap();
    (local, report)
}

/// In pieces of any lengths, and with split samples and steps. Counts passes, steps, or none.
#[test]
fn steps_in_pieces_have_the_bits_of_the_whole() {
    fn check<M: Model<Target = u16>>(model: &M) {
        let x: Vec<f32> = (0..14).map(|i| (i * i % 7) as f32 / 7.0 - 0.4).collect();
        let samples = &SampleSlice::new(&x, &[0, 1, 2, 0, 1, 2, 1], 2).unwrap();
        let at = (0..model.parameter_count() as u8).map(|i| f32::from(i % 5) / 5.0 - 0.4);
        let at: Vec<f32> = at.collect();
        let anchor = &Anchor {
            at: &at,
            strength: Penalty::new(0.3).unwrap(),
            importance: Some(&vec![0.7; at.len()]),
        };
        let counted = [1, 4, 8].map(|n| Effort::Steps(NonZeroU32::new(n).unwrap()));
        for effort in counted.into_iter().chain([0, 3].map(Effort::Epochs)) {
            let settings = &PersonalTraining {
                effort,
                batch_size: NonZeroU32::new(3).unwrap(),
                weight_decay: Penalty::new(0.1).unwrap(),
                ..settings(0.2, 1)
            };
            let (mut local, mut memory) = (at.clone(), Memory::of(model, 7));
            let (order, memory) = (&mut stream(Purpose::BatchShuffle), memory.steps());
            let anchored = Some(anchor);
            let report = descend(
                model, samples, &mut local, anchored, settings, order, memory,
            );
            let whole = (local, report.unwrap());
            for most in 1..=4 {
                let parts = descend_in_pieces::<_, false>(model, samples, settings, anchor, most);
                assert_eq!(parts, whole, "{effort:?}, {most}");
            }
            let split = descend_in_pieces::<_, true>(model, samples, settings, anchor, 1);
            assert_eq!(split, whole, "{effort:?}");
        }
    }

    check(&Softmax::new(2, 3));
    check(&Encoder::new(2_usize, 4_usize, 3_usize, Activation::Tanh));
}

/// Relu and tanh against differences of the loss.
#[test]
#[cfg_attr(feature = "micromath", ignore = "its exp is approximate")]
fn gradients_of_the_encoder_are_derivatives() {
    let mut rng = stream(Purpose::Synthesis);
    for activation in [Activation::Tanh, Activation::Relu] {
        let model = Encoder::new(4usize, 5usize, 3usize, activation);
        let mut parameters = vec![0.0; model.parameter_count()];
        model.initialise(&mut parameters, &mut rng).unwrap();
        assert!(parameters[20..].iter().all(|x| *x == 0.0));
        for w in &mut parameters[20..] {
            *w = stream::symmetric(&mut rng);
        }
        let x: Vec<f32> = (0..12).map(|_| stream::symmetric(&mut rng)).collect();
        let samples = SampleSlice::new(&x, &[0u16, 2, 1], 4).unwrap();
        let mut memory = Memory::of(&model, 3);
        let mut loss = |parameters: &[f32]| {
            let StepMemory {
                gradient, scratch, ..
            } = memory.steps();
            let loss = model
                .loss_and_gradient(parameters, &samples, &[0, 1, 2], scratch, gradient)
                .unwrap();
            (loss, gradient.to_vec())
        };
        let (_, gradient) = loss(&parameters);
        for i in 0..parameters.len() {
            let mut moved = parameters.clone();
            moved[i] += 1e-2;
            let up = loss(&moved).0;
            moved[i] -= 2e-2;
            let slope = (up - loss(&moved).0) / 2e-2;
            let name: String = std::format!("{activation:?} {i}");
            assert!(
                (slope - gradient[i]).abs() < 2e-3,
                "{name}: {slope} {}",
                gradient[i]
            );
        }
    }
}
