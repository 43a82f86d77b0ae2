"""Jobs of an interactive session, a notebook or a -c program, whose functions are in no file."""
import subprocess
import sys

import pytest

DEFINITIONS = """
import math, plimsoll, dataclasses, abc
FACTOR = 3
def scale(x): return FACTOR * x
def factorial(n): return 1 if n == 0 else n * factorial(n - 1)
def adder(n):
    def add(x, *, more=1): return x + n + more
    return add
class Own(Exception):
    def __init__(self, a, b): super().__init__(f"{a} {b}")
def fails(): raise Own(1, 2)
@dataclasses.dataclass
class Point:
    x: int
    y: int = 2
    def length(self): return math.hypot(self.x, self.y)
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
class Square(Shape):
    side = 2
    def __init__(self, side): super().__init__(); self.side = side
    def area(self): return self.side ** 2
    @property
    def twice(self): return 2 * self.side
    @staticmethod
    def name(): return "square"
def move(point): return dataclasses.replace(point, x=point.x + 1)
"""
USES = """
print(plimsoll.isolated(scale, 5).value)
print(plimsoll.isolated(factorial, 10).value)
print(plimsoll.isolated(adder(10), 5, more=2).value)
print(plimsoll.isolated(lambda: scale(2)).value)
print(plimsoll.isolated(move, Point(3)).value == Point(4))
print(plimsoll.isolated(Point.length, Point(3, 4)).value)
print(plimsoll.isolated(lambda s: (s.area(), s.twice, s.name()), Square(3)).value)
try: plimsoll.isolated(fails)
except Own as error: print("own", error, type(error.__cause__).__name__)
FACTOR = 5
with plimsoll.Pool(1) as pool: print(pool.submit(scale, 5).result(), list(pool.map(scale, [1, 2])))
print(plimsoll.isolated(max, [Point(1), Point(2)], key=lambda p: p.x).value)
"""
EXPECTED = "15\n3628800\n17\n6\nTrue\n5.0\n(9, 6, 'square')\nown 1 2 _RemoteTraceback\n25 [5, 10]\nPoint(x=2, y=2)\n"


def typed(code):
    """As at a prompt, where an empty line ends a block."""
    lines, in_block = [], False
    for line in code.splitlines():
        if in_block and line and not line.startswith((" ", "except")) and not lines[-1].startswith("@"):
            lines.append("")
            in_block = False
        in_block = in_block or line.startswith(("def ", "class ", "with ", "try:", "@"))
        lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("how", ["-c", "stdin", "interactive"])
def test_functions_and_classes_go_by_value(how):
    code = DEFINITIONS + USES
    command = {"-c": ["-c", code], "stdin": ["-"], "interactive": ["-i", "-q"]}[how]
    given = {"-c": "", "stdin": code, "interactive": typed(code)}[how]
    done = subprocess.run([sys.executable, *command], input=given, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == EXPECTED, done.stderr


def test_what_cannot_go_by_value_is_told():
    code = ("import plimsoll, threading, enum\nlock = threading.Lock()\ndef f(): return lock\n"
            "class Color(enum.Enum): RED = 1\ndef g(): return Color.RED\n"
            "for job in (f, g):\n"
            "    try: plimsoll.isolated(job)\n"
            "    except plimsoll.NotTransferable as error: print(error)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert "lock" in done.stdout and "Enum" in done.stdout, done.stdout + done.stderr
