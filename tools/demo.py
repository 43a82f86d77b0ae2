#!/usr/bin/python3
"""demo.py: what Plimsoll is for, on the example model. It sees only the command line, as any user does.

A digit; the plan, before anything is allocated; a run inside exactly that plan; one byte less, refused; the memory;
then the model is trained on something else inside a limit.
"""
import argparse
import ast
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
MODEL = EXAMPLES / "digits.onnx"
SHADES = " .:-=+*#%@"
BUDGET_EXCEEDED = 6  # exit status, see include/plimsoll/error.h


def read_npy(path):
    """(shape, values) of a little-endian float32 .npy file: too little work for a dependency."""
    data = pathlib.Path(path).read_bytes()
    # Magic, two bytes of version, the header's length (16 bits in version 1, 32 later), the header.
    form, start = ("<H", 10) if data[6] == 1 else ("<I", 12)
    end = start + struct.unpack_from(form, data, 8)[0]
    header = ast.literal_eval(data[start:end].decode())
    if data[:6] != b"\x93NUMPY" or header["descr"] != "<f4" or header["fortran_order"]:
        sys.exit(f"error: {path}: expected row-major float32")
    return header["shape"], [value for (value,) in struct.iter_unpack("<f", data[end:])]


def show_digit(shape, pixels):
    *_, height, width = shape
    print("  +" + "-" * 2 * width + "+")
    for y in range(height):
        row = pixels[y * width:(y + 1) * width]
        print("  |" + "".join(2 * SHADES[min(9, int(10 * value))] for value in row) + "|")
    print("  +" + "-" * 2 * width + "+")


def title(text):
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")


def plimsoll(command, *arguments):
    """Shows and runs one command; returns the finished process."""
    print("  $ plimsoll", *(a.replace(f"{ROOT}/", "") for a in arguments))
    return subprocess.run([command, *arguments, "--json"], capture_output=True, text=True)


def answer_of(process):
    if process.returncode != 0:
        sys.exit(f"error: status {process.returncode}: {process.stderr.strip()}")
    return json.loads(process.stdout)


def size(count):
    return f"{count:,} bytes"


def show_accounts(accounts):
    for name, held in accounts.items():
        if held:
            print(f"    {name:<10}{held:>12,}")


def show_plan(command, shape):
    dims = ",".join(map(str, shape))
    plan = answer_of(plimsoll(command, "plan", str(MODEL), "--shape", f"image={dims}"))
    print(f"  peak             {size(plan['peak_bytes'])}, known before anything is allocated")
    show_accounts(plan["accounts"])
    print(f"  lower bound      {size(plan['lower_bound_bytes'])}, for any placement of the same lifetimes")
    print(f"  for any batch    {plan['formula']}")
    print(f"  node at the peak {plan['node_at_peak']}")
    print(f"  smallest limit   {size(plan['minimum_limit_bytes'])}")
    return plan


def show_run(command, limit):
    with tempfile.TemporaryDirectory(prefix="plimsoll-demo-") as directory:
        run = answer_of(plimsoll(command, "run", str(MODEL), "--input", f"image={EXAMPLES / 'digit.npy'}",
                                 "--limit", str(limit), "--output", directory))
        _, scores = read_npy(pathlib.Path(directory) / "0.npy")
    print(f"  told {size(run['predicted_bytes'])}, measured {size(run['measured_bytes'])}; {run['median_ms']:.3f} ms")
    return run, scores.index(max(scores))


def show_refusal(command, limit):
    refused = plimsoll(command, "run", str(MODEL), "--input", f"image={EXAMPLES / 'digit.npy'}", "--limit", str(limit))
    if refused.returncode != BUDGET_EXCEEDED:
        sys.exit(f"error: expected a refusal (status {BUDGET_EXCEEDED}), got status {refused.returncode}")
    print(f"  {refused.stderr.strip()}")


def show_memory(run):
    """What the ledger and the kernel say of the process: before the session, at its highest, after it was closed."""
    print(f"  {'':<34}{'before':>14}{'at its peak':>14}{'after':>14}")
    print(f"  {'ledger, all accounts':<34}{0:>14,}{run['measured_bytes']:>14,}{run['after_ledger_bytes']:>14,}")
    print(f"  {'kernel, private memory':<34}{run['before_anonymous_bytes']:>14,}{'':>14}{run['after_anonymous_bytes']:>14,}")
    print(f"  {'kernel, pages of code and files':<34}{run['before_file_bytes']:>14,}{'':>14}{run['after_file_bytes']:>14,}")
    print(f"  {'kernel, all of the process':<34}{run['before_rss_bytes']:>14,}{run['peak_rss_bytes']:>14,}"
          f"{run['after_rss_bytes']:>14,}")
    code = run["after_file_bytes"] - run["before_file_bytes"]
    heap = run["after_anonymous_bytes"] - run["before_anonymous_bytes"]
    print(f"  Given back: all {size(run['measured_bytes'])} of the ledger. What stays are {size(code)} of program and library code that")
    print(f"  the run touched for the first time (pages of files, which the kernel takes back when it likes), and {size(heap)} that")
    print("  the C and C++ libraries keep for the process.")


# Ten signs that the model does not know, five by seven pixels each, one row after the other.
SIGNS = {"A": "01110100011000111111100011000110001", "C": "01111100001000010000100001000001111",
         "E": "11111100001000011110100001000011111", "F": "11111100001000011110100001000010000",
         "H": "10001100011000111111100011000110001", "L": "10000100001000010000100001000011111",
         "P": "11110100011000111110100001000010000", "T": "11111001000010000100001000010000100",
         "U": "10001100011000110001100011000101110", "X": "10001010100101000100010100101010001"}


def write_npy(path, kind, shape, values):
    header = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{'f' if kind == 'f4' else 'q'}", *values)
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def draw_sign(bits, chance):
    """Somewhere in the picture, in a pen of some strength, on paper that is not clean."""
    left, top, pen = chance.randrange(4), chance.randrange(2), chance.uniform(0.6, 1)
    pixels = [chance.uniform(0, 0.25) for _ in range(64)]
    for at, bit in enumerate(bits):
        if bit == "1":
            pixels[(top + at // 5) * 8 + left + at % 5] = pen
    return pixels


def write_signs(folder, count, seed):
    chance, images, labels = random.Random(seed), [], []
    for i in range(count):
        labels.append(i % len(SIGNS))
        images += draw_sign(list(SIGNS.values())[i % len(SIGNS)], chance)
    folder.mkdir()
    write_npy(folder / "image.npy", "f4", (count, 1, 8, 8), images)
    write_npy(folder / "labels.npy", "i8", (count,), labels)
    return images


def show_training(command, directory):
    """Teaches the model ten letters instead of digits, in less memory than training takes that keeps every result."""
    write_signs(directory / "signs", 640, 1)
    unseen = write_signs(directory / "unseen", 320, 2)
    common = ["train", str(MODEL), "--data", str(directory / "signs"), "--batch", "64", "--optimizer", "adam", "--lr", "2e-3",
              "--validation", str(directory / "unseen"), "--threads", "1"]
    plain = answer_of(plimsoll(command, *common, "--recompute", "none", "--plan"))["minimum_limit_bytes"]
    least = answer_of(plimsoll(command, *common, "--plan"))["minimum_limit_bytes"]
    print(f"  training that runs every node once needs {size(plain)}; the smallest limit of all is {size(least)}")
    trained = directory / "signs.onnx"
    result = answer_of(plimsoll(command, *common, "--limit", str(least), "--epochs", "12", "--output", str(trained)))
    print(f"  {result['steps']} steps in {result['seconds']:.1f} s: loss {result['first_loss']:.3f} to {result['last_loss']:.4f}, "
          f"{100 * result['accuracy']:.1f} % of the unseen signs right")
    print(f"  told {size(result['predicted_bytes'])}, measured {size(result['measured_bytes'])}")
    show_accounts(result["accounts"])
    wanted = 3
    write_npy(directory / "sign.npy", "f4", (1, 1, 8, 8), unseen[wanted * 64:(wanted + 1) * 64])
    show_digit((1, 1, 8, 8), unseen[wanted * 64:(wanted + 1) * 64])
    answer_of(plimsoll(command, "run", str(trained), "--input", f"image={directory / 'sign.npy'}", "--output",
                       str(directory / "answer")))
    _, scores = read_npy(directory / "answer" / "0.npy")
    answer = scores.index(max(scores))
    print(f"  the trained model says: {list(SIGNS)[answer]}; what was drawn: {list(SIGNS)[wanted]}")
    return answer == wanted and result["accuracy"] > 0.9


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default=str(ROOT / "build" / "plimsoll"), help="the plimsoll to show")
    command = parser.parse_args().command
    if not pathlib.Path(command).exists():
        sys.exit(f"error: {command} is not there; run ./dev build")
    label = int((EXAMPLES / "digit.txt").read_text())
    shape, pixels = read_npy(EXAMPLES / "digit.npy")

    title("A handwritten digit, which the model has never seen")
    show_digit(shape, pixels)
    title("Told before: the plan")
    plan = show_plan(command, shape)
    title("Never crossed: a run with the smallest limit")
    run, answer = show_run(command, plan["minimum_limit_bytes"])
    print(f"  the answer: {answer}; what the writer meant: {label}")
    title("One byte less is refused, before anything is allocated")
    show_refusal(command, plan["minimum_limit_bytes"] - 1)
    title("Given back: the process's memory")
    show_memory(run)
    title("Training inside the line: the same model learns letters")
    with tempfile.TemporaryDirectory(prefix="plimsoll-demo-") as directory:
        learned = show_training(command, pathlib.Path(directory))
    return 0 if answer == label and learned else 1


if __name__ == "__main__":
    sys.exit(main())
