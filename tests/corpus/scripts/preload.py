"""Buffers of many sizes for a few seconds; under an allocator of its own (LD_PRELOAD, PYTHONMALLOC=malloc)."""
import random
import sys
import time

form, seed = sys.argv[1], int(sys.argv[2])
random.seed(seed)
live, kept = [], []
while True:
    live.append(bytearray(random.choice((300, 2_000, 9_000, 40_000))))
    if len(live) > 200:
        live.pop(random.randrange(len(live)))
    if form == "leaks":
        kept.append([str(random.random()) * 20 for _ in range(3)])
    time.sleep(0.015)
