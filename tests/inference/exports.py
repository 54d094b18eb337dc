"""Exported ONNX and NPZ files of the models named on the command line agree with NAME.csv.

Called by exports.rs in a directory with NAME.onnx, NAME.npz, NAME.csv and test.csv.
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def function_of_docs():
    """`features_of`, taken from docs/inference.md."""
    page = (Path(__file__).parents[2] / "docs" / "inference.md").read_text(encoding="utf-8")
    blocks = page.split("```python\n")[1:]
    [source] = [text for text in blocks if text.startswith("def features_of")]
    names = {"np": np}
    exec(source.split("```")[0], names)
    return names["features_of"]


features_of = function_of_docs()


def features(rows, names):
    cell = lambda text: float(text) if text else np.nan
    return np.array([[cell(row[name]) for name in names] for row in rows], dtype=np.float32)


def scores_of(model, x):
    """Scores computed from the arrays, as described in docs/inference.md."""
    x = np.where(np.isnan(x), model["missing"], x.astype(np.float64))
    x = (np.clip(x, model["min"], model["max"]) - model["mean"]) / model["std"]
    scores = features_of(model, x).astype(np.float32) @ model["weights"].T + model["biases"]
    if "activation" in model:
        tanh = model["activation"][0] == "tanh"
        scores = np.tanh(scores) if tanh else np.maximum(scores, 0)
    if "head_weights" in model:
        scores = scores @ model["head_weights"].T + model["head_biases"]
    return scores


def check(name):
    model = dict(np.load(f"{name}.npz"))
    expected = table(f"{name}.csv")
    if Path(f"{name}.x.npy").exists():
        x = np.load(f"{name}.x.npy")
        x = x.reshape(len(x), -1).astype(np.float32)
    else:
        x = features(table("test.csv"), model["features"])
    scores = scores_of(model, x)
    session = onnxruntime.InferenceSession(f"{name}.onnx")
    outputs = dict(zip([o.name for o in session.get_outputs()], session.run(None, {"features": x})))
    metadata = session.get_modelmeta().custom_metadata_map
    assert json.loads(metadata.get("features", "[]")) == list(model.get("features", [])), name
    kind = model["outputs"][0]
    if kind in ("logit", "logits"):
        classes = list(model["classes"])
        assert json.loads(metadata["classes"]) == classes, name
        numbers = [[float(row[f"probability_{label}"]) for label in classes] for row in expected]
        named = [row["prediction"] for row in expected]
        assert [classes[number] for number in outputs["class"]] == named, name
        if kind == "logit":
            scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        found = [outputs["probabilities"], powers / powers.sum(axis=1, keepdims=True)]
    elif kind == "value":
        numbers = [[float(row["prediction"])] for row in expected]
        found = [outputs["prediction"], scores * model["target_std"] + model["target_mean"]]
    else:
        width = scores.shape[1]
        numbers = [[float(row[f"output_{at}"]) for at in range(width)] for row in expected]
        found = [outputs["representation"], scores]
    for each in found:
        np.testing.assert_allclose(each, numbers, rtol=2e-5, atol=2e-5, err_msg=name)


for name in sys.argv[1:]:
    check(name)
