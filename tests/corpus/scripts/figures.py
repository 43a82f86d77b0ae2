"""Figures of matplotlib's, closed or not."""
import random
import sys
import time

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["figure.max_open_warning"] = 0
import matplotlib.pyplot as plt  # noqa: E402

form, seed = sys.argv[1], int(sys.argv[2])
random.seed(seed)
while True:
    figure, axes = plt.subplots(figsize=(2, 2), dpi=50)
    axes.plot([random.random() for _ in range(random.randrange(20, 200))])
    figure.canvas.draw()
    if form == "steady":
        plt.close(figure)
    time.sleep(0.6 + random.random() * 0.3)
