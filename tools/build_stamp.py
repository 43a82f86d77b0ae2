#!/usr/bin/python3
"""build_stamp.py OUTPUT ARCHIVE...: a C++ file that names this build by what the archives contain (src/compiled/build_id.h)."""
import hashlib
import pathlib
import sys

output, *archives = map(pathlib.Path, sys.argv[1:])
total = hashlib.sha1()
for archive in sorted(archives):
    total.update(hashlib.sha1(archive.read_bytes()).digest())
output.write_text("// Written by tools/build_stamp.py.\n"
                  f'extern "C" const char plimsoll_build_stamp[] = "{total.hexdigest()}";\n')
