"""A pool of workers, replaced after 40 tasks; in the other form never, and a global list in each."""
import multiprocessing
import sys
import time

kept = []


def work(job):
    form, number = job
    rows = [f"{number} {i} " + "x" * 50 for i in range(60)]
    if form == "leaks":
        kept.append(rows)
    return len("".join(rows))


if __name__ == "__main__":
    form = sys.argv[1]
    with multiprocessing.Pool(3, maxtasksperchild=None if form == "leaks" else 40) as pool:
        number = 0
        while True:
            number += 1
            pool.apply(work, ((form, number),))
            time.sleep(0.05)
