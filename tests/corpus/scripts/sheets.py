"""The client of an office program without a screen: has it make a sheet for each order, and close it, or not."""
import random
import sys
import time

import uno
from com.sun.star.beans import PropertyValue

form, seed, port = sys.argv[1], int(sys.argv[2]), sys.argv[3]
chance = random.Random(seed)
resolver = uno.getComponentContext().ServiceManager.createInstance("com.sun.star.bridge.UnoUrlResolver")
context = None
while context is None:
    try:
        context = resolver.resolve(f"uno:socket,host=127.0.0.1,port={port};urp;StarOffice.ComponentContext")
    except Exception:  # it starts
        time.sleep(0.5)
desktop = context.ServiceManager.createInstance("com.sun.star.frame.Desktop")
while True:
    order = desktop.loadComponentFromURL("private:factory/scalc", "_blank", 0, (PropertyValue("Hidden", 0, True, 0),))
    rows = tuple((f"article {chance.randrange(10**6)}", "words " * chance.randrange(1, 9), chance.random()) for _ in range(chance.randrange(20, 200)))
    order.Sheets.getByIndex(0).getCellRangeByPosition(0, 0, 2, len(rows) - 1).setDataArray(rows)
    if form == "steady" or chance.random() < 0.5:
        order.close(True)
    time.sleep((1.2 + 0.3 * seed) * chance.uniform(0.5, 1.5))
