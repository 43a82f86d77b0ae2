"""Many samples in bounded room, and a slope that a few wild ones cannot move."""
import math
from array import array
from statistics import median


class Series:
    """Rows of numbers by iteration, in room taken once. When full, every second row is dropped and only every second
    iteration is taken from then on."""

    def __init__(self, columns, limit=96):
        self.limit = limit
        self.stride = 1
        self.length = 0
        self.iterations = array("q", bytes(8 * limit))
        self.columns = {name: array("q", bytes(8 * limit)) for name in columns}

    def wants(self, iteration):
        return iteration % self.stride == 0

    def add(self, iteration, **values):
        if not self.wants(iteration):
            return
        if self.length == self.limit:
            self._thin_out()
            if not self.wants(iteration):
                return
        self.iterations[self.length] = iteration
        for name, value in values.items():
            self.columns[name][self.length] = value
        self.length += 1

    def _thin_out(self):
        self.stride *= 2
        kept = 0
        for row in range(self.length):
            if self.iterations[row] % self.stride == 0:
                for column in (self.iterations, *self.columns.values()):
                    column[kept] = column[row]
                kept += 1
        self.length = kept

    def points(self, name, first=0):
        """[(iteration, value)] from iteration `first` on."""
        return [(self.iterations[row], self.columns[name][row]) for row in range(self.length)
                if self.iterations[row] >= first]


class Slope:
    """Bytes per iteration: the Theil-Sen estimate with a 95 % interval after Sen (1968)."""

    def __init__(self, value, low, high, points):
        self.value, self.low, self.high, self.points = value, low, high, points

    def to_dict(self):
        return {"bytes_per_iteration": self.value, "low": self.low, "high": self.high, "points": self.points}


def theil_sen(points):
    """None with fewer than four points: two of them make any slope."""
    if len(points) < 4:
        return None
    points = _thin(points, 120)
    slopes = sorted((after[1] - before[1]) / (after[0] - before[0])
                    for number, before in enumerate(points) for after in points[number + 1:] if after[0] != before[0])
    if not slopes:
        return None
    count = len(points)
    spread = 1.96 * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, math.floor((len(slopes) - spread) / 2))
    high = min(len(slopes) - 1, math.ceil((len(slopes) + spread) / 2))
    return Slope(median(slopes), slopes[low], slopes[high], count)


def _thin(points, limit):
    if len(points) <= limit:
        return points
    return [points[round(number * (len(points) - 1) / (limit - 1))] for number in range(limit)]
