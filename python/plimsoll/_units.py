"""Bytes and seconds as people write them."""
import re
from typing import Optional, Union

from .errors import InvalidArgument

Size = Union[int, float, str, None]
Seconds = Union[int, float, None]

_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "k": 1 << 10, "mib": 1 << 20, "m": 1 << 20, "gib": 1 << 30, "g": 1 << 30,
          "tib": 1 << 40, "t": 1 << 40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def parse_bytes(value: Size, name: str) -> int:
    """256, 1.5e9, "256MiB", "1.5 GiB", "500KB"; None is 0, no limit."""
    if value is None:
        return 0
    if isinstance(value, float) and value.is_integer():  # which neither NaN nor infinity is
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 < value < 1 << 62:
            raise InvalidArgument(f"{name}={value!r}: expected a positive number of bytes, or None for no limit")
        return value
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d{1,30}(?:\.\d{1,30})?)\s*([a-z]*)\s*", value, re.IGNORECASE)
        if match and match[2].lower() in _UNITS:
            size = int(float(match[1]) * _UNITS[match[2].lower()])
            if 0 < size < 1 << 62:
                return size
    raise InvalidArgument(f"{name}={value!r}: expected bytes, such as 268435456 or '256MiB'")


def parse_most(value: Size, name: str) -> int:
    """As parse_bytes, but None is more than there can be."""
    return parse_bytes(value, name) if value is not None else 1 << 46


def parse_milliseconds(value: Seconds, name: str) -> int:
    """Seconds; None is 0, no limit."""
    if value is None:
        return 0
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if 0 < value < 1e9:  # which no NaN is
            return max(1, round(value * 1000))
    raise InvalidArgument(f"{name}={value!r}: expected a positive number of seconds, or None for no limit")


def parse_count(value: Optional[int], name: str) -> int:
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 62:
        return value
    raise InvalidArgument(f"{name}={value!r}: expected a positive whole number, or None for no limit")
