"""Orders in XML, read by minidom, whose nodes know their parents: circles. The collector of circles is off, so that nobody has
to wait for it, and is called after every hundred orders, or never."""
import gc
import random
import sys
import time
from xml.dom import minidom

form, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)
gc.disable()
pause = 0.1 * chance.uniform(0.7, 1.4)
count = total = 0
while True:
    lines = "".join(f'<line number="{i}"><article>{chance.random()}</article></line>' for i in range(chance.randrange(3, 14)))
    order = minidom.parseString(f"<order>{lines}</order>")
    total += len(order.getElementsByTagName("article"))
    count += 1
    if form == "steady" and count % 100 == 0:
        gc.collect()
    time.sleep(pause)
