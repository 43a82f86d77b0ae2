"""A parser with a registry of every document, or of the last hundred."""
import collections
import json
import random
import sys
import time

form, seed = sys.argv[1], int(sys.argv[2])
random.seed(seed)
registry = collections.deque(maxlen=None if form == "leaks" else 100)
while True:
    text = json.dumps([{"id": random.random(), "words": [str(i) * 3 for i in range(10)]} for _ in range(8)])
    registry.append(json.loads(text))
    time.sleep(0.03 + random.random() * 0.03)
