"""A publisher of ZeroMQ's with a subscriber that has stopped reading. The queue has its usual limit, or none."""
import random
import sys
import time

import zmq

form, seed, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(seed)
publisher = zmq.Context().socket(zmq.PUB)
publisher.setsockopt(zmq.SNDHWM, 0 if form == "leaks" else 1000)
publisher.setsockopt(zmq.SNDBUF, 65536)
publisher.bind(f"tcp://127.0.0.1:{port}")
pause = 0.03 * chance.uniform(0.7, 1.4)
while True:
    for _ in range(4):
        publisher.send_multipart([b"prices", chance.randbytes(chance.randrange(200, 2000))])
    time.sleep(pause)
