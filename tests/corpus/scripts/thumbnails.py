"""Thumbnails of large images by Pillow, under the name of the upload: the last 25 of them, or all."""
import collections
import io
import random
import sys
import time

from PIL import Image

form, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)
thumbnails = collections.OrderedDict()
pause = 0.4 * chance.uniform(0.7, 1.4)
while True:
    side = chance.randrange(300, 900)
    upload = Image.frombytes("L", (64, 64), chance.randbytes(64 * 64)).resize((side, side)).convert("RGB")
    file = io.BytesIO()
    upload.save(file, "JPEG", quality=80)
    image = Image.open(file)
    image.thumbnail((160, 160))
    thumbnails[chance.random()] = image
    if form == "steady" and len(thumbnails) > 25:
        thumbnails.popitem(last=False)
    time.sleep(pause)
