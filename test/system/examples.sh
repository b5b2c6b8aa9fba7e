#!/usr/bin/env bash
# examples.sh - the example in every public header compiles, runs and ends well.
#
# An example stands in the header's opening comment, after a line ` * Example:`,
# with three spaces after the star; a line with fewer ends it. It is the body of
# a main function, unless it has one. What it says is so, it asserts.
#
# tests: also under sanitizers
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
san=${HOLDFAST_SAN:-}
build=$(dirname "${HOLDFAST:-build/holdfast}")
flags=(-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -g -O1 -I include)
[[ -z $san ]] || flags+=("-fsanitize=${san/address/address,undefined}"
    -fno-sanitize-recover=all)

# example HEADER: the lines of its example, without the stars.
example() {
    awk '/\*\// { exit }
         /^ \* Example:$/ { inside = 1; next }
         !inside { next }
         /^ \*$/ { print ""; next }
         /^ \*   / { print substr($0, 6); next }
         { exit }' "$1"
}

# program HEADER: the example as a whole program.
program() {
    local text
    text=$(example "$1")
    printf '#include <%s>\n' "${1#include/}" assert.h pthread.h stdint.h \
        stdio.h stdlib.h string.h
    if [[ $text == *"int main("* ]]; then
        printf '%s\n' "$text"
    else
        printf 'int main(void)\n{\n%s\nreturn 0;\n}\n' "$text"
    fi
}

# has_functions HEADER: does it declare something that can be called?
has_functions() { grep -qE '^[a-z].*\bhf_[a-z0-9_]+\(' "$1"; }

has_example() { [[ -n $(example "$1" | tr -d '[:space:]') ]]; }

compiles() {
    program "$1" >"$2.c"
    gcc "${flags[@]}" -o "$2" "$2.c" "$build/libholdfast-stores.a" \
        "$build/libholdfast.a" -lsqlite3 -lpq -lhiredis -lm -pthread
}

runs() { timeout 60 "$1" >"$1.out" 2>&1 || { tail -n 20 "$1.out"; return 1; }; }

# The reader of examples reads what it should.
cat >"$folder/sample.h" <<'END'
/* sample.h - text
 *
 *   not this
 *
 * Example:
 *
 *   one();
 *
 *       two();
 * Text again.
 *   nor this
 */
int hf_sample(void);
END
expect "an example is found" $'\none();\n\n    two();' \
    "$(example "$folder/sample.h")"
check "functions are found" has_functions "$folder/sample.h"

for header in include/holdfast/*.h; do
    name=${header##*/}
    if has_example "$header"; then
        built=$folder/${name%.h}
        check "the example of $name compiles" compiles "$header" "$built"
        [[ ! -x $built ]] || check "the example of $name runs" runs "$built"
    else
        lacks() { ! has_functions "$1"; }
        check "$name declares functions and has no example" lacks "$header"
    fi
done

finish
