#!/usr/bin/env bash
# make.sh - makes records.h and products.h with the engine of an earlier commit.
#
#   test/support/old/make.sh > test/support/old/records.h
#   test/support/old/make.sh products > test/support/old/products.h
#
# The commit is the last before HOLD_GRAPH, or the last with images of format 2.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
commit=76021b5 maker=make.c
[ "${1:-}" != products ] || commit=c811fa1 maker=make_products.c
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

git -C "$root" archive "$commit" | tar -x -C "$copy"
mkdir -p "$copy/here/support"
cp -r "$root/test/support/old" "$copy/here/support"
gcc -std=c11 -D_GNU_SOURCE -I"$copy/include" -I"$copy/src" -I"$copy/here" \
    -include "$copy/src/base/banned.h" \
    -o "$copy/make" "$copy/here/support/old/$maker" "$copy"/src/hold/*.c \
    "$copy"/src/base/*.c -lxxhash -lm -pthread
"$copy/make"
