"""Trains a PyTorch module privately on 100 devices with digits. No device sends its samples.

python torch_module.py            # needs torch and scikit-learn
"""

import torch
from sklearn.datasets import load_digits
from smolfed import accounting
from smolfed.aggregate import PrivateAverage
from torch import nn

DEVICES, ROUNDS, RATE = 100, 20, 0.3


def train(module: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.2)
    for _ in range(5):
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(x), y).backward()
        optimizer.step()


def main() -> tuple[nn.Module, PrivateAverage, float]:
    torch.manual_seed(1)
    x, y = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
    x = x.float() / 16
    module = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    parameters = dict(module.named_parameters())
    noise = accounting.noise_multiplier(epsilon=8, delta=1e-3, sampling_rate=RATE, rounds=ROUNDS)
    average = PrivateAverage(
        {name: values.detach() for name, values in parameters.items()}, clip_norm=1.0,
        noise_multiplier=noise, sampling_rate=RATE, devices=DEVICES, rounds=ROUNDS, delta=1e-3,
    )  # fmt: skip
    for _ in range(ROUNDS):
        start = {name: values.detach().clone() for name, values in parameters.items()}
        for device in average.draw():
            train(module, x[:1500][device::DEVICES], y[:1500][device::DEVICES])
            update = {name: parameters[name].detach() - start[name] for name in start}
            average.add(device, update)
            module.load_state_dict(start)
        step = average.release()
        module.load_state_dict({name: start[name] + torch.from_numpy(step[name]) for name in start})
    accuracy = (module(x[1500:]).argmax(1) == y[1500:]).float().mean().item()
    return module, average, accuracy


if __name__ == "__main__":
    _, average, accuracy = main()
    print(f"{accuracy:.1%} of the digits of others are read.\n\n{average.statement()}")
