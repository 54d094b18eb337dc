"""The reference round in PyTorch: devices batched, gradients by hand, everything in place.

Uses the steps of numpy_round.py, which lists the omissions. Fair to PyTorch: no automatic
differentiation, the step as part of the product (`baddbmm`), threads that share nothing.
pfl_round.py trains one device at a time with automatic differentiation, as most simulators do.
"""

from reference import BATCH, CLASSES, CLIP, DECAY, EPOCHS, FEATURES, GROUP, RATE, SAMPLES
from reference import serve_batched
import torch

CLIP, DECAY, RATE = float(CLIP), float(DECAY), float(RATE)


class Group:
    """Working memory for several devices that train at once."""

    def __init__(self, federation, seed):
        torch.set_num_threads(1)
        self.federation, self.rng = federation, torch.Generator().manual_seed(seed)
        self.x = torch.empty(GROUP * SAMPLES, FEATURES)
        self.batch = torch.empty(GROUP * BATCH, FEATURES)
        self.scores = torch.empty(GROUP, BATCH, CLASSES)
        self.local_w = torch.empty(GROUP, CLASSES, FEATURES)
        self.local_b = torch.empty(GROUP, CLASSES)
        self.moved_w = torch.empty_like(self.local_w)
        self.moved_b = torch.empty_like(self.local_b)
        self.one_hot = torch.eye(CLASSES) * (RATE / BATCH)
        self.first = torch.arange(GROUP)[:, None] * SAMPLES

    @torch.inference_mode()
    def train(self, w, b, rows):
        """Sums of the updates of the devices that hold `rows`."""
        y = torch.from_numpy(self.federation.read(rows.ravel(), self.x.numpy()))
        w, b = torch.from_numpy(w).view(CLASSES, FEATURES), torch.from_numpy(b)
        self.local_w.copy_(w.expand_as(self.local_w))
        self.local_b.copy_(b.expand_as(self.local_b))
        for _ in range(EPOCHS):
            order = self.first + torch.rand(GROUP, SAMPLES, generator=self.rng).argsort(dim=1)
            for start in range(0, SAMPLES, BATCH):
                self.step(w, b, order[:, start : start + BATCH].reshape(-1), y)
        return self.moved_w.sum(0).view(-1).numpy(), self.moved_b.sum(0).numpy()

    def step(self, w, b, index, y):
        """One local step of every device, on the samples `index`."""
        batch = torch.index_select(self.x, 0, index, out=self.batch).view(-1, BATCH, FEATURES)
        weights = self.local_w.transpose(1, 2)
        scores = torch.baddbmm(self.local_b[:, None, :], batch, weights, out=self.scores)
        # The residuals include the step size and the mean over the batch, which saves a pass.
        residuals = scores.softmax(2).mul_(RATE / BATCH)
        residuals -= self.one_hot[y[index]].view_as(residuals)
        # w <- w_t + clip((w - rate * (g + decay * w)) - w_t), where `moved` is the bracket.
        shrink = 1 - RATE * DECAY
        self.local_w.baddbmm_(residuals.transpose(1, 2), batch, beta=shrink, alpha=-1)
        self.local_b.mul_(shrink).sub_(residuals.sum(1))
        torch.sub(self.local_w, w, out=self.moved_w)
        torch.sub(self.local_b, b, out=self.moved_b)
        flat = self.moved_w.view(GROUP, 1, -1)
        squares = torch.bmm(flat, flat.transpose(1, 2)).view(-1)
        squares += self.moved_b.square().sum(1)
        factor = CLIP / squares.sqrt_().clamp_(min=CLIP)
        self.moved_w *= factor[:, None, None]
        self.moved_b *= factor[:, None]
        torch.add(self.moved_w, w, out=self.local_w)
        torch.add(self.moved_b, b, out=self.local_b)


serve_batched(Group, torch.__version__)
