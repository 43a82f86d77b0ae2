#!/bin/bash
# A build that starts again and again.
cd "$1" || exit
for i in 1 2 3 4; do printf '#include <stdio.h>\n#include <stdlib.h>\nint f%d(int x){return printf("%%d", x);}\n' "$i" >"f$i.c"; done
printf 'all: f1.o f2.o f3.o f4.o\n%%.o: %%.c\n\tgcc -O1 -c $< -o $@\n\tsleep 0.3\n' >Makefile
while :; do
  rm -f ./*.o
  make -s -j2
  sleep 1
done
