#!/usr/bin/env bash
# places.sh - sku@place on a real server: RESP, the command line, a restart.
#
# tests: also under sanitizers
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."
. test/support/server.sh

start_server
export HOLDFAST_URL=127.0.0.1:$port

ask STOCK SET pen@berlin 5 >/dev/null
ask STOCK SET pen@paris 3 >/dev/null
ask STOCK SET pen@lyon 9 >/dev/null

says 'items sku pen@lyon quantity 6' RESERVE a ITEM pen 6 PLACE berlin PLACE lyon
says 'items sku pen@berlin quantity 5 sku pen@paris quantity 1' \
    RESERVE b ITEM pen 6 PLACE paris PLACE berlin SPLIT MOST
says 'PENDING' RESERVE b ITEM pen 6 PLACE paris PLACE berlin SPLIT MOST
says "CONFLICT" RESERVE b ITEM pen 5 PLACE paris PLACE berlin SPLIT MOST
says "SHORT sku 'pen': requested 7, available 5" \
    RESERVE c ITEM pen 7 PLACE berlin PLACE paris PLACE lyon SPLIT FEWEST
says "SHORT sku 'pen@lyon': requested 4, available 3" \
    RESERVE c ITEM pen 4 PLACE lyon PLACE paris
says "NOTFOUND no product 'ink@lyon'" RESERVE c ITEM ink 4 PLACE lyon
says 'total 17 available 5 reserved 12 sold 0 count 3' STOCK PLACES pen
says "NOTFOUND no product 'ink'" STOCK PLACES ink

# What does not go together changes nothing.
place() { for i in $(seq "$1"); do printf ' PLACE p%s' "$i"; done; }
while IFS='|' read -r words error; do
    # shellcheck disable=SC2086 # words
    says "BADARG $error" RESERVE z ITEM pen 1 $words
done <<END
SPLIT MOST|SPLIT needs PLACE
PLACE a WAIT 5|PLACE cannot be combined with WAIT, BEST and MIN
PLACE a BEST|PLACE cannot be combined with WAIT, BEST and MIN
MIN 1 PLACE a ITEM x 3 MIN 1|PLACE cannot be combined with WAIT, BEST and MIN
PLACE a PLACE a|a place is given once, and has no '@': 'a'
PLACE a@b|a place is given once, and has no '@': 'a@b'
PLACE a SPLIT ALL|SPLIT must be one of NONE|FEWEST|ORDER|MOST, not 'ALL'
$(place 11)|at most 10 places in one reservation, of 256 bytes together
END
long=$(printf 'x%.0s' {1..255})
says 'BADARG sku@place must not have more than 256 bytes' \
    RESERVE z ITEM pen 1 PLACE "$long"
many=()
for i in {1..65}; do many+=(ITEM "s$i" 1); done
says 'BADARG SPLIT: items times places must be at most 128' \
    RESERVE z "${many[@]}" PLACE a PLACE b SPLIT ORDER
says "NOTFOUND no reservation 'z'" RESERVATION z

# In a group: all or nothing.
printf '%s\n' MULTI 'STOCK SET pen@rome 2' \
    'RESERVE g ITEM pen 5 PLACE rome PLACE lyon SPLIT ORDER' \
    'STOCK PLACES pen COUNT 1' EXEC | ask | paste -sd ' ' >"$scratch/out"
check "a group reserves from a place that it makes" \
    grep -qF 'sku pen@rome quantity 2' "$scratch/out"
check "and sees the sums" \
    grep -qF 'total 19 available 2 reserved 17' "$scratch/out"
printf '%s\n' MULTI 'STOCK SET pen@oslo 2' 'STOCK PLACES ink' EXEC | ask \
    >"$scratch/out" 2>&1
says 'total 19 available 2 reserved 17 sold 0 count 4' STOCK PLACES pen

# The command line.
tells 0 '' "$HOLDFAST" reserve k pen=1 --place paris --place rome --split fewest
check "reserve --place takes from there" grep -q 'pen@paris' "$scratch/out"
tells 75 SHORT "$HOLDFAST" reserve l pen=9 --place paris --place rome
tells 65 BADARG "$HOLDFAST" reserve l pen=9 --split fewest
tells 0 '' "$HOLDFAST" stock places pen
check "stock places shows the sums" grep -q '^available: 1$' "$scratch/out"
check "and the places" grep -q 'place=lyon' "$scratch/out"
tells 0 '' "$HOLDFAST" stock places pen --count 1 --cursor 1 --json
check "in pages" grep -q '"place": "lyon".*"cursor": 2' "$scratch/out"
tells 64 'wrong number of words' "$HOLDFAST" stock places
tells 64 '--cursor and --count belong to list, places and expected' \
    "$HOLDFAST" stock get pen@lyon --count 1

# It is an ordinary reservation, and all of it is there after a restart.
tells 0 '' "$HOLDFAST" confirm b
before=$(ask STOCK PLACES pen)
stop_server
start_server
export HOLDFAST_URL=127.0.0.1:$port
check "the same after a restart" test "$before" == "$(ask STOCK PLACES pen)"
says 'items sku pen@berlin quantity 5 sku pen@paris quantity 1' RESERVATION b

stop_server
finish
