"""Jobs on arrays."""
import mmap
import os
import time


def doubled(array):
    return array * 2


def total(array):
    return int(array.sum())


def change_and_sum(array):
    before = int(array.sum())
    array[0] = 1  # copy-on-write
    return before


def try_to_write(array):
    """Through every file that came along, mapped again for all to see."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("/memfd:plimsoll"):
                continue
            mmap.mmap(int(name), array.nbytes)[0:1] = b"x"
            return "written"
        except OSError:
            pass
        try:
            os.pwrite(int(name), b"x", 0)
            return "written"
        except OSError:
            pass
    return "refused"


def first_of_each(*arrays):
    return [int(array.reshape(-1)[0]) for array in arrays]


def shared(size):
    import plimsoll
    array = plimsoll.shared_empty(size, "u1")
    array[:] = 3
    return array


def pair(array):
    return array, array + 1


def sleep_on(array):
    time.sleep(100)
    return array
