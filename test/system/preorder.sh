#!/usr/bin/env bash
# preorder.sh - announced stock on a real server: RESP, the command line, a
# restart.
#
# tests: also under sanitizers
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."
. test/support/server.sh

start_server
export HOLDFAST_URL=127.0.0.1:$port

ask STOCK SET pen 0 >/dev/null
at=4102444800000 # the year 2100
says 'sku pen expected 5 booked 0 uncovered 0' STOCK EXPECT pen 5 AT $at REF po-1
says "BADARG AT is missing: 'po-2' of sku 'pen' is new" STOCK EXPECT pen 5 REF po-2
says "NOTFOUND no arrival 'po-2' of sku 'pen' is announced" \
    STOCK EXPECT pen 0 REF po-2
says "NOTFOUND no product 'ink'" STOCK EXPECT ink 5 AT $at
says "id a status BOOKED position 1 expected_ms $at" RESERVE a ITEM pen 3 PREORDER
says "id b status BOOKED position 2 expected_ms $at" \
    RESERVE b ITEM pen 2 PREORDER TTL 3600000
says "SHORT sku 'pen': requested 1, available 0, expected 5, of which 5 are booked" \
    RESERVE c ITEM pen 1 PREORDER
says "STATE reservation 'a' is BOOKED" CONFIRM a
says "STATE sku 'pen' has 0 reserved, and 5 are booked" STOCK DEL pen
says 'expected 5 booked 5' STOCK GET pen
while IFS='|' read -r words error; do
    # shellcheck disable=SC2086 # words
    says "BADARG $error" RESERVE z ITEM pen 1 PREORDER $words
done <<END
WAIT 5|PREORDER cannot be combined with WAIT, BEST, MIN, PLACE and GROUP
BEST|PREORDER cannot be combined with WAIT, BEST, MIN, PLACE and GROUP
GROUP g|PREORDER cannot be combined with WAIT, BEST, MIN, PLACE and GROUP
PLACE a|PREORDER cannot be combined with WAIT, BEST, MIN, PLACE and GROUP
ITEM x 1|PREORDER is of one item: book each, in one group (MULTI)
END

# It is all there after a restart.
stop_server
start_server
export HOLDFAST_URL=127.0.0.1:$port
says 'id b owner  quantity 2' STOCK EXPECTED pen
says 'announced 5 served 1 booked 2' STOCK ARRIVE pen 4 REF po-1 REASON dock
says 'kind arrival_short' STOCK HISTORY pen
says 'uncovered 2 announced 5 arrived 4 ref po-1' STOCK HISTORY pen
says 'kind offered' STOCK HISTORY pen
says 'kind booked' RESERVATION HISTORY b
says 'total 4 available 1 reserved 3 sold 0' STOCK GET pen
says 'status CANCELLED' CANCEL b REASON late
says 'expected 0 booked 0 uncovered 0' STOCK EXPECTED pen

# The time of an arrival passes.
says 'expected 2 booked 0' STOCK EXPECT pen 2 AT 5 REF past
says "kind arrival_late" STOCK HISTORY pen
says "late 1" STOCK EXPECTED pen

# The command line.
tells 0 '' "$HOLDFAST" stock expect pen 9 --at $at --ref po-3
tells 0 '' "$HOLDFAST" reserve d pen=8 --preorder
check "reserve --preorder books" grep -q '^status: BOOKED$' "$scratch/out"
tells 75 SHORT "$HOLDFAST" reserve e pen=8 --preorder
tells 65 BADARG "$HOLDFAST" reserve e pen=8 ink=1 --preorder
tells 0 '' "$HOLDFAST" stock expected pen --count 5
check "stock expected shows the bookings" grep -q 'id=d' "$scratch/out"
tells 0 '' "$HOLDFAST" stock arrive pen 9 --ref po-3 --reason dock
check "stock arrive serves them" grep -q '^served: 1$' "$scratch/out"
tells 0 '' "$HOLDFAST" stock audit pen
tells 64 '--at belongs to expect' "$HOLDFAST" stock arrive pen 9 --at $at
tells 64 '--if belongs to set, add and del' "$HOLDFAST" stock arrive pen 9 --if 5
tells 64 'wrong number of words' "$HOLDFAST" stock expect pen

stop_server
tells 0 '' "$HOLDFAST" verify "$scratch/data"
finish
