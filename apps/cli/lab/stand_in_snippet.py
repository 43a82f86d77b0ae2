# Where torch is absent: many modules from files, large and small objects, threads with heaps of their own.
import ctypes
import pkgutil
import sys
import threading

for module in ("asyncio", "concurrent.futures", "decimal", "email", "http.client", "json", "sqlite3", "unittest",
               "xml.etree.ElementTree", "xmlrpc.client", "zipfile"):
    try:
        __import__(module)
    except ImportError:
        pass
names = [module.name for module in pkgutil.iter_modules()]
blocks = [bytearray(1 << 20) for _ in range(96)]
objects = [{"index": index, "name": str(index)} for index in range(200_000)]
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


def native_heap():
    chunks = [libc.malloc(40_000) for _ in range(400)]
    for chunk in chunks:
        libc.memset(chunk, 1, 40_000)
    for chunk in chunks[:-1]:  # the last one pins the top of its arena, as a library's own state does
        libc.free(chunk)


threads = [threading.Thread(target=native_heap) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
del objects, blocks
