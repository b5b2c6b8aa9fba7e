#!/usr/bin/env bash
# tidy.sh - tests of tools/tidy: a clean tree passes, and each way to break a
# rule gives exactly one finding.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# clean: the smallest tree with one of everything.
clean() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree"/{include/holdfast,src/{base,flow,hold,server},test/support}
    cp .clang-format "$tree"
    local folder
    for folder in src/{base,flow,hold,server} test; do
        echo "# A folder" >"$tree/$folder/README.md"
    done
    put include/holdfast/rate.h '#include <stdint.h>' 'uint64_t rate(void);'
    put include/holdfast/status.h 'int status(void);'
    put src/base/status.c '#include "holdfast/status.h"'
    put src/base/bytes.h '#include <stddef.h>' 'size_t bytes(void);'
    put src/flow/rate.c '#include "holdfast/rate.h"' '' '#include "base/bytes.h"'
    put src/hold/lock.h '#include "base/bytes.h"' '#include "holdfast/status.h"'
    put src/server/loop.c '#include "hold/lock.h"' '#include "holdfast/rate.h"'
}

put() { # FILE LINE...
    local file=$tree/$1
    shift
    printf '%s\n' "$@" >"$file"
}

repeat() { # COUNT TEXT: that many lines
    local i
    for ((i = 0; i < $1; i++)); do
        printf '%s\n' "$2"
    done
}

# finds WHAT: tidy fails with exactly this finding.
finds() {
    local status=0 output
    output=$(tools/tidy "$tree" 2>&1) || status=$?
    expect "tidy fails" 1 "$status"
    expect "finding" "$1"$'\n'"tidy: 7 passed, 1 failed" "$output"
    clean
}

clean
expect "a clean tree passes" "tidy: 8 passed, 0 failed" "$(tools/tidy "$tree" 2>&1)"

# Who may include whom.
put src/base/bytes.c '#include "flow/rate.h"'
finds "src/base/bytes.c:1: base must not include flow/rate.h"
put src/base/bytes.c '#include "holdfast/rate.h"'
finds "src/base/bytes.c:1: base must not include holdfast/rate.h of flow"
mkdir "$tree/src/locks"
echo "# Locks" >"$tree/src/locks/README.md"
put src/hold/lock.c '#include "hold/lock.h"'
put src/locks/lock.c '#include "holdfast/lock.h"'
put include/holdfast/lock.h '#include "holdfast/rate.h"'
expect "a public header is of the library's file of that name" \
    "tidy: 8 passed, 0 failed" "$(tools/tidy "$tree" 2>&1)"
clean
put src/hold/lock.c '' '#include "server/loop.h"'
finds "src/hold/lock.c:2: hold must not include server/loop.h"
put src/server/loop.c '#include "flow/rate.h"'
finds "src/server/loop.c:1: server must not reach below the library: flow/rate.h"
put src/hold/lock.c '#include "holdfast/rate.h"'
finds "src/hold/lock.c:1: hold must not include holdfast/rate.h of flow"
put src/hold/lock.c '#include "base/thread.h"'
finds "src/hold/lock.c:1: hold is pure and must not include base/thread.h"
put src/server/loop.c '#include <flow/rate.h>'
finds "src/server/loop.c:1: <flow/rate.h> is ours: include it with quotes"
put include/holdfast/lone.h 'int lone(void);'
finds "include/holdfast/lone.h:1: folder nobody has no include rule in tools/tidy"
put src/flow/rate.c '#include "rate.h"'
finds 'src/flow/rate.c:1: include "rate.h" must name its folder'
put src/flow/rate.c '#include "hold/lock.h"'
finds "src/flow/rate.c:1: flow must not include hold/lock.h"
put src/server/loop.c '#include "cli/args.h"'
finds "src/server/loop.c:1: server must not include cli/args.h"
put src/flow/rate.c '#include "unheard/of.h"'
finds "src/flow/rate.c:1: flow must not include unheard/of.h"
mkdir "$tree/src/misc"
put src/misc/misc.c ''
echo "# Misc" >"$tree/src/misc/README.md"
finds "src/misc/misc.c:1: folder misc has no include rule in tools/tidy"
put include/holdfast/status.h 'int status(void);' '#ifdef NEVER' \
    '#include "base/bytes.h"' '#endif'
finds "include/holdfast/status.h:3: public header includes internal base/bytes.h"
for header in time.h stdio.h pthread.h sys/socket.h uv.h unistd.h; do
    put src/hold/lock.c "#include <$header>"
    finds "src/hold/lock.c:1: hold is pure and must not include <$header>"
done
for header in uv.h xxhash.h liburing.h; do
    put src/flow/rate.c "#include <$header>"
    finds "src/flow/rate.c:1: flow uses libc only and must not include <$header>"
done

# Lengths.
repeat 601 'int x(void);' >"$tree/src/server/long.c"
finds "src/server/long.c:1: file has 601 lines, 600 at most"
{ echo '/* tidy: long because it is one table */' && repeat 999 'int x(void);'; } \
    >"$tree/src/server/long.c"
expect "a reason lets a file be long" "tidy: 8 passed, 0 failed" \
    "$(tools/tidy "$tree" 2>&1)"
echo 'int x(void);' >>"$tree/src/server/long.c"
finds "src/server/long.c:1: file has 1001 lines, 1000 at most"
{ echo 'void f(void)' && echo '{' && repeat 69 '    f();' && echo '}'; } \
    >"$tree/src/server/loop.c"
finds "src/server/loop.c:2: function has 71 lines, 70 at most"
put src/server/loop.c "#include \"server/$(printf '%061d' 0).h\""
finds "src/server/loop.c:1: line has 81 columns, 80 at most"
put src/server/loop.c "/* https://example.org/$(printf '%075d' 0) */"
expect "an address may be long" "tidy: 1 passed, 0 failed" \
    "$(tools/tidy --only lengths "$tree" 2>&1)"
clean

# Blanks. A tab in a comment: elsewhere the format finds it too.
put src/server/loop.c $'/* a\ttab */'
finds "src/server/loop.c:1: tab"
put README.md 'A line' $'with a blank behind '
finds "README.md:2: blank at the end of the line"

# Headers that do not compile alone.
put src/hold/lock.h 'size_t lock(void);'
finds "src/hold/lock.h:1: does not compile alone as C11: unknown type name 'size_t'"
put include/holdfast/status.h 'int status(int class);'
finds "include/holdfast/status.h:1: does not compile alone as C++: $(
    echo 'int status(int class);' |
        LC_ALL=C g++ -x c++ -fsyntax-only - 2>&1 | sed -n 's/.*error: //p' | head -n 1)"

rm "$tree/src/hold/README.md"
finds "src/hold/README.md:1: missing: what is the folder for?"
mkdir "$tree/docs"
finds "docs/README.md:1: missing: what is the folder for?"

for word in TODO FIXME XXX HACK; do
    put src/server/loop.c '' "/* $word: later */"
    finds "src/server/loop.c:2: says $word"
done
put src/server/loop.c 'const char *name = "/tmp/XXXXXX";'
expect "XXXXXX is not a word" "tidy: 8 passed, 0 failed" "$(tools/tidy "$tree" 2>&1)"

put src/server/loop.c 'int  x;'
finds "src/server/loop.c:1: is not formatted (make fmt)"

put README.md "See /ho""me/somebody/notes."
finds "README.md:1: names a path of one machine"

# How it is called.
status=0
tools/tidy --only nonsense >/dev/null 2>&1 || status=$?
expect "an unknown rule is a usage error" 2 "$status"
put src/server/loop.c 'int  x;'
expect "one rule alone" "tidy: 1 passed, 0 failed" \
    "$(tools/tidy --only lengths "$tree" 2>&1)"

finish
