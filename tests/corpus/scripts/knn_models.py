"""Neighbours models that are fitted anew to the last window of measurements, the former ones kept for going back: the last 20,
or all. Every quarter of a minute a forest looks for outliers."""
import collections
import sys
import time

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import KNeighborsRegressor

form, seed = sys.argv[1], int(sys.argv[2])
chance = np.random.default_rng(seed)
former = collections.deque(maxlen=None if form == "leaks" else 20)
pause = 0.5 * chance.uniform(0.7, 1.4)
looked = time.monotonic()
while True:
    window = chance.normal(size=(int(chance.integers(250, 600)), 24))
    model = KNeighborsRegressor(n_neighbors=5, algorithm="kd_tree").fit(window[:, 1:], window[:, 0])
    error = float(np.mean((model.predict(window[:40, 1:]) - window[:40, 0]) ** 2))
    former.append((error, model))
    if time.monotonic() - looked > 15:
        IsolationForest(n_estimators=20, random_state=seed).fit(window)
        looked = time.monotonic()
    time.sleep(pause)
