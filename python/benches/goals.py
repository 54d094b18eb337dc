"""The goals of the package: the overhead of Python over Rust in time, memory and size.

    python python/benches/goals.py [WHEEL]

Prints the import time beyond NumPy's, the cost of an epsilon query beyond Rust, the memory of a
run from arrays beyond the arrays, the time of its rounds, and the size of a wheel if one is given.
The times are medians of several runs.
"""

import json
import os
import statistics
import subprocess
import sys
import time

REPETITIONS = 15
ROUNDS = 2_000


def seconds(code):
    """Seconds that a new interpreter needs for this code."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begin


def import_time():
    """Milliseconds of `import smolfed` beyond `import numpy`, alternately."""
    pairs = [(seconds("import numpy"), seconds("import smolfed")) for _ in range(REPETITIONS)]
    return 1e3 * statistics.median(ours - numpys for numpys, ours in pairs)


def query_time():
    """Milliseconds of a query whose answer Rust has cached: only the call overhead."""
    from smolfed import accounting

    plan = dict(noise_multiplier=1.0, sampling_rate=0.05, rounds=1000, delta=1e-6)
    accounting.epsilon(**plan)
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        accounting.epsilon(**plan)
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times)


RUN = """
import json, resource, statistics, numpy as np, smolfed
# 1,000 devices x 50 samples of 784 float32: the reference round.
X = np.random.default_rng(0).random((50_000, 784), np.float32)
y = np.arange(50_000) % 10
devices = np.arange(50_000) // 50
data = smolfed.Federation.from_arrays(X, y, groups=devices, classes=range(10))
peak = lambda: 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
run = smolfed.run({"rounds": 40, "evaluate_every": 0, "data": {"scale": "none", "test": 0},
    "cohort": {"sampling": "uniform", "cohort_size": 50},
    "train": {"epochs": 5, "batch_size": 10, "clip": "every-step"},
    "privacy": {"noise_multiplier": 1.0, "clip_norm": 0.3, "delta": 1e-5}}, data=data, threads=1)
milliseconds = statistics.median(1e3 * record["seconds"] for record in run.records)
print(json.dumps([(peak() - before) / X.nbytes, milliseconds]))
"""


def reference_run():
    """Additional peak memory of a run, as a multiple of the size of the sample array, and the
    milliseconds of a round on one thread."""
    command = [sys.executable, "-c", RUN]
    found = subprocess.run(command, capture_output=True, check=True, text=True)
    return json.loads(found.stdout)


def main():
    """Prints everything."""
    print(f"import beyond NumPy's: {import_time():.1f} ms (goal: at most 50)")
    print(f"epsilon() beyond Rust: at most {query_time():.4f} ms (goal: at most 0.2)")
    copies, milliseconds = reference_run()
    print(f"memory of a run from arrays: {copies:.2f} times the samples (goal: below 2)")
    print(f"reference round, f32, one thread: {milliseconds:.1f} ms")
    for wheel in sys.argv[1:]:
        print(f"wheel: {os.path.getsize(wheel) / 1e6:.2f} MB (goal: below 6)")


if __name__ == "__main__":
    main()
