"""Writes small data with pandas and NumPy: phones.parquet and phones.npz.

pip install numpy pandas pyarrow; python own_data.py
"""

import datetime

import numpy as np
import pandas as pd

ROWS, PHONES = 240, 60
random = np.random.default_rng(1)
x = random.normal(size=(ROWS, 3)).astype(np.float32)
label = (x[:, 0] + x[:, 1] > 0).astype(np.int64)
phone = np.arange(ROWS) % PHONES
start = datetime.datetime(2024, 3, 4)
table = pd.DataFrame(
    {
        "phone": phone,
        "x": x[:, 0].astype(np.float64),
        "y": np.where(np.arange(ROWS) % 50 == 7, np.nan, x[:, 1]),
        "colour": pd.Series(np.array(["red", "blue", None], dtype=object)[np.arange(ROWS) % 3]),
        "is_on": np.arange(ROWS) % 4 == 0,
        "time": [start + datetime.timedelta(minutes=37 * row) for row in range(ROWS)],
        "activity": np.where(label == 1, "walk", "sit"),
    },
    index=np.arange(ROWS) + 100,
)
table.to_parquet("phones.parquet")
np.savez_compressed("phones.npz", X=x, y=label, groups=phone)
