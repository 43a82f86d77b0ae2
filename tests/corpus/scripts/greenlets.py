"""A service by gevent that asks another one and waits for its answer, which does not come for one question in four. It waits three
seconds, or for ever."""
import random
import sys

import gevent
from gevent.event import AsyncResult

form, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)


def other_service(answer, body):
    gevent.sleep(chance.uniform(0.01, 0.2))
    if chance.random() > 0.25:
        answer.set(sum(len(line) for line in body))


def ask(number):
    body = [f"{number} line {i} " + "w" * chance.randrange(10, 200) for i in range(chance.randrange(20, 150))]
    answer = AsyncResult()
    gevent.spawn(other_service, answer, body)
    try:
        return answer.get(timeout=3 if form == "steady" else None) / len(body)
    except gevent.Timeout:
        return None


number, pause = 0, 0.025 + 0.006 * seed
while True:
    number += 1
    gevent.spawn(ask, number)
    gevent.sleep(pause * chance.uniform(0.5, 1.5))
