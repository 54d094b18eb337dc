"""The reference round in Apple's pfl, built from its own parts: a PyTorch model, federated
averaging, and the Gaussian mechanism.

It does less than smolfed: a device clips its update once, not after every step, and uses its
samples in the same order in every epoch. There is no smoothing, and the noise is floating-point.
Only PyTorch's operations use threads, because pfl trains one device after another.
"""

from reference import BATCH, CLASSES, CLIP, DECAY, EPOCHS, FEATURES, RATE, SAMPLES
from reference import Bench, arguments
import numpy as np
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.hyperparam import NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel
from pfl.privacy.gaussian_mechanism import GaussianMechanism
from pfl.privacy.privacy_mechanism import CentrallyAppliedPrivacyMechanism
from pfl.version import __version__
import torch


class Softmax(torch.nn.Linear):
    """Softmax regression with the two functions that pfl requires."""

    def __init__(self):
        super().__init__(FEATURES, CLASSES)
        torch.nn.init.zeros_(self.weight)
        torch.nn.init.zeros_(self.bias)

    def loss(self, x, y):
        return torch.nn.functional.cross_entropy(self(x), y)

    def metrics(self, x, y):
        return {}


class Rounds(TrainingProcessCallback):
    """Asks the bench after every round for another one, from the model of zeros."""

    def __init__(self):
        self.bench = Bench(__version__)

    def on_train_begin(self, *, model):
        self.zeros = model.get_parameters()
        self.bench.goes_on()
        return Metrics()

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        is_over = not self.bench.goes_on()
        model.set_parameters(self.zeros)
        return is_over, Metrics()


def main():
    federation, cohort, threads = arguments()
    torch.set_num_threads(threads)
    rng = np.random.default_rng(0)

    def device(number):
        x = np.empty((SAMPLES, FEATURES), np.float32)
        y = federation.read(federation.rows[number], x)
        return PyTorchTensorDataset((torch.from_numpy(x), torch.from_numpy(y)))

    data = FederatedDataset(device, lambda: rng.integers(len(federation.rows)))
    noise = CentrallyAppliedPrivacyMechanism(GaussianMechanism(float(CLIP), 1.0))
    module = Softmax()
    model = PyTorchModel(
        module,
        lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, weight_decay=float(DECAY)),
        torch.optim.SGD(module.parameters(), lr=1.0),
    )
    rounds = NNAlgorithmParams(
        central_num_iterations=2**31,
        evaluation_frequency=2**31,
        train_cohort_size=cohort,
        val_cohort_size=None,
    )
    training = NNTrainHyperParams(
        local_num_epochs=EPOCHS, local_learning_rate=float(RATE), local_batch_size=BATCH
    )
    backend = SimulatedBackend(data, data, postprocessors=[noise])
    FederatedAveraging().run(
        rounds, backend, model, training, callbacks=[Rounds()], send_metrics_to_platform=False
    )


main()
