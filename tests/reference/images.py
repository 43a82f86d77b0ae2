"""ImageDecoder against Pillow; bitmaps and portable maps are written here."""
import io
import struct

import numpy as np
from PIL import Image

from harness import choice, reference, rejects


def picture(rng, gray=False):
    """Smooth, with a few sharp edges: what lossy formats are made for."""
    height, width = int(rng.integers(1, 70)), int(rng.integers(1, 70))
    y, x = np.mgrid[0:height, 0:width]
    channels = [127 + 120 * np.sin(x / rng.uniform(5, 30) + y / rng.uniform(5, 30) + rng.uniform(0, 6)) for _ in range(3)]
    pixels = np.stack(channels[:1] * 3 if gray else channels, axis=2)
    pixels[height // 3:height // 2, width // 3:width // 2] = rng.integers(0, 256, 3) if not gray else 40
    return pixels.astype(np.uint8)


def saved(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def portable(rng, pixels):
    """P1 to P7, text and binary, one byte and two."""
    height, width, _ = pixels.shape
    kind = int(rng.integers(1, 8))
    gray = pixels[:, :, 0]
    comment = b"# a comment\n" if rng.random() < 0.5 and kind != 7 else b""
    size = b"%d %d\n" % (width, height)
    if kind in (1, 4):
        bits = (gray < 128).astype(np.uint8)
        body = b" ".join(b"%d" % b for b in bits.ravel()) if kind == 1 else np.packbits(bits, axis=1).tobytes()
        return b"P%d\n" % kind + comment + size + body
    if kind in (2, 3):
        samples = gray if kind == 2 else pixels
        return b"P%d\n" % kind + comment + size + b"255\n" + b" ".join(b"%d" % v for v in samples.ravel())
    wide = rng.random() < 0.5
    samples = gray if kind == 5 else pixels
    body = (samples.astype(">u2") * 257).tobytes() if wide else samples.tobytes()
    largest = 65535 if wide else 255
    if kind == 7:
        return (b"P7\nWIDTH %d\nHEIGHT %d\nDEPTH 3\nMAXVAL %d\nTUPLTYPE RGB\nENDHDR\n" % (width, height, largest)) + body
    return b"P%d\n" % kind + comment + size + b"%d\n" % largest + body


def portable_pixels(data):
    """What portable() meant, read back by other means."""
    kind = data[1:2]
    if kind == b"7":
        header, _, body = data.partition(b"ENDHDR\n")
        fields = dict(line.split(b" ", 1) for line in header.split(b"\n")[1:-1])
        wide = int(fields[b"MAXVAL"]) > 255
        samples = np.frombuffer(body, ">u2" if wide else np.uint8)
        pixels = (samples // 257 if wide else samples).astype(np.uint8)
        return pixels.reshape(int(fields[b"HEIGHT"]), int(fields[b"WIDTH"]), 3)
    lines = [line for line in data.split(b"\n", 4) if not line.startswith(b"#")]
    width, height = map(int, lines[1].split())
    if kind in b"14":
        body = data[data.index(lines[1]) + len(lines[1]) + 1:]
        bits = (np.array(body.split(), np.uint8) if kind == b"1"
                else np.unpackbits(np.frombuffer(body, np.uint8).reshape(height, -1), axis=1)[:, :width].ravel())
        return np.repeat(np.where(bits, 0, 255).astype(np.uint8).reshape(height, width, 1), 3, axis=2)
    header = b"\n".join([lines[1], lines[2]]) + b"\n"
    body = data[data.index(header) + len(header):]
    if kind in b"23":
        samples = np.array(body.split(), np.int64).astype(np.uint8)
    elif lines[2] == b"65535":
        samples = (np.frombuffer(body, ">u2") // 257).astype(np.uint8)
    else:
        samples = np.frombuffer(body, np.uint8)
    pixels = samples.reshape(height, width, -1)
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels


def run_lengths(rows):
    """RLE8 of indices, bottom row first, with runs, single pixels and a move."""
    data = b""
    for row in rows[::-1]:
        at = 0
        while at < len(row):
            end = at
            while end < len(row) and row[end] == row[at] and end - at < 255:
                end += 1
            if end - at == 1 and at + 3 <= len(row):
                literal = bytes(row[at:at + 3])
                data += bytes([0, 3]) + literal + b"\0"
                at += 3
            else:
                data += bytes([end - at, row[at]])
                at = end
        data += b"\0\0"
    return data + b"\0\1"


def bitmap(rng, pixels):
    """Top-down, 16 and 32 bits with fields, and run lengths: what Pillow does not write."""
    height, width, _ = pixels.shape
    form = choice(rng, ["top_down", "fields16", "rle8"])
    red, green, blue = [pixels[:, :, i].astype(np.uint32) for i in range(3)]
    if form == "rle8":
        index = (red >> 5).astype(np.uint8)
        palette = np.array([[i * 36, 255 - i * 20, i * 7, 0] for i in range(8)], np.uint8)
        body = run_lengths(index.tolist())
        data = header(width, height, 8, 1, 54 + 32, 8) + palette.tobytes() + body
        return data, palette[index][:, :, 2::-1]
    if form == "fields16":
        values = ((red >> 3) << 11 | (green >> 2) << 5 | blue >> 3).astype("<u2")
        rows = np.pad(values, [(0, 0), (0, width % 2)])[::-1]
        masks = struct.pack("<3I", 0xF800, 0x7E0, 0x1F)
        def wide(value, most):
            return ((value * 255 + most // 2) // most).astype(np.uint8)
        expected = np.stack([wide(red >> 3, 31), wide(green >> 2, 63), wide(blue >> 3, 31)], axis=2)
        return header(width, height, 16, 3, 54 + 12, 0) + masks + rows.tobytes(), expected
    rows = np.zeros([height, (width * 3 + 3) // 4 * 4], np.uint8)
    rows[:, :width * 3] = pixels[:, :, ::-1].reshape(height, -1)
    return header(width, -height, 24, 0, 54, 0) + rows.tobytes(), pixels


def header(width, height, bits, compression, offset, colors):
    return (b"BM" + struct.pack("<IHHI", 0, 0, 0, offset)
            + struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, 0, 0, 0, colors, 0))


def encode(rng, kind):
    """(file, its pixels as RGB)."""
    pixels = picture(rng, gray=rng.random() < 0.2)
    if kind == "portable":
        data = portable(rng, pixels)
        return data, portable_pixels(data)
    if kind == "bitmap":
        return bitmap(rng, pixels)
    image = Image.fromarray(pixels)
    if rng.random() < 0.3 and kind in ("PNG", "TIFF", "BMP", "JPEG"):
        modes = {"PNG": ["L", "P", "RGBA", "LA", "1"], "TIFF": ["L", "P", "CMYK", "1"], "BMP": ["L", "P", "1"],
                 "JPEG": ["L", "CMYK"]}
        image = image.convert(choice(rng, modes[kind]))
    options = {"JPEG": {"quality": int(rng.integers(30, 96)), "progressive": bool(rng.random() < 0.5),
                        "subsampling": int(rng.integers(0, 3))},
               "PNG": {}, "BMP": {}, "WEBP": {"lossless": bool(rng.random() < 0.5)},
               "TIFF": {"compression": choice(rng, [None, "tiff_lzw", "tiff_adobe_deflate", "packbits"])},
               "JPEG2000": {"irreversible": bool(rng.random() < 0.5), "no_jp2": bool(rng.random() < 0.5)}}[kind]
    if image.mode == "1" and kind == "TIFF":
        options = {}
    data = saved(image, kind, **options)
    decoded = Image.open(io.BytesIO(data))
    if decoded.mode in ("RGBA", "LA"):
        decoded = decoded.convert("RGBA")
        return data, np.array(decoded)[:, :, :3]
    return data, np.array(decoded.convert("RGB"))


def cases(kind):
    def generate(rng):
        data, pixels = encode(rng, kind)
        attrs = {"pixel_format": choice(rng, ["RGB", "BGR", "Grayscale"])} if rng.random() < 0.9 else {}
        # Where colors are converted the roundings of two programs may differ by one.
        lossy = kind in ("JPEG", "WEBP", "JPEG2000", "TIFF")
        return {"inputs": [np.frombuffer(data, np.uint8)], "attrs": attrs, "opset": 20, "pixels": lambda: pixels,
                "rtol": 0.0, "atol": 2.0 if lossy else 0.0}
    return generate


def image_decoder(pixels, attrs, **_):
    pixels = pixels()
    kind = attrs.get("pixel_format", "RGB")
    if kind == "BGR":
        return [pixels[:, :, ::-1].astype(np.int64)]
    if kind == "Grayscale":
        weighted = (pixels.astype(np.uint32) * [19595, 38470, 7471]).sum(axis=2, keepdims=True)
        return [(weighted + 0x8000) >> 16]
    return [pixels.astype(np.int64)]


for format_name in ["BMP", "JPEG", "JPEG2000", "PNG", "TIFF", "WEBP", "portable", "bitmap"]:
    reference("ImageDecoder", cases(format_name), name=f"ImageDecoder {format_name}")(image_decoder)


def bytes_of(data):
    return np.frombuffer(data, np.uint8)


def lying(data, at, value):
    changed = bytearray(data)
    changed[at:at + len(value)] = value
    return bytes_of(bytes(changed))


SAMPLE = picture(np.random.default_rng(5))
FILES = {kind: saved(Image.fromarray(SAMPLE), kind) for kind in ["BMP", "JPEG", "JPEG2000", "PNG", "TIFF", "WEBP", "PPM"]}
for kind_name, content in FILES.items():
    rejects("ImageDecoder", [bytes_of(content[:len(content) // 2])], says="node", name=f"ImageDecoder cut {kind_name}", opset=20)
    rejects("ImageDecoder", [bytes_of(content[:13])], says="node", name=f"ImageDecoder header of {kind_name}", opset=20)
HUGE = struct.pack(">II", 0x7FFFFFFF, 0x7FFFFFFF)
rejects("ImageDecoder", [lying(FILES["PNG"], 16, HUGE)], says="claims 2147483647 x 2147483647 pixels", opset=20)
rejects("ImageDecoder", [lying(FILES["PNG"], 16, struct.pack(">II", 3000, 3000))], says="PNG", opset=20)
rejects("ImageDecoder", [lying(FILES["BMP"], 18, struct.pack("<ii", 1 << 30, 1 << 30))], says="claims", opset=20)
rejects("ImageDecoder", [lying(FILES["BMP"], 18, struct.pack("<ii", 5000, 5000))], says="BMP file ends", opset=20)
rejects("ImageDecoder", [bytes_of(b"P6 100000 100000 255\n" + bytes(10))], says="claims", opset=20)
rejects("ImageDecoder", [bytes_of(b"P6 1000 1000 255\n" + bytes(10))], says="10 bytes of pixels", opset=20)
rejects("ImageDecoder", [bytes_of(b"P5 2 2 0\n" + bytes(10))], says="expected 1 to 65535", opset=20)
rejects("ImageDecoder", [bytes_of(b"P2 2 2 255\n1 2 x 4")], says="no number at byte", opset=20)
rejects("ImageDecoder", [bytes_of(b"hello, this is text")], says="found 19 bytes of something else", opset=20)
rejects("ImageDecoder", [bytes_of(b"")], says="found 0 bytes", opset=20)
rejects("ImageDecoder", [bytes_of(FILES["PNG"])], {"pixel_format": "CMYK"}, says="'CMYK'", opset=20)
rejects("ImageDecoder", [np.zeros(10, np.int8)], says="type int8 is not allowed", opset=20)
rejects("ImageDecoder", [np.zeros([2, 10], np.uint8)], says="rank", opset=20)
