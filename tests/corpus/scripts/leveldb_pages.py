"""Orders in LevelDB, of which customers ask for the first page; its iterator is kept for the next one, which seldom is asked for. Five
iterators are kept, or all: each keeps what was in memory when it was made."""
import collections
import random
import sys
import time

import plyvel

form, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)
database = plyvel.DB("orders", create_if_missing=True, write_buffer_size=400 << 10, lru_cache_size=500 << 10, max_open_files=40)
open_pages = collections.deque()
pause = 0.03 + 0.006 * seed
while True:
    key = b"%06d" % chance.randrange(3000)
    database.put(key, chance.randbytes(chance.randrange(1000, 8000)))
    if chance.random() < 0.03:
        page = database.iterator(start=key)
        for _ in range(20):
            next(page, None)
        open_pages.append(page)
        if form == "steady" and len(open_pages) > 5:
            open_pages.popleft().close()
    time.sleep(pause * chance.uniform(0.5, 1.5))
