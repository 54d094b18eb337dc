"""The reference round in NumPy: devices batched, products in BLAS, everything in place.

usage: reference_round.py IMAGES LABELS COHORT THREADS

Reads the IDX files of the benches, prints `ready NUMPY_VERSION`, and then runs one round for each
line on standard input and prints its milliseconds. Each thread trains groups of devices; BLAS is to
have one thread itself (OPENBLAS_NUM_THREADS=1), since its products are too small to share out.

A round is that of benches/src/reference.rs: softmax regression, 5 epochs in batches of 10, weight
decay, projection onto the ball of 0.3 after every step, sum, noise, smoothing, step. Fair to NumPy:
float32 throughout, no copy but the gather of a batch, all memory allocated once, groups that fit
the second-level cache, noise from its fast float generator, and no exact sums or checks.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

DEVICES, SAMPLES, FEATURES, CLASSES = 1000, 50, 784, 10
EPOCHS, BATCH = 5, 10
GROUP = 10  # devices at once: with more, the passes over their parameters leave the cache
RATE, DECAY, CLIP, SIGMA = np.float32(0.1), np.float32(4e-5), np.float32(0.3), 1.0


def read_idx(path):
    """Bytes of an IDX file with its dimensions."""
    with open(path, "rb") as file:
        head = file.read(4)
        shape = np.frombuffer(file.read(4 * head[3]), ">u4").astype(int)
        return np.frombuffer(file.read(), np.uint8).reshape(shape)


class Group:
    """Working memory for some devices that train at once."""

    def __init__(self, x, y):
        self.x, self.y = x, y
        self.batch = np.empty((GROUP, BATCH, FEATURES), np.float32)
        self.scores = np.empty((GROUP, BATCH, CLASSES), np.float32)
        self.local_w = np.empty((GROUP, CLASSES * FEATURES), np.float32)
        self.local_b = np.empty((GROUP, CLASSES), np.float32)
        self.moved_w = np.empty_like(self.local_w)
        self.moved_b = np.empty_like(self.local_b)
        self.grad_w = np.empty((GROUP, CLASSES, FEATURES), np.float32)
        self.one_hot = np.eye(CLASSES, dtype=np.float32) * (RATE / BATCH)

    def train(self, w, b, rows, rng):
        """Sums of the updates of the devices that hold `rows`."""
        self.local_w[:] = w
        self.local_b[:] = b
        for _ in range(EPOCHS):
            order = rng.permuted(rows, axis=1)
            for start in range(0, SAMPLES, BATCH):
                self.step(w, b, order[:, start : start + BATCH])
        return self.moved_w.sum(axis=0), self.moved_b.sum(axis=0)

    def step(self, w, b, index):
        """One local step of every device, on the rows `index` (device, sample)."""
        flat = index.ravel()
        scores, moved_w, moved_b = self.scores, self.moved_w, self.moved_b
        np.take(self.x, flat, axis=0, out=self.batch.reshape(-1, FEATURES), mode="clip")
        weights = self.local_w.reshape(self.grad_w.shape)
        np.matmul(self.batch, weights.transpose(0, 2, 1), out=scores)
        scores += self.local_b[:, None, :]
        scores -= scores.max(axis=2, keepdims=True)
        np.exp(scores, out=scores)
        # The step size and the mean over the batch are part of the residuals: no pass for them.
        scores *= (RATE / BATCH) / scores.sum(axis=2, keepdims=True)
        scores -= self.one_hot[self.y[flat]].reshape(scores.shape)
        np.matmul(scores.transpose(0, 2, 1), self.batch, out=self.grad_w)
        # w <- w_t + clip((w - rate * (g + decay * w)) - w_t): moved is the bracket.
        self.local_w *= 1 - RATE * DECAY
        self.local_w -= self.grad_w.reshape(moved_w.shape)
        self.local_b *= 1 - RATE * DECAY
        self.local_b -= scores.sum(axis=1)
        np.subtract(self.local_w, w, out=moved_w)
        np.subtract(self.local_b, b, out=moved_b)
        squares = np.matmul(moved_w[:, None, :], moved_w[:, :, None]).ravel()
        squares += np.einsum("sc,sc->s", moved_b, moved_b)
        factor = (CLIP / np.maximum(np.sqrt(squares), CLIP))[:, None]
        moved_w *= factor
        moved_b *= factor
        np.add(moved_w, w, out=self.local_w)
        np.add(moved_b, b, out=self.local_b)


class Round:
    """A federation and its server."""

    def __init__(self, images, labels, cohort, threads):
        x = read_idx(images).reshape(-1, FEATURES).astype(np.float32)
        x -= x.mean()
        x /= x.std()
        y = read_idx(labels).astype(np.int64)
        self.cohort, self.threads = cohort, threads
        self.groups = [Group(x, y) for _ in range(threads)]
        self.rngs = [np.random.default_rng(seed) for seed in range(threads)]
        self.rows = self.rngs[0].permutation(len(x)).reshape(DEVICES, SAMPLES)
        self.pool = ThreadPoolExecutor(threads)
        self.w = np.zeros(CLASSES * FEATURES, np.float32)
        self.b = np.zeros(CLASSES, np.float32)
        self.eigen_w, self.eigen_b = eigenvalues(len(self.w)), eigenvalues(len(self.b))

    def share(self, thread, chosen):
        """Sums of the updates of every so manyth group."""
        total_w, total_b = np.zeros_like(self.w), np.zeros_like(self.b)
        for devices in chosen[thread :: self.threads]:
            group, rng = self.groups[thread], self.rngs[thread]
            sum_w, sum_b = group.train(self.w, self.b, self.rows[devices], rng)
            total_w += sum_w
            total_b += sum_b
        return total_w, total_b

    def __call__(self):
        chosen = self.rngs[0].choice(DEVICES, self.cohort, replace=False).reshape(-1, GROUP)
        if self.threads == 1:
            sums = [self.share(0, chosen)]
        else:
            sums = list(self.pool.map(lambda i: self.share(i, chosen), range(self.threads)))
        total_w, total_b = (sum(parts) for parts in zip(*sums))
        for total, parameters, eigen in (
            (total_w, self.w, self.eigen_w),
            (total_b, self.b, self.eigen_b),
        ):
            total += CLIP * self.rngs[0].standard_normal(total.shape, np.float32)
            total /= self.cohort
            spectrum = np.fft.rfft(total)
            spectrum /= eigen
            parameters += np.fft.irfft(spectrum, len(total))


def eigenvalues(d):
    """Those of I + SIGMA * L for the cycle of d nodes."""
    angle = 2 * np.pi * np.arange(d // 2 + 1) / d
    return (1 + 2 * SIGMA * (1 - np.cos(angle))).astype(np.float32)


def main():
    images, labels, cohort, threads = sys.argv[1:5]
    one_round = Round(images, labels, int(cohort), int(threads))
    for _ in range(2):
        one_round()
    start = one_round.w.copy(), one_round.b.copy()
    print("ready", np.__version__, flush=True)
    for _ in sys.stdin:
        one_round.w[:], one_round.b[:] = start
        begin = time.perf_counter()
        one_round()
        print((time.perf_counter() - begin) * 1e3, flush=True)


main()
