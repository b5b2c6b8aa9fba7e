#!/usr/bin/env bash
# use_cases.sh - the five use cases of docs/locks.md, with processes as hosts.
#
# TTLs are long: nothing may be lost because the machine is slow.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."
. test/support/server.sh

start_server
export HOLDFAST port root=$PWD HOLDFAST_URL=127.0.0.1:$port
mkdir "$scratch/work"
cd "$scratch/work"
# value FIELD REPLY: of a map in RESP2
value() { grep -A 1 -x "$1" <<<"$2" | tail -n 1; }

# together COUNT SCRIPT: so many run it at once, with `i`; how they ended is in
# `codes`.
together() {
    local count=$1 i pids=()
    codes=()
    for ((i = 0; i < count; i++)); do
        i=$i bash -c "$2" 2>>errors &
        pids+=($!)
    done
    for ((i = 0; i < count; i++)); do
        codes[i]=0
        wait "${pids[i]}" || codes[i]=$?
    done
}
# ended_with CODE: how many did
ended_with() { grep -cx "$1" <(printf '%s\n' "${codes[@]}") || true; }

# 1. A schema migration: every host starts, one migrates, all wait for it.
together 6 '
    "$HOLDFAST" once schema/7 --ttl 3600000 -- bash -c "
        echo \$i >>migrated; echo 7 >version; echo schema is at 7" >said.$i
    [ "$(<version)" = 7 ]'
expect "hosts that started on the new schema" 6 "$(ended_with 0)"
expect "migrations" 1 "$(wc -l <migrated)"
expect "what the hosts were told" 'schema is at 7' "$(sort -u said.*)"
"$HOLDFAST" once schema/7 -- bash -c 'echo late >>migrated' >late
expect "a host that comes later is told" 'schema is at 7' "$(<late)"
expect "and migrates nothing" 1 "$(wc -l <migrated)"

# 2. A cron job that is started on several hosts: once for each night.
for night in 2026-11-14 2026-11-15; do
    together 4 '
        "$HOLDFAST" once nightly/'$night' --wait 0 --for 172800000 \
            --ttl 3600000 -- bash -c "echo '$night' >>nights; echo done"'
    expect "hosts that did it or found it done or being done" 4 \
        $(($(ended_with 0) + $(ended_with 75)))
done
expect "runs of the job" $'2026-11-14\n2026-11-15' "$(<nights)"
together 1 '"$HOLDFAST" once nightly/2026-11-16 --wait 0 -- false'
expect "a host on which the job fails" 1 "${codes[0]}"
together 1 '"$HOLDFAST" once nightly/2026-11-16 --wait 0 -- true'
expect "another host does it" 0 "${codes[0]}"

# 3. A flash sale: 60 shoppers, 20 items; five may pay at the same time.
ask STOCK SET shoe 20 >/dev/null
echo 0 >paying
together 60 '
    "$HOLDFAST" reserve "cart-$i" shoe=1 --req "press-$i" >/dev/null || exit
    "$HOLDFAST" lock checkout --permits 1/5 --wait forever --ttl 3600000 -- \
        "$root/test/support/inside.sh" paying 5 || exit
    "$HOLDFAST" confirm "cart-$i" >/dev/null'
expect "shoppers who bought one" 20 "$(ended_with 0)"
expect "shoppers who came too late" 40 "$(ended_with 75)"
stock=$(ask STOCK GET shoe)
expect "items that were sold" 20 "$(value sold "$stock")"
expect "items that are left" 0 "$(value available "$stock")"

# 4. A rate limit that processes share: ten in an hour, whoever asks.
together 8 'for n in 1 2 3; do
        "$HOLDFAST" limit mail --rate 10 --per 3600000 >/dev/null &&
            echo sent >>mails
    done; true'
expect "mails that were sent" 10 "$(wc -l <mails)"

# 5. A payment that is pressed twice. By REQ: an answer that was lost is asked
# for again. By DONE: whoever comes later gets the receipt.
first=$(ask LOCK payment/81 OWNER web-1 TTL 3600000 REQ press-81)
again=$(ask LOCK payment/81 OWNER web-1 TTL 3600000 REQ press-81)
token=$(value token "$first")
expect "the same request again gets the same lock" "$token" \
    "$(value token "$again")"
expect "and did not enter twice" 1 "$(value count "$again")"
check "another press meanwhile is refused" grep -q '^BUSY' \
    <(ask LOCK payment/81 OWNER web-2)
for attempt in first second; do
    expect "it is recorded, $attempt attempt" 0 "$(value remaining \
        "$(ask UNLOCK payment/81 "$token" DONE 3600000 RESULT 'receipt 4711' \
            REQ paid-81)")"
done
check "a later press gets the receipt" grep -q '^DONE .*: receipt 4711$' \
    <(ask LOCK payment/81 OWNER web-2)
together 2 '"$HOLDFAST" once payment/82 --ttl 3600000 -- bash -c "
        echo charged >>charges; echo receipt 4712" >receipt.$i'
expect "presses that were answered" 2 "$(ended_with 0)"
expect "charges" 1 "$(wc -l <charges)"
expect "receipts" $'receipt 4712\nreceipt 4712' "$(cat receipt.0 receipt.1)"

stop_server
finish
