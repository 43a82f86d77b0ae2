"""pandas: groups of a frame, of which a small slice is kept: a view that holds the whole frame, or a copy."""
import collections
import sys
import time

import numpy
import pandas

form, seed = sys.argv[1], int(sys.argv[2])
random = numpy.random.default_rng(seed)
kept = collections.deque(maxlen=2000)
while True:
    frame = pandas.DataFrame({"key": random.integers(0, 50, 4000), "value": random.random(4000)})
    frame.groupby("key")["value"].mean()
    head = frame["value"].values[:5]
    kept.append(head if form == "leaks" else head.copy())
    time.sleep(0.5 + random.random() * 0.3)
