//! The cost of a round to one device: frames, packets, airtime, computation and charge.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`smolfed_fleet::traffic`] | the frames of a round |
//! | [`packets`] | frames in packets of a link that carries only short ones |
//! | [`lorawan`] | airtime and pauses over LoRaWAN |
//! | [`work`] | the computation of a round |
//! | [`processors`] | measured counts |
//! | [`boards`] | clocks and currents |

pub mod boards;
pub mod lorawan;
pub mod packets;
pub mod processors;
pub mod work;

use serde_json::{Value, json};
use smolfed_core::wire::fragment::PacketSize;
use smolfed_core::wire::message::Invitation;
use smolfed_data::Federation;
use smolfed_engine::experiment::Experiment;
use smolfed_fleet::source::terms::ServeError;
use smolfed_fleet::traffic::{DeviceRound, Traffic};
use smolfed_release::number::{counted, grouped, significant};

use boards::{BOARDS, Board, RADIO_CURRENT, charge};
use lorawan::{LoRaWan, SPREADING_FACTORS};
use packets::{PACKET_SIZES, packet_count};
use work::Work;

/// The cost of a round to one device.
#[derive(Clone, Debug)]
pub struct DeviceCost {
    greeting: Traffic,
    round: Traffic,
    /// Rounds with the same model in another form.
    others: Vec<OtherRound>,
    samples: u32,
    work: Option<Work>,
}

/// A round in which the model has another form.
#[derive(Clone, Debug)]
struct OtherRound {
    key: &'static str,
    words: &'static str,
    traffic: Traffic,
}

impl OtherRound {
    /// Of devices that have the model before, and of those that know no other form than 32 bits.
    fn all(differences: Traffic, floats: Traffic) -> Vec<Self> {
        vec![
            Self {
                key: "round_of_differences",
                words: "if the model is sent as one byte per difference from the previous model",
                traffic: differences,
            },
            Self {
                key: "round_of_32_bits",
                words: "on devices without the feature `short`",
                traffic: floats,
            },
        ]
    }
}

impl DeviceCost {
    /// The first round of an experiment, for a device with the mean number of samples.
    ///
    /// # Errors
    /// [`ServeError`] if real devices cannot take part in the experiment.
    pub fn of(experiment: &Experiment, federation: &Federation) -> Result<Self, ServeError> {
        let DeviceRound {
            invitation,
            traffic,
            short,
        } = DeviceRound::of(experiment)?;
        let counts = federation.sample_counts();
        let devices = counts.len().max(1) as u64;
        let samples = counts.map(u64::from).sum::<u64>().div_ceil(devices);
        let samples = u32::try_from(samples).unwrap_or(u32::MAX);
        Ok(match short {
            None => Self::of_round(&invitation, traffic, samples),
            Some(short) => Self {
                others: OtherRound::all(short.differences, traffic),
                ..Self::of_round(&invitation, short.whole, samples)
            },
        })
    }

    fn of_round(invitation: &Invitation, round: Traffic, samples: u32) -> Self {
        let frames = round.up.len() + round.down.len();
        Self {
            greeting: Traffic::of_greeting(invitation.shape),
            work: Work::of(invitation, samples, frames),
            round,
            others: Vec::new(),
            samples,
        }
    }

    /// The cost in words: a name and a text for each line.
    #[must_use]
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let Self { round, .. } = self;
        let mut facts = vec![("a round", in_words(round))];
        for other in &self.others {
            let text = format!("{}, {}", in_words(&other.traffic), other.words);
            facts.push(("a round", text));
        }
        facts.push((
            "a session",
            format!("{}, before its first round", in_words(&self.greeting)),
        ));
        let sizes = PACKET_SIZES.map(|size| {
            let (up, down) = (
                packet_count(&round.up, size),
                packet_count(&round.down, size),
            );
            format!("{} bytes: {up} up, {down} down", size.get())
        });
        facts.push(("packets", format!("of at most {}", sizes.join("; "))));
        let factors = SPREADING_FACTORS.map(|factor| LoRaWan::of(factor, round));
        facts.extend(factors.map(|factor| ("LoRaWAN", of_lorawan(&factor))));
        match &self.work {
            None => facts.push((
                "a board",
                "computation unknown: it was measured for linear, logistic and softmax models \
                 without a personal part"
                    .to_owned(),
            )),
            Some(work) => facts.extend(
                BOARDS
                    .iter()
                    .map(|board| ("a board", of_board(board, work, self.samples))),
            ),
        }
        facts
    }

    /// The cost as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let packets_of = |size: PacketSize| {
            json!({
                "bytes": size.get(),
                "up": packet_count(&self.round.up, size),
                "down": packet_count(&self.round.down, size),
            })
        };
        let lorawan = SPREADING_FACTORS.map(|factor| {
            let found = LoRaWan::of(factor, &self.round);
            json!({
                "spreading_factor": found.spreading_factor,
                "packet_bytes": found.payload.get(),
                "uplinks": found.uplinks,
                "empty_uplinks": found.empty_uplinks,
                "downlinks": found.downlinks,
                "airtime_s": found.airtime_s(),
                "duty_cycle_s": found.duty_cycle_s(),
                "radio_uah": charge(RADIO_CURRENT, found.airtime_s()),
            })
        });
        let boards = self.work.iter().flat_map(|work| {
            BOARDS.iter().map(|board| {
                json!({
                    "name": board.name,
                    "processor": board.processor.name,
                    "clock_mhz": board.clock,
                    "current_ma": board.current,
                    "source": board.source,
                    "instructions": work.count(&board.processor.instructions).round(),
                    "seconds": seconds(board, work),
                    "processor_uah": charge(board.current, seconds(board, work)),
                })
            })
        });
        let mut document = json!({
            "round": traffic_to_json(&self.round),
            "greeting": traffic_to_json(&self.greeting),
            "packets": PACKET_SIZES.map(packets_of),
            "lorawan": lorawan,
            "samples": self.samples,
            "boards": boards.collect::<Vec<Value>>(),
        });
        for other in &self.others {
            document[other.key] = traffic_to_json(&other.traffic);
        }
        document
    }
}

fn traffic_to_json(traffic: &Traffic) -> Value {
    json!({
        "bytes_up": traffic.bytes_up(),
        "bytes_down": traffic.bytes_down(),
        "messages_up": traffic.up.len(),
        "messages_down": traffic.down.len(),
    })
}

fn in_words(traffic: &Traffic) -> String {
    let Traffic { up, down } = traffic;
    format!(
        "{} up in {}, {} down in {}",
        counted(traffic.bytes_up() as u64, "byte"),
        counted(up.len() as u64, "message"),
        counted(traffic.bytes_down() as u64, "byte"),
        counted(down.len() as u64, "message"),
    )
}

fn of_lorawan(found: &LoRaWan) -> String {
    let empty = match found.empty_uplinks {
        0 => String::new(),
        empty => format!(" and {empty} empty"),
    };
    format!(
        "SF{}, {} bytes: {} up{empty}, {} down; {} on the air, {} at 1 %, {} µAh to send",
        found.spreading_factor,
        found.payload.get(),
        found.uplinks,
        found.downlinks,
        time(found.airtime_s()),
        time(found.duty_cycle_s()),
        rough(charge(RADIO_CURRENT, found.airtime_s())),
    )
}

fn of_board(board: &Board, work: &Work, samples: u32) -> String {
    let seconds = seconds(board, work);
    format!(
        "{} ({}, {} MHz): roughly {} M instructions for {}, {}, {} µAh",
        board.name,
        board.processor.name,
        board.clock,
        rough(work.count(&board.processor.instructions) / 1e6),
        counted(samples.into(), "sample"),
        time(seconds),
        rough(charge(board.current, seconds)),
    )
}

fn seconds(board: &Board, work: &Work) -> f64 {
    work.count(&board.processor.cycles) / (board.clock * 1e6)
}

/// Two digits, and all before the point.
fn rough(value: f64) -> String {
    match value {
        large if large >= 99.5 => grouped(large.round() as u64),
        small => significant(small, 2),
    }
}

/// A duration in two digits and a unit that reads well.
fn time(seconds: f64) -> String {
    match seconds {
        short if short < 1.0 => format!("{} ms", rough(short * 1e3)),
        short if short < 100.0 => format!("{} s", rough(short)),
        long if long < 6_000.0 => format!("{} min", rough(long / 60.0)),
        long => format!("{} h", rough(long / 3_600.0)),
    }
}

#[cfg(test)]
mod tests {
    use smolfed_core::Grid;
    use smolfed_core::harness;
    use smolfed_core::wire::message::{ModelGrid, ModelShape};
    use smolfed_data::DataFolders;
    use smolfed_engine::config::{Config, DEFAULT, Override};
    use smolfed_engine::run;

    use super::*;

    /// An invitation to train a softmax model with so many features and classes.
    pub(super) fn invitation(features: u16, outputs: u16) -> Invitation {
        let asked = harness::invitation(None);
        Invitation {
            shape: ModelShape {
                features,
                outputs,
                ..asked.shape
            },
            ..asked
        }
    }

    /// The same with updates of 8 bits.
    fn of_8_bits(features: u16, outputs: u16) -> Invitation {
        let asked = invitation(features, outputs);
        Invitation {
            grid: Grid::new(asked.grid.clip_norm(), 8).unwrap(),
            ..asked
        }
    }

    /// Of the built-in experiment with these settings.
    fn cost(settings: &[&str]) -> Result<DeviceCost, ServeError> {
        let settings: Vec<Override> = settings.iter().map(|text| text.parse().unwrap()).collect();
        let config = Config::parse(DEFAULT, "the built-in experiment", &settings).unwrap();
        let (experiment, federation) =
            run::prepare(config, &DataFolders::of_experiment(None)).unwrap();
        DeviceCost::of(&experiment, &federation)
    }

    #[test]
    fn the_page_shows_the_cost_of_the_built_in_experiment() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cost.md");
        let page = std::fs::read_to_string(path).unwrap();
        for (name, text) in cost(&[]).unwrap().facts() {
            let line = format!("# {name:<10} {text}");
            assert!(page.contains(&line), "{line}");
        }
    }

    /// A table of LoRaWAN in an earlier study of 24 x 5 has 281 bytes up, in 2.4 s at SF9 with 51
    /// bytes.
    #[test]
    fn a_small_model_costs_what_a_study_has_found() {
        let asked = of_8_bits(24, 5);
        let round = Traffic::of_exchange(&asked, asked.shape.parameters(), 0);
        assert_eq!(round.bytes_up(), 281);
        let factor = lorawan::SpreadingFactor {
            bits: 9,
            payload: packets::of(51),
        };
        let found = LoRaWan::of(factor, &round);
        assert_eq!((found.uplinks, found.downlinks), (7, 18));
        let sent = found.airtime_us - 14 * factor.airtime_us(12);
        assert_eq!(sent, 2_444_288);
    }

    #[test]
    fn short_models_cost_what_was_promised() {
        let grid = "server.model_places=12";
        let with_grid = cost(&[grid]).unwrap();
        let [differences, floats] = &with_grid.others[..] else {
            panic!("{with_grid:?}");
        };
        assert_eq!(floats.traffic, cost(&[]).unwrap().round);
        let of_all = [&differences.traffic, &with_grid.round, &floats.traffic];
        let down = of_all.map(Traffic::bytes_down);
        assert!(down.is_sorted() && down[1] < down[2] * 3 / 5, "{down:?}");
        let document = with_grid.to_json();
        assert_eq!(document["round_of_32_bits"]["bytes_down"], down[2]);
        // 24 x 5, 8 bits, central trust.
        let asked = of_8_bits(24, 5);
        let of = |is_difference| {
            let grid = ModelGrid::new(12).unwrap();
            Traffic::of_short_exchange(&asked, 125, grid, is_difference).bytes_down()
        };
        let floats = Traffic::of_exchange(&asked, 125, 0).bytes_down();
        assert_eq!([floats, of(false), of(true)], [736, 454, 329]);
    }

    #[test]
    fn masks_noise_and_integers_change_the_cost() {
        let bytes_up = |settings: &[&str]| cost(settings).unwrap().round.bytes_up();
        let central = bytes_up(&[]);
        let local = bytes_up(&["privacy.trust=local"]);
        assert!(local > central, "{local}");
        assert_eq!(bytes_up(&["simulation.arithmetic=integer"]), central);
        let count = |settings: &[&str]| {
            let work = cost(settings).unwrap().work.unwrap();
            work.count(&processors::CORTEX_M0.instructions)
        };
        assert!(count(&["simulation.arithmetic=integer"]) < count(&[]) / 4.0);
        assert!(count(&["privacy.trust=local"]) > count(&[]));
    }

    #[test]
    fn devices_take_no_part_without_a_clip_norm_or_a_shared_model() {
        let error = cost(&["privacy="]).unwrap_err();
        assert!(matches!(error, ServeError::NoClipNorm), "{error}");
        let error = cost(&["method=local", "privacy=", "server="]).unwrap_err();
        assert!(matches!(error, ServeError::Combination(_)), "{error}");
    }

    #[test]
    fn json_has_all_that_the_text_has() {
        let cost = cost(&[]).unwrap();
        let document = cost.to_json();
        assert_eq!(document["round"]["bytes_up"], cost.round.bytes_up());
        assert_eq!(document["greeting"]["messages_down"], 2);
        assert_eq!(document["packets"][1]["bytes"], 51);
        assert_eq!(document["lorawan"][2]["spreading_factor"], 9);
        assert_eq!(document["boards"].as_array().unwrap().len(), BOARDS.len());
        assert_eq!(document["samples"], 5);
    }

    #[test]
    fn times_have_two_digits_and_a_unit() {
        let found = [0.0123, 0.996, 12.34, 99.0, 240.0, 7_300.0, 4e6].map(time);
        let expected = ["12 ms", "996 ms", "12 s", "99 s", "4 min", "2 h", "1,111 h"];
        assert_eq!(found, expected);
    }
}
