"""The reference round in NumPy: devices batched, products in BLAS, everything in place.

Softmax regression, 5 epochs in batches of 10, weight decay, projection onto the ball of 0.3 after
every step, sum, noise, smoothing, step. Fair to NumPy: float32 throughout, no copy except to gather
a batch, all memory allocated once, groups that fit the second-level cache, threads that share
nothing. It does less than smolfed: noise comes from the fast float generator, and there is no grid,
exact sum, check or record.
"""

from reference import BATCH, CLASSES, CLIP, DECAY, EPOCHS, FEATURES, GROUP, RATE, SAMPLES
from reference import serve_batched
import numpy as np


class Group:
    """Working memory for several devices that train at once."""

    def __init__(self, federation, seed):
        self.federation, self.rng = federation, np.random.default_rng(seed)
        self.x = np.empty((GROUP * SAMPLES, FEATURES), np.float32)
        self.batch = np.empty((GROUP, BATCH, FEATURES), np.float32)
        self.scores = np.empty((GROUP, BATCH, CLASSES), np.float32)
        self.local_w = np.empty((GROUP, CLASSES * FEATURES), np.float32)
        self.local_b = np.empty((GROUP, CLASSES), np.float32)
        self.moved_w = np.empty_like(self.local_w)
        self.moved_b = np.empty_like(self.local_b)
        self.grad_w = np.empty((GROUP, CLASSES, FEATURES), np.float32)
        self.one_hot = np.eye(CLASSES, dtype=np.float32) * (RATE / BATCH)
        self.samples = np.arange(GROUP * SAMPLES).reshape(GROUP, SAMPLES)

    def train(self, w, b, rows):
        """Sums of the updates of the devices that hold `rows`."""
        y = self.federation.read(rows.ravel(), self.x)
        self.local_w[:] = w
        self.local_b[:] = b
        for _ in range(EPOCHS):
            order = self.rng.permuted(self.samples, axis=1)
            for start in range(0, SAMPLES, BATCH):
                self.step(w, b, order[:, start : start + BATCH].ravel(), y)
        return self.moved_w.sum(axis=0), self.moved_b.sum(axis=0)

    def step(self, w, b, index, y):
        """One local step of every device, on the samples `index`."""
        scores, moved_w, moved_b = self.scores, self.moved_w, self.moved_b
        np.take(self.x, index, axis=0, out=self.batch.reshape(-1, FEATURES), mode="clip")
        weights = self.local_w.reshape(self.grad_w.shape)
        np.matmul(self.batch, weights.transpose(0, 2, 1), out=scores)
        scores += self.local_b[:, None, :]
        scores -= scores.max(axis=2, keepdims=True)
        np.exp(scores, out=scores)
        # The residuals include the step size and the mean over the batch, which saves a pass.
        scores *= (RATE / BATCH) / scores.sum(axis=2, keepdims=True)
        scores -= self.one_hot[y[index]].reshape(scores.shape)
        np.matmul(scores.transpose(0, 2, 1), self.batch, out=self.grad_w)
        # w <- w_t + clip((w - rate * (g + decay * w)) - w_t), where `moved` is the bracket.
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


serve_batched(Group, np.__version__)
