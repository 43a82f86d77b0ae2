"""A crawler that notes the titles of pages. One of BeautifulSoup's strings belongs to its tree and keeps all of it; str() does not."""
import random
import sys
import time

from bs4 import BeautifulSoup

form, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)
titles = []
pause = 0.12 * chance.uniform(0.7, 1.4)
while True:
    number = chance.randrange(10**9)
    items = "".join(f"<li class='c{i}'><a href='/p/{number + i}'>page {i}</a></li>" for i in range(chance.randrange(7, 20)))
    soup = BeautifulSoup(f"<html><head><title>Page {number}</title></head><body><ul>{items}</ul></body></html>", "lxml")
    titles.append(soup.title.string if form == "leaks" else str(soup.title.string))
    if form == "steady":
        del titles[:-100]
    time.sleep(pause)
