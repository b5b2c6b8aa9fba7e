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

check "merge sort sorts" "$build/merge_sort"

"$build/etl" 1000 >"$work/etl" && status=0 || status=$?
expect "the pipeline loads every row but the unlucky ones" 0 $status
check "the queue before the slow stage fills up" \
    grep -q 'load \[##########' "$work/etl"

"$build/cron" 2 "50 echo tick >>$work/ticks" "200 false" >"$work/cron"
check "cron runs commands" test -s "$work/ticks"
check "cron tells how often" grep -q ' x echo tick' "$work/cron"
check "cron refuses what is not a job" refuses "$build/cron" 1 "soon echo"
finish
