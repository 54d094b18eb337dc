//! A system clock that jumps affects only time stamps.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::program::{Place, program};

use super::device::Device;
use super::{FULL, assert_is_the_simulation, part_of, provision, serve, wait};

/// The wall clock is alternately decades ahead and decades behind at each read. The monotonic clock
/// is unchanged, as when somebody sets the system clock.
const JUMPS: &str = "
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    static const long years[] = {60, -40};
    static unsigned looks;
    long result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME) {
        unsigned look = __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
        time->tv_sec += years[look % 2] * 365 * 86400;
    }
    return result;
}
";

/// Compiles the clock, if there is a C compiler. CI requires one.
fn jumping_clock(place: &Place) -> Option<PathBuf> {
    if Command::new("cc").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "no compiler for C");
        println!("NOT CHECKED: no compiler for C (apt-get install gcc)");
        return None;
    }
    place.write("clock.c", JUMPS);
    let library = place.path("clock.so");
    let mut compiler = place.command("cc");
    compiler.args(["-shared", "-fPIC", "clock.c", "-o"]);
    assert!(compiler.arg(&library).status().unwrap().success());
    Some(library)
}

#[test]
fn a_clock_that_jumps_changes_time_stamps_alone() {
    let place = Place::new();
    let Some(clock) = jumping_clock(&place) else {
        return;
    };
    let start = |arguments: &str| -> Child {
        let mut command = place.command(program());
        command
            .args(arguments.split_whitespace())
            .env("LD_PRELOAD", &clock)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let settings = format!("{FULL} --set rounds=6");
    provision(&place, &settings);
    let device = |number| {
        Device(start(&format!(
            "device --model softmax:64x10 --provision fleet/device-{number}.bin \
             --ledger fleet/device-{number}.ledger --connect unix:fleet.sock"
        )))
    };
    let _devices: Vec<Device> = (0..4).map(device).collect();
    let arguments = serve(
        "60s",
        &format!("{settings} --http 127.0.0.1:0 --log-file log"),
    );
    wait(start(&arguments), &arguments).success();
    // The clock was read.
    let log = std::fs::read_to_string(place.path("log")).unwrap();
    let is_far = |line: &str| line.starts_with("208") || line.starts_with("198");
    assert!(
        log.contains("the live page") && log.lines().all(is_far),
        "{log}"
    );
    // No device was late, greeted again or was forgotten.
    for number in 0..4 {
        assert_eq!(part_of(&place, "served", number).0, [0, 1, 2, 3, 4, 5]);
    }
    assert_is_the_simulation(&place, "served");
}
