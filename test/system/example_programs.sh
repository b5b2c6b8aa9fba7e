#!/usr/bin/env bash
# The programs in examples/ do what their pages say.
#
# tests: also under sanitizers
set -euo pipefail
cd "$(dirname "$0")/../.."
. test/support/check.sh

build=$(dirname "$HOLDFAST")/examples
work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-examples.XXXXXX")
trap 'rm -rf "$work"' EXIT

refuses() { # COMMAND...: fails, and says why
    ! "$@" >/dev/null 2>"$work/error" && [[ -s $work/error ]]
}

# A tree of 200 pages: each leads to two others, to the first, and elsewhere.
for ((i = 0; i < 200; i++)); do
    printf '<a href="%d.html">\n<a href="%d.html#top"><a href="0.html">\n%s\n' \
        $((2 * i + 1)) $((2 * i + 2)) '<a href="http://elsewhere/">' \
        >"$work/$i.html"
done
expect "the crawler visits every page once and counts what is missing" \
    "200 pages, 800 links, 201 missing" "$("$build/crawler" "$work" 0.html 8)"
check "the crawler tells how it is used" refuses "$build/crawler"
"$build/crawler" "$work/nowhere" 0.html >/dev/null && status=0 || status=$?
expect "a crawler that finds no page fails" 1 $status

# A page in 1.5 seconds: the second one is waited for by one call that the
# system accepts. (This one looks at it, and ends the program.)
cat >"$work/nanosleep.c" <<'END'
#include <time.h>
#include <unistd.h>

int nanosleep(const struct timespec *wait, struct timespec *left)
{
    (void)left;
    _exit(wait->tv_sec == 1 && wait->tv_nsec <= 500000000 ? 42 : 1);
}
END
sed -e 's/^#define BURST .*/#define BURST 1/' \
    -e 's/^#define PAGE_NS .*/#define PAGE_NS 1500000000/' \
    examples/crawler.c >"$work/slow.c"
san=${HOLDFAST_SAN:-}
gcc -std=gnu11 ${san:+"-fsanitize=${san/address/address,undefined}"} -Iinclude -o "$work/slow" \
    "$work/slow.c" "$work/nanosleep.c" "$(dirname "$HOLDFAST")/libholdfast.a" \
    -pthread -lm
"$work/slow" "$work" 0.html 1 >/dev/null && status=0 || status=$?
expect "the crawler waits for longer than a second in one go" 42 $status

check "merge sort sorts" "$build/merge_sort"

"$build/etl" 1000 >"$work/etl" && status=0 || status=$?
expect "the pipeline loads every row but the unlucky ones" 0 $status
check "the queue before the slow stage fills up" \
    grep -q 'load \[##########' "$work/etl"

"$build/cron" 2 "50 echo tick >>$work/ticks" "200 false" >"$work/cron"
check "cron runs commands" test -s "$work/ticks"
check "cron tells how often" grep -q ' x echo tick' "$work/cron"
check "cron refuses what is not a job" refuses "$build/cron" 1 "soon echo"

"$build/lock_manager" >"$work/locks" && status=0 || status=$?
expect "four ways out of a deadlock end well" 0 $status
for way in ordering time-out all-or-nothing detection; do
    check "$way: all three threads finish" grep -q "^$way: .*finished 3 of 3" \
        "$work/locks"
done
check "the cycle is told" grep -q 'waits for .*, which .* holds' "$work/locks"
finish
