"""A tutor that sets exercises and differentiates them. SymPy keeps what it has worked out: SYMPY_CACHE_SIZE results of each function, or
all of them where that is None."""
import random
import sys
import time

import sympy

chance = random.Random(int(sys.argv[2]))
x, y = sympy.symbols("x y")
pause = 0.1 + 0.06 * chance.random()
while True:
    a, b, c = (chance.randrange(1, 10**6) for _ in range(3))
    exercise = a * x**chance.randrange(2, 6) * y + sympy.sin(b * x) * (c + y) ** 2
    answer = sympy.diff(exercise, x).expand().subs(y, a)
    len(str(answer))
    time.sleep(pause * (0.5 + chance.random()))
