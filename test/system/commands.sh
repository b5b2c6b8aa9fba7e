#!/usr/bin/env bash
# commands.sh - the plain commands against a real server, and without one.
#
# What has to wait for time to pass is begun first and looked at last.
# tests: also under sanitizers
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."
. test/support/server.sh

start_server
export HOLDFAST_URL=127.0.0.1:$port

# A wait longer than any answer may take by itself.
"$HOLDFAST" limit late --rate 1 --per 7000 >"$scratch/first"
"$HOLDFAST" limit late --rate 1 --per 7000 --wait 60000 \
    >"$scratch/late" 2>&1 &
late=$!

# Nobody listens on port 1.
refused='127.0.0.1:1: connection refused: is the server running? (holdfast serve)'
for words in 'stock list' 'stock set bolt 5' 'reserve r bolt=1' 'confirm r' \
    'cancel r' 'limit k --rate 1 --per 1000' 'bench --work ping' \
    'bench --work reserve --prepare' 'locks' 'lockinfo a' 'explain a' \
    'waitgraph' 'leader a' 'session list' 'extend r --ttl 1' 'class list'; do
    # shellcheck disable=SC2086 # words
    tells 69 "holdfast ${words%% *}: $refused" "$HOLDFAST" $words --port 1
done
for words in lock once elect; do
    tells 69 "$refused" "$HOLDFAST" "$words" a --port 1 -- true
done
tells 69 "$refused" "$HOLDFAST" session --port 1 -- true
unknown="cannot look up the host 'no host'"
tells 69 "holdfast stock: $unknown" "$HOLDFAST" stock list --host 'no host'
tells 69 "holdfast lock: $unknown" "$HOLDFAST" lock a --host 'no host' -- true
tells 69 "holdfast bench: $unknown" "$HOLDFAST" bench --host 'no host'

# Command lines that are wrong.
while IFS='|' read -r words text; do
    # shellcheck disable=SC2086 # words
    tells 64 "$text" "$HOLDFAST" $words
done <<'END'
stock|set, add, get, list, del, low, limit, attr, history, at, audit, places, expect, arrive, expected, import or export is needed
stock move bolt|set, add, get, list, del, low, limit, attr, history, at, audit, places, expect, arrive, expected, import or export is needed
stock set bolt|wrong number of words for set
stock set bolt many|'many' is not a number
stock del bolt --reason why|--reason and --ref belong to set, add and arrive
stock get bolt --if 1|--if belongs to set, add and del
stock get bolt --req q|--req belongs to changes
stock low bolt few|'few' is not a number
stock limit bolt all|'all' is not a number
stock attr bolt|wrong number of words for attr
stock set bolt 1 --if new|'new' is not a number
stock get bolt --count 1|--cursor and --count belong to list
stock list -- x|nothing may follow --
reserve r|an id and at least one SKU=QTY are needed
reserve r bolt|'bolt' is not SKU=QTY
reserve r =1|'=1' is not SKU=QTY
confirm|a reservation id is needed
cancel a b|'b' is not SKU=QTY
group confirm|confirm, cancel or show is needed, and the name of a group
group drop g|confirm, cancel or show is needed, and the name of a group
group confirm g --reason why|--reason belongs to cancel
group confirm g --count 1|--cursor and --count belong to show
group show g --req q|--req belongs to changes
extend|a reservation id is needed
extend r|--ttl is needed
extend r --ttl 0|--ttl takes a number from 1
class|set, del or list is needed
class drop vip|set, del or list is needed
class set|wrong number of words for set
class list vip|wrong number of words for list
class del vip --ttl 1|--ttl, --grace, --extends and --life belong to set
class list --grace 1|--ttl, --grace, --extends and --life belong to set
class list --req q|--req belongs to changes
class set vip --count 1|--cursor and --count belong to list
limit|one key is needed
limit k --rate 1|--rate and --per are needed, or --policy
limit k --rate 0 --per 1|--rate takes a number from 1 to 1000000000
END

# With one: what is done, refused, and not to be had.
tells 0 '' "$HOLDFAST" stock set bolt 5
tells 0 '' "$HOLDFAST" reserve r bolt=3 --json
check "the reservation is told as JSON" \
    grep -q '"status": *"PENDING"' "$scratch/out"
tells 75 'SHORT' "$HOLDFAST" reserve s bolt=3
tells 0 '' "$HOLDFAST" stock add bolt 1 --reason found --ref count-7
tells 0 '' "$HOLDFAST" reserve o bolt=1 --ttl 60000 --owner ann --req once
tells 65 'CONFLICT' "$HOLDFAST" reserve o bolt=1 --ttl 60000 --req once
tells 65 'BADARG' "$HOLDFAST" cancel o bolt=999
tells 75 'TIMEOUT' "$HOLDFAST" reserve w bolt=900 --wait 50 --priority 2
tells 65 'BADARG' "$HOLDFAST" reserve w bolt=1..900 --wait 50
tells 0 '' "$HOLDFAST" waitlist join bolt 900 --owner ann --id wish --wait 60000
check "its place is told" grep -qE 'position *[:=]? *1' "$scratch/out"
tells 0 '' "$HOLDFAST" waitlist list bolt --count 5
check "who waits is listed" grep -q 'wish' "$scratch/out"
tells 64 'join needs --owner' "$HOLDFAST" waitlist join bolt 1
tells 64 'wrong number of words' "$HOLDFAST" waitlist list bolt wish
tells 0 '' "$HOLDFAST" waitlist leave bolt wish
tells 65 'NOTFOUND' "$HOLDFAST" waitlist leave bolt wish
tells 0 '' "$HOLDFAST" reserve m bolt=1..9
check "as many as there are" grep -q 'quantity=2' "$scratch/out"
tells 0 '' "$HOLDFAST" cancel m
tells 75 'SHORT' "$HOLDFAST" reserve n bolt=8..9 --best
tells 0 '' "$HOLDFAST" cancel o --reason 'no more' --req end-1
tells 0 '' "$HOLDFAST" cancel o --reason 'no more' --req end-1
check "a cancel that is repeated is told the first answer" \
    grep -q 'CANCELLED' "$scratch/out"
tells 65 'STATE' "$HOLDFAST" cancel o
tells 0 '' "$HOLDFAST" reserve p bolt=2
tells 0 '' "$HOLDFAST" cancel p bolt=1 --req part-1
tells 0 '' "$HOLDFAST" cancel p bolt=1 --req part-1
check "a cancel in part that is repeated cancels once" \
    grep -q 'status: PENDING' "$scratch/out"
tells 0 '' "$HOLDFAST" stock add bolt 1
tells 0 '' "$HOLDFAST" confirm p --req pay-1
tells 0 '' "$HOLDFAST" confirm p --req pay-1
check "a confirm that is repeated is told the first answer" \
    grep -q 'CONFIRMED' "$scratch/out"
tells 65 'STATE' "$HOLDFAST" confirm p
tells 65 'CONFLICT' "$HOLDFAST" confirm p --req end-1
tells 0 '' "$HOLDFAST" stock list 'b*' --count 1
check "the stock is listed" grep -q 'sku=bolt total=7 available=3' "$scratch/out"
tells 65 'CONFLICT' "$HOLDFAST" stock set bolt 9 --if 0
tells 0 '' "$HOLDFAST" stock low bolt 2
tells 0 '' "$HOLDFAST" stock attr bolt thread M8 --req attr-1
tells 0 '' "$HOLDFAST" stock get bolt --json
check "a product is shown with its threshold and attributes" \
    grep -q '"low": 2, "waiting": 0, "attributes": {"thread": "M8"}' "$scratch/out"
tells 0 '' "$HOLDFAST" stock limit bolt 2
check "the limit is told" grep -q 'limit: 2' "$scratch/out"
tells 65 "QUOTA owner 'ann': sku 'bolt': requested 3, has 0, limit 2" \
    "$HOLDFAST" reserve q bolt=3 --owner ann
tells 65 "BADARG sku 'bolt' has a limit of 2 for each owner" \
    "$HOLDFAST" reserve q bolt=1
tells 0 '' "$HOLDFAST" stock limit bolt 0
tells 0 '' "$HOLDFAST" reserve g1 bolt=1 --group trip
tells 0 '' "$HOLDFAST" group show trip --count 5
check "who is in a group is listed" grep -q 'id=g1 status=PENDING' "$scratch/out"
tells 0 '' "$HOLDFAST" group cancel trip --reason rain --req trip-1
tells 65 "NOTFOUND no group 'trip'" "$HOLDFAST" group confirm trip
tells 0 '' "$HOLDFAST" class set vip --ttl 90000 --extends 1 --life 95000 --req c-1
tells 0 '' "$HOLDFAST" class set slow --grace 70
tells 0 '' "$HOLDFAST" class list --count 1
check "a class is listed with its rules" grep -q \
    'name=vip ttl_ms=90000 grace_ms=0 extends=1 life_ms=95000' "$scratch/out"
tells 0 '' "$HOLDFAST" reserve v bolt=1 --class vip
tells 65 'STATE' "$HOLDFAST" extend v --ttl 96000
tells 0 '' "$HOLDFAST" extend v --ttl 80000 --req e-1
tells 0 '' "$HOLDFAST" extend v --ttl 80000 --req e-1
tells 65 'STATE' "$HOLDFAST" extend v --ttl 80000
tells 0 '' "$HOLDFAST" class del vip --req c-2
tells 65 'NOTFOUND' "$HOLDFAST" class del vip
tells 65 'NOTFOUND' "$HOLDFAST" reserve u bolt=1 --class vip
tells 0 '' "$HOLDFAST" cancel v
tells 0 '' "$HOLDFAST" stock attr bolt thread
tells 0 '' "$HOLDFAST" confirm r
tells 65 'STATE' "$HOLDFAST" cancel r
tells 65 'NOTFOUND' "$HOLDFAST" confirm nothing
tells 0 '' "$HOLDFAST" limit k --rate 1 --per 3600000
tells 75 '' "$HOLDFAST" limit k --rate 1 --per 3600000
tells 75 '' "$HOLDFAST" limit k --rate 1 --per 3600000 --wait 1

status=0
wait "$late" || status=$?
expect "the code of a long wait ($(<"$scratch/late"))" 0 "$status"
stop_server
finish
