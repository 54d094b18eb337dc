//! End-to-end tests: each runs the real program in an empty directory.
//!
//! | question | file |
//! | --- | --- |
//! | how a test runs the program and reads what it wrote | [`program`], [`run_dir`] |
//! | same bits for any number of threads, same seed, re-run from `config.toml` | [`same_bits`] |
//! | emulated microcontrollers compute the simulator's bits | [`boards`] |
//! | features of the frozen backbone are those of TensorFlow Lite's arithmetic | [`backbone`] |
//! | emulated microcontrollers take part in rounds, over lines with faults | [`firmware`] |
//! | emulated microcontrollers compute the simulator's bits of any shape | [`shapes`] |
//! | no floating point is in a client that trains in integers | [`integers`] |
//! | no panic can happen on a board | [`panics`] |
//! | sizes and instruction counts on a board | [`targets`] |
//! | Ctrl-C, `kill -9`, `--resume` | [`resume`] |
//! | several processes that share a run, over MPI | [`ranks`] |
//! | what goes to stdout and stderr, exit codes, `--set` | [`command_line`] |
//! | encoders without labels | [`contrast`] |
//! | correlated noise | [`correlated`] |
//! | personal models | [`personal`] |
//! | predictions for new rows, and exported models | [`inference`] |
//! | which method runs over which source | [`combinations`] |
//! | `account` and `plan` | [`accounting`] |
//! | `audit` | [`audit`] |
//! | invalid experiments | [`bad_config`] |
//! | what was released is paid for, once, and shared budgets hold | [`ledger`] |
//! | what runs say of themselves, and run directories of earlier versions | [`statements`] |
//! | data that cannot be read or learned from | [`bad_data`] |
//! | a directory or disk that cannot be written | [`full_disk`] |
//! | inputs that fuzzing found | [`fuzzed_inputs`] |
//! | the best of several private trials | [`selection`] |
//! | real devices among simulated ones; broken lines, dead devices, resuming | [`serve`] |
//! | keys that are revoked, added, exchanged and encrypted; archives of devices | [`keys`] |
//! | runs that are listed, compared and exported | [`runs`] |
//! | masked sums, in simulations | [`masked`] |
//! | MNIST | [`mnist`] |
//! | memory of a large federation | [`memory`] |
//! | a trial of wrong inputs, with what each answer must say | [`wrong_inputs`] |

mod accounting;
mod audit;
mod backbone;
mod boards;
mod combinations;
mod command_line;
mod contrast;
mod correlated;
mod fast;
mod features;
mod firmware;
mod full_disk;
mod inference;
mod integers;
mod keys;
mod ledger;
mod masked;
mod memory;
mod mnist;
mod networks;
mod own_data;
mod panics;
mod personal;
mod preprocessing;
mod program;
mod ranks;
mod resume;
mod run_dir;
mod runs;
mod same_bits;
mod selection;
mod serve;
mod shapes;
mod statements;
mod targets;
mod wrong_inputs;
