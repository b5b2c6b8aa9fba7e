#!/usr/bin/env bash
# null.sh - every call of the public headers that takes a pointer has been asked
# what it does with NULL: test/unit/null_*.c names it.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."

# What is declared or defined, less comments: hf_NAME(...) with a `*` or `[`
# between the brackets.
declared() {
    cat include/holdfast/*.h | sed '/^#/d' |
        gcc -fpreprocessed -dD -E -P -x c - | tr '\n' ' ' |
        grep -oE '\bhf_[a-z0-9_]+\([^;{]*[*[][^;{]*\) *(__attribute__[^;]*)?[;{]' |
        grep -oE '^hf_[a-z0-9_]+' | grep -v '_fn$' | sort -u
}

names=$(declared)
expect "there are many" 1 $(($(wc -w <<<"$names") > 400))
for name in $names; do
    check "$name is asked" grep -qE "\\b$name\\(" test/unit/null_*.c
done
finish
