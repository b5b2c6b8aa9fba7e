#!/usr/bin/env bash
# transfer.sh - holdfast stock import and export against a real server.
#
# tests: also under sanitizers
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."
. test/support/server.sh

start_server
export HOLDFAST_URL=127.0.0.1:$port

# Awkward names: commas, quotes, ends of lines, letters of other alphabets.
printf '%s\r\n' 'sku,total,low,attributes,attribute.size' \
    'plain,5,,,' \
    '"a,b",7,2,"{""colour"": ""red, \""dark\""""}",XL' \
    '"two' >"$scratch/in.csv"
printf '%s\n' 'lines ""quoted""",1,0,,' 'schön €,3,,,' >>"$scratch/in.csv"

tells 0 '' "$HOLDFAST" stock import "$scratch/in.csv" --dry-run
tells 0 '' "$HOLDFAST" stock list
none() { ! grep -q 'sku=' "$scratch/out"; }
check "a dry run changes nothing" none
tells 0 '' "$HOLDFAST" stock import "$scratch/in.csv"
check "import says nothing without a terminal" test ! -s "$scratch/out"
tells 0 '' "$HOLDFAST" stock get 'a,b' --json
check "a row sets total, threshold and attributes" \
    grep -q '"total": 7.*"low": 2, "waiting": 0, "attributes": {"colour": "red, \\"dark\\"", "size": "XL"}' \
    "$scratch/out"

# What was exported, imported elsewhere and exported again is the same, but for
# versions and times.
plain() { # FILE: without them
    sed -E 's/"(version|updated_ms)": [0-9]+/"\1": 0/g' "$1" | sort
}
tells 0 '' "$HOLDFAST" reserve r plain=2
tells 0 '' "$HOLDFAST" cancel r
for ending in csv jsonl; do
    tells 0 '' "$HOLDFAST" stock export "$scratch/first.$ending"
    tells 0 '' "$HOLDFAST" stock export "$scratch/first.json"
    "$HOLDFAST" stock list --json >"$scratch/before"
    redis-cli -p "$port" FLUSHALL >/dev/null
    tells 0 '' "$HOLDFAST" stock import "$scratch/first.$ending"
    tells 0 '' "$HOLDFAST" stock export "$scratch/second.json"
    check "$ending: all products come back" \
        cmp <(plain "$scratch/first.json") <(plain "$scratch/second.json")
    check "$ending: there are four" \
        test "$(wc -l <"$scratch/second.json")" -eq 4
done
"$HOLDFAST" stock export - --format csv | head -1 >"$scratch/out"
check "export writes to the standard output" \
    grep -q '^sku,total,low,available,reserved,sold,version,updated_ms,attributes' \
    "$scratch/out"

# Errors have their line; --keep-going counts them and goes on.
printf '%s\n' 'sku,total' 'x,1' 'y,many' 'z,3' 'plain,-' 'w,4' >"$scratch/bad.csv"
tells 1 "bad.csv:3: total must be a whole number" \
    "$HOLDFAST" stock import "$scratch/bad.csv"
tells 65 'NOTFOUND' "$HOLDFAST" stock get z
tells 1 '3 rows imported, 2 with errors' \
    "$HOLDFAST" stock import - --format csv --keep-going <"$scratch/bad.csv"
tells 0 '' "$HOLDFAST" stock get x z w
tells 0 '' "$HOLDFAST" reserve s x=1
printf '%s\n' '{"sku": "x", "total": 0}' '{"sku": "v", "total": 1}' \
    >"$scratch/short.jsonl"
tells 65 'short.jsonl:1: SHORT' \
    "$HOLDFAST" stock import "$scratch/short.jsonl"
tells 1 '1 rows imported, 1 with errors' \
    "$HOLDFAST" stock import "$scratch/short.jsonl" --keep-going
tells 1 "cannot open $scratch/nothing.csv" \
    "$HOLDFAST" stock import "$scratch/nothing.csv"
tells 69 'connection refused' \
    "$HOLDFAST" stock import "$scratch/in.csv" --port 1
tells 64 'one file is needed' "$HOLDFAST" stock import
tells 64 '--format is csv or json' "$HOLDFAST" stock import products.txt
tells 64 '--format is csv or json' "$HOLDFAST" stock export - --format xml
tells 64 '--dry-run belongs to import' \
    "$HOLDFAST" stock export "$scratch/x.csv" --dry-run

# Many rows are many batches and pages.
{
    echo sku,total,low
    seq 20000 | sed 's/.*/many-&,&,1/'
} >"$scratch/many.csv"
tells 0 '' "$HOLDFAST" stock import "$scratch/many.csv"
"$HOLDFAST" stock export "$scratch/all.csv"
check "all of many rows are exported" \
    test "$(grep -c '^many-' "$scratch/all.csv")" -eq 20000
check "with their numbers" grep -q '^many-12345,12345,1,12345,0,0,' \
    "$scratch/all.csv"

# On a terminal a bar tells how far it is.
on_terminal() { # COMMAND...: what a terminal would show, a line each time
    script -qec "$(printf '%q ' "$HOLDFAST" stock "$@")" /dev/null |
        tr '\r' '\n' >"$scratch/out"
}
on_terminal import "$scratch/many.csv"
check "an import shows a bar" \
    grep -qE '^  \[#{1,30} *\] [0-9]+ %  [0-9]+ rows  [0-9]+/s' "$scratch/out"
check "and what it did" grep -q '^.*20000 rows imported in ' "$scratch/out"
on_terminal export "$scratch/all.csv"
check "so does an export" \
    grep -qE '^  \[#{1,30} *\] [0-9]+ %  [0-9]+ rows  [0-9]+/s' "$scratch/out"

stop_server
finish
