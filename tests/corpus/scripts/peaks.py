"""Blocks of measurements, of which the part around the peak is kept: the last 200 as copies, or all as views, which keep
their whole block."""
import collections
import sys
import time

import numpy

form, seed = sys.argv[1], int(sys.argv[2])
chance = numpy.random.default_rng(seed)
peaks = [] if form == "leaks" else collections.deque(maxlen=200)
pause = 0.12 * chance.uniform(0.7, 1.4)
while True:
    block = chance.normal(size=int(chance.integers(1000, 5000))).cumsum()
    spectrum = numpy.abs(numpy.fft.rfft(block))
    middle = int(spectrum[5:].argmax()) + 5
    part = block[max(0, middle - 16):middle + 16]
    peaks.append(part if form == "leaks" else part.copy())
    time.sleep(pause)
