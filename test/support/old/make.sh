#!/usr/bin/env bash
# make.sh - makes records.h with the engine of an earlier commit.
#
#   test/support/old/make.sh [COMMIT] > test/support/old/records.h
#
# The commit is the last before HOLD_GRAPH, unless told otherwise.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
commit=${1:-76021b5}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

git -C "$root" archive "$commit" | tar -x -C "$copy"
mkdir -p "$copy/here/support"
cp -r "$root/test/support/old" "$copy/here/support"
gcc -std=c11 -D_GNU_SOURCE -I"$copy/include" -I"$copy/src" -I"$copy/here" \
    -include "$copy/src/base/banned.h" \
    -o "$copy/make" "$copy/here/support/old/make.c" "$copy"/src/hold/*.c \
    "$copy"/src/base/*.c -lxxhash -lm -pthread
"$copy/make"
