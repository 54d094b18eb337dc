"""Training steps of networks in PyTorch: an epoch of 50 samples in batches of 10, on one thread.

The networks match benches/src/networks.rs. Steps are plain gradient descent: updates are not
clipped, and samples are not shuffled.
"""

import sys

import reference
import torch
from torch import nn

SAMPLES, BATCH, VOCABULARY = 50, 10, 80


class Characters(nn.Module):
    """Embedding, LSTM, and the scores of the last step."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 8)
        self.lstm = nn.LSTM(8, 64, batch_first=True)
        self.head = nn.Linear(64, VOCABULARY)

    def forward(self, symbols):
        """Scores of a batch of texts."""
        return self.head(self.lstm(self.embedding(symbols))[0][:, -1])


def convolutions(make, pool, inputs, flat, outputs):
    """Two convolutions with pooling, and a dense layer."""
    body = []
    for channels_in, channels_out in ((inputs, 8), (8, 16)):
        body += [make(channels_in, channels_out, 5, padding=2), nn.ReLU(), pool(2)]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(flat, outputs))


def network(name):
    """A network, samples for it, and its number of classes."""
    if name == "images":
        model = convolutions(nn.Conv2d, nn.MaxPool2d, 1, 16 * 7 * 7, 10)
        return model, torch.rand(SAMPLES, 1, 28, 28), 10
    if name == "windows":
        model = convolutions(nn.Conv1d, nn.MaxPool1d, 6, 16 * 25, 6)
        return model, torch.rand(SAMPLES, 6, 100), 6
    return Characters(), torch.randint(VOCABULARY, (SAMPLES, 40)), VOCABULARY


def main():
    """Runs an epoch for each line of standard input."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model, samples, classes = network(sys.argv[1])
    labels = torch.randint(classes, (SAMPLES,))
    loss, optimiser = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.01)
    bench = reference.Bench(torch.__version__)
    while bench.goes_on():
        for start in range(0, SAMPLES, BATCH):
            batch = slice(start, start + BATCH)
            optimiser.zero_grad(set_to_none=True)
            loss(model(samples[batch]), labels[batch]).backward()
            optimiser.step()


main()
