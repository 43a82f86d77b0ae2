#!/bin/bash
# Thumbnails, one command each.
cd "$1" || exit
convert -size 640x480 plasma: in.png
while :; do
  convert in.png -resize $((100 + RANDOM % 200)) -blur 0x1 out.jpg
  sleep 1.$((RANDOM % 10))
done
