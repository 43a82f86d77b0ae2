#!/usr/bin/python3
"""Writes src/ops/letter_case_table.inc: Unicode's simple case mappings (one character to one), as runs.

A run is {first, last, step, distance}: every step-th character from first to last maps to itself + distance.
"""
import sys
import unicodedata


def simple(character, change):
    """The one-to-one mapping; what becomes several characters stays, except for the dotted capital I."""
    if change == "lower" and character == "\u0130":
        return "i"
    mapped = getattr(character, change)()
    return mapped if len(mapped) == 1 else character


def runs(change):
    result = []
    for code in range(0x110000):
        distance = ord(simple(chr(code), change)) - code if not 0xD800 <= code < 0xE000 else 0
        if distance == 0:
            continue
        if result and result[-1][3] == distance:
            first, last, step, _ = result[-1]
            if (first == last and code - last in (1, 2)) or code - last == step:
                result[-1] = (first, code, code - last, distance)
                continue
        result.append((code, code, 1, distance))
    return result


def main():
    print(f"// Made by tools/make_letter_case.py from Unicode {unicodedata.unidata_version}.")
    for change in ["lower", "upper"]:
        print(f"constexpr CaseRun k{change.capitalize()}Runs[] = {{")
        for first, last, step, distance in runs(change):
            print(f"    {{0x{first:x}, 0x{last:x}, {step}, {distance}}},")
        print("};")
    return 0


if __name__ == "__main__":
    sys.exit(main())
