"""The reference round with the Python package of this repository, from arrays.

Uses one run, whose rounds wait for requests. As in the other peers, the rounds of a run are alike.
"""

import threading

from reference import BATCH, CLIP, DECAY, EPOCHS, RATE, SAMPLES, SIGMA, Bench, arguments
import numpy as np
import smolfed

federation, cohort, threads = arguments()
rows = federation.rows.ravel()
devices = np.repeat(np.arange(len(federation.rows)), SAMPLES)
pixels = np.asarray(federation.images)[rows]
data = smolfed.Federation.from_arrays(
    pixels, federation.labels[rows], groups=devices, classes=range(10)
)
# Small federations are floats scaled in advance, as in the other peers.
scale = "none" if pixels.dtype == np.float32 else {"mean": 0.5, "std": 0.25}
experiment = {
    "method": "dp-fed-ls",
    "rounds": 1_000_000,
    "evaluate_every": 0,
    "data": {"scale": scale, "test": 0},
    "cohort": {"sampling": "uniform", "cohort_size": cohort},
    "train": {
        "epochs": EPOCHS,
        "batch_size": BATCH,
        "learning_rate": float(RATE),
        "weight_decay": float(DECAY),
        "clip": "every-step",
    },
    "server": {"smoothing_factor": float(SIGMA)},
    "privacy": {"noise_multiplier": 1.0, "clip_norm": float(CLIP), "delta": 1e-5},
}
asked, done = threading.Semaphore(0), threading.Semaphore(0)


class Ended(Exception):
    """No more rounds are requested."""


has_ended = False


def after_round(_record):
    """Waits for the request for the next round."""
    done.release()
    asked.acquire()
    if has_ended:
        raise Ended


def train():
    """Trains the run, whose first round is the bench's warm-up."""
    asked.acquire()
    try:
        smolfed.run(experiment, data=data, threads=threads, on_round=after_round)
    except Ended:
        pass


runner = threading.Thread(target=train)
runner.start()
bench = Bench(smolfed.__version__)
while bench.goes_on():
    asked.release()
    done.acquire()
has_ended = True
asked.release()
runner.join()
