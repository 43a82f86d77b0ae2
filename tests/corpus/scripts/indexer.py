"""An indexer on Xapian. Changes are held in memory until they are committed: after every 60 documents, or when the
threshold that somebody raised is reached. Documents replace older ones of the same number."""
import os
import random
import sys
import time

form, seed = sys.argv[1], int(sys.argv[2])
os.environ["XAPIAN_FLUSH_THRESHOLD"] = "10000000"
import xapian  # noqa: E402

chance = random.Random(seed)
words = [f"word{i:05}" for i in range(3000)]
database = xapian.WritableDatabase("index", xapian.DB_CREATE_OR_OPEN)
generator = xapian.TermGenerator()
pause = 0.04 * chance.uniform(0.7, 1.4)
number = 0
while True:
    number += 1
    document = xapian.Document()
    document.set_data(f"document {number}")
    generator.set_document(document)
    generator.index_text(" ".join(chance.choices(words, k=70)))
    database.replace_document(number % 400 + 1 if form == "steady" else number, document)
    if form == "steady" and number % 60 == 0:
        database.commit()
    time.sleep(pause)
