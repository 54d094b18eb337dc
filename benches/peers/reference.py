"""Shared by the peers: the reference round (benches/src/reference.rs), its data, and the bench.

A peer is a script `NAME_round.py IMAGES LABELS COHORT THREADS`. It prints `ready VERSION`. For each
line on standard input, it runs one round from the model of zeros and prints its milliseconds.
"""

import os

# Products of one batch are too small to parallelise. They use one thread: threads train devices.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
# If a peer parallelises them nevertheless, its threads must not spin while another is measured.
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

from concurrent.futures import ThreadPoolExecutor
import sys
import time

import numpy as np

SAMPLES, FEATURES, CLASSES = 50, 784, 10
EPOCHS, BATCH = 5, 10
RATE, DECAY, CLIP, SIGMA = map(np.float32, (0.1, 4e-5, 0.3, 1.0))
# Constants, as in the experiment: (pixel / 255 - 0.5) / 0.25.
MEAN, STD = np.float32(0.5 * 255), np.float32(0.25 * 255)
# Fewer images than this are stored as floats, so that no round converts them.
HELD_AS_FLOATS = 1_000_000
# Devices of a batched peer that train at once. With more, their parameters exceed the cache.
GROUP = 10
# Warm-up rounds before measuring.
WARM_UP = 2


class Federation:
    """Devices with SAMPLES samples each, dealt at random from two IDX files."""

    def __init__(self, images, labels):
        self.images = read_idx(images).reshape(-1, FEATURES)
        self.labels = read_idx(labels).astype(np.int64)
        if len(self.images) < HELD_AS_FLOATS:
            self.images = self.images.astype(np.float32)
            self.images -= MEAN
            self.images /= STD
        self.rows = np.random.default_rng(0).permutation(len(self.labels)).reshape(-1, SAMPLES)

    def read(self, rows, features):
        """Writes the features of these rows to `features` and returns their labels."""
        if self.images.dtype == np.float32:
            np.take(self.images, rows, axis=0, out=features, mode="clip")
        else:
            features[:] = self.images[rows]
            features -= MEAN
            features /= STD
        return self.labels[rows]


def read_idx(path):
    """Bytes of an IDX file with its dimensions, in the memory of the system's file cache."""
    with open(path, "rb") as file:
        head = file.read(4)
        shape = np.frombuffer(file.read(4 * head[3]), ">u4").astype(int)
        return np.memmap(file, np.uint8, "r", file.tell(), tuple(shape))


class Bench:
    """The other end of standard input and output."""

    def __init__(self, version):
        self.version, self.rounds, self.begin = version, 0, 0.0

    def goes_on(self):
        """Ends a round, if there was one, and waits for the next request."""
        milliseconds = (time.perf_counter() - self.begin) * 1e3
        if self.rounds == WARM_UP:
            print("ready", self.version, flush=True)
        elif self.rounds > WARM_UP:
            print(milliseconds, flush=True)
        self.rounds += 1
        is_asked_for = self.rounds <= WARM_UP or sys.stdin.readline() != ""
        self.begin = time.perf_counter()
        return is_asked_for


def arguments():
    """The federation, the cohort size and the number of threads."""
    images, labels, cohort, threads = sys.argv[1:5]
    return Federation(images, labels), int(cohort), int(threads)


def serve_batched(make_group, version):
    """Runs rounds of groups of devices, with separate working memory for each thread.

    `make_group(federation, seed)` has `train(w, b, rows)`, which returns the sums of the updates
    of the devices that hold `rows`.
    """
    federation, cohort, threads = arguments()
    groups = [make_group(federation, seed) for seed in range(threads)]
    pool = ThreadPoolExecutor(threads)
    rng = np.random.default_rng(threads)
    w, b = np.zeros(CLASSES * FEATURES, np.float32), np.zeros(CLASSES, np.float32)
    eigen_w, eigen_b = eigenvalues(len(w)), eigenvalues(len(b))

    def share(thread):
        """Sums of the updates of one thread's groups."""
        total_w, total_b = np.zeros_like(w), np.zeros_like(b)
        for rows in drawn[thread::threads]:
            sum_w, sum_b = groups[thread].train(w, b, rows)
            total_w += sum_w
            total_b += sum_b
        return total_w, total_b

    bench = Bench(version)
    while bench.goes_on():
        w[:], b[:] = 0, 0
        chosen = rng.choice(len(federation.rows), cohort, replace=False)
        drawn = federation.rows[chosen].reshape(-1, GROUP, SAMPLES)
        sums = [share(0)] if threads == 1 else list(pool.map(share, range(threads)))
        total_w, total_b = (sum(parts) for parts in zip(*sums))
        for total, parameters, eigen in ((total_w, w, eigen_w), (total_b, b, eigen_b)):
            total += CLIP * rng.standard_normal(total.shape, np.float32)
            total /= cohort
            spectrum = np.fft.rfft(total)
            spectrum /= eigen
            parameters += np.fft.irfft(spectrum, len(total))


def eigenvalues(d):
    """Eigenvalues of I + SIGMA * L for the cycle of d nodes."""
    angle = 2 * np.pi * np.arange(d // 2 + 1) / d
    return (1 + 2 * SIGMA * (1 - np.cos(angle))).astype(np.float32)
