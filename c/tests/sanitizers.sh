#!/usr/bin/env bash
# Runs the whole interface for C under AddressSanitizer and UndefinedBehaviorSanitizer on Linux: the
# library with its own loads and stores instrumented, and tests/whole_api.c with every function.
# Then runs tests in Rust under Miri, unless the argument is --no-miri: rounds of one kind of model,
# as Miri is slow.
#
# Needs a nightly toolchain with rust-src and miri, and gcc, or clang with its runtime (CC).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=$(rustc -vV | sed -n 's/^host: //p')
folder=$(realpath -m "${CARGO_TARGET_DIR:-target}")/c-sanitizers
mkdir -p "$folder/transcripts"

# What a coordinator sends to a device of each kind.
SMOLFED_TRANSCRIPTS=$folder/transcripts \
  cargo test --quiet --locked -p smolfed-c --features delivery --test rounds --test delivery every_kind

RUSTFLAGS=-Zsanitizer=address cargo +nightly rustc --locked -p smolfed-c --features delivery,sleep --lib \
  --crate-type staticlib --profile firmware -Zbuild-std=std,panic_abort --target "$target" --target-dir "$folder"
# Undefined behaviour ends the program, as a bad access does.
${CC:-gcc} -std=c11 -g -Wall -Wextra -fsanitize=address,undefined -fno-sanitize-recover=all \
  -I c/include c/tests/whole_api.c "$folder/$target/firmware/libsmolfed_c.a" \
  -lm -lpthread -ldl -o "$folder/whole_api"
ASAN_OPTIONS=detect_stack_use_after_return=1 "$folder/whole_api" "$folder/transcripts"

if [ "${1-}" != --no-miri ]; then
  miri=(cargo +nightly miri test --locked -p smolfed-c --target-dir "$folder")
  "${miri[@]}" --test misuse --test features --test rounds -- \
    --skip every_kind_takes_part --skip samples_cannot_change
  "${miri[@]}" --features requested --test requested
  "${miri[@]}" --features element --test element
  "${miri[@]}" --features sleep --test sleep -- --skip a_power_cut
  "${miri[@]}" --features delivery --test delivery -- --skip a_power_cut
fi
