#!/usr/bin/env python3
"""The reference round in NumPy, batched over the cohort with BLAS: the peer of `reference_round`.

Softmax 784 x 10 + bias, f32; cohort 50 of 1,000 devices x 50 samples; 5 epochs, batch 10,
projection to L = 0.3 after every step; sum, Gaussian noise, Laplacian smoothing by FFT, update.
Prints one line of JSON: the least and the median time of a round in milliseconds.

    OMP_NUM_THREADS=1 python3 reference_round.py [ROUNDS]
"""

import json
import sys
import time

import numpy as np

DEVICES, SAMPLES, COHORT = 1000, 50, 50
FEATURES, CLASSES = 784, 10
EPOCHS, BATCH, CLIP, RATE, DECAY = 5, 10, np.float32(0.3), np.float32(0.1), np.float32(4e-5)
NOISE_STD, SIGMA = 0.8, 1.0


def smooth(v):
    """A_sigma^-1 v of one tensor, in the Fourier basis."""
    d = v.size
    if d == 1:
        return v
    k = np.arange(d // 2 + 1)
    spectrum = 1.0 + 2.0 * SIGMA * (1.0 - np.cos(2.0 * np.pi * k / d))
    return np.fft.irfft(np.fft.rfft(v.ravel()) / spectrum, d).reshape(v.shape)


def one_round(weights, biases, images, onehot, rng):
    cohort = rng.choice(DEVICES, COHORT, replace=False)
    x, y = images[cohort], onehot[cohort]
    w = np.repeat(weights[None], COHORT, axis=0)
    b = np.repeat(biases[None], COHORT, axis=0)
    for _ in range(EPOCHS):
        order = np.argsort(rng.random((COHORT, SAMPLES), dtype=np.float32), axis=1)
        x_shuffled = np.take_along_axis(x, order[:, :, None], axis=1)
        y_shuffled = np.take_along_axis(y, order[:, :, None], axis=1)
        for start in range(0, SAMPLES, BATCH):
            xb = x_shuffled[:, start : start + BATCH]
            logits = np.matmul(xb, w.transpose(0, 2, 1)) + b[:, None]
            logits -= logits.max(axis=2, keepdims=True)
            p = np.exp(logits)
            p /= p.sum(axis=2, keepdims=True)
            p -= y_shuffled[:, start : start + BATCH]
            p /= np.float32(BATCH)
            gw = np.matmul(p.transpose(0, 2, 1), xb)
            gb = p.sum(axis=1)
            dw = w - RATE * (gw + DECAY * w) - weights
            db = b - RATE * (gb + DECAY * b) - biases
            norm = np.sqrt(np.einsum("kcf,kcf->k", dw, dw) + np.einsum("kc,kc->k", db, db))
            scale = np.minimum(np.float32(1), CLIP / np.maximum(norm, np.float32(1e-30)))
            w = weights + scale[:, None, None] * dw
            b = biases + scale[:, None] * db
    sum_w = (w - weights).sum(axis=0) + rng.normal(0.0, NOISE_STD, weights.shape)
    sum_b = (b - biases).sum(axis=0) + rng.normal(0.0, NOISE_STD, biases.shape)
    new_w = weights + (smooth(sum_w) / COHORT).astype(np.float32)
    new_b = biases + (smooth(sum_b) / COHORT).astype(np.float32)
    return new_w, new_b


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rng = np.random.default_rng(1)
    images = rng.standard_normal((DEVICES, SAMPLES, FEATURES), dtype=np.float32)
    onehot = np.eye(CLASSES, dtype=np.float32)[rng.integers(0, CLASSES, (DEVICES, SAMPLES))]
    weights = np.zeros((CLASSES, FEATURES), dtype=np.float32)
    biases = np.zeros(CLASSES, dtype=np.float32)
    times = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        weights, biases = one_round(weights, biases, images, onehot, rng)
        times.append((time.perf_counter() - start) * 1e3)
    times = sorted(times[1:])
    print(json.dumps({"peer": f"numpy {np.__version__}", "min_ms": times[0], "median_ms": times[len(times) // 2]}))


main()
