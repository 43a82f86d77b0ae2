"""An export that writes orders into a spreadsheet, a page of them every few seconds. With constant_memory each row goes to the disk when
the next begins; without, which is the default, every cell and text waits in memory until the workbook is closed."""
import random
import sys
import time

import xlsxwriter

form, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)
book = xlsxwriter.Workbook("export.xlsx", {"constant_memory": form == "steady"})
sheet = book.add_worksheet()
pause = 4 + 4 * chance.random()
row = 0
while True:
    for _ in range(chance.randrange(100, 500)):
        for column in range(6):
            sheet.write_number(row, column, chance.random() * 1000)
        for column in range(6, 10):
            sheet.write_string(row, column, f"order {chance.randrange(10**9)} of customer {column}")
        row += 1
    time.sleep(pause * (0.5 + chance.random()))
