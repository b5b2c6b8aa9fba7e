#!/usr/bin/env bash
# tour.sh - the tours of the README and of docs/ work word for word.
#
#   test/system/tour.sh [DOCUMENT ...]
#
# Between <!-- tour --> and <!-- /tour -->, in fenced blocks, a line that
# begins with "$ " is typed into a shell (with "> " lines behind it, if it goes
# on), and the lines up to the next one are what must come out. `<number>`
# stands for any number; blanks at the end of a line do not count. The tour's
# port, 7420, is replaced by that of a server of our own.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."
(($# > 0)) || set -- README.md docs/locks.md docs/groups.md docs/redis.md \
    docs/events.md docs/stock.md
. test/support/server.sh

# tour DOCUMENT: as lines "TYPE TEXT": c a command, m more of it, o output.
tour() {
    awk '
        /^<!-- tour -->$/ { inside = 1; found = 1 }
        /^<!-- \/tour -->$/ { inside = 0; fenced = 0 }
        inside && /^```/ { fenced = !fenced; typed = 0; next }
        !inside || !fenced { next }
        /^[$] / { print "c " substr($0, 3); typed = 1; more = 1; next }
        /^> / && more { print "m " substr($0, 3); next }
        typed { more = 0; print "o " $0 }
        END { if (!found || inside) exit 1 }' "$1"
}

# fits EXPECTED FOUND: equal, <number> being any number.
fits() {
    local pattern found
    found=$(sed 's/ *$//' <<<"$2")
    pattern=$(sed 's/ *$//; s#[][\.*^$+?(){}|]#\\&#g; s/<number>/-?[0-9]+([.][0-9]+)?/g' <<<"$1")
    [[ $found =~ ^${pattern}$ ]]
}

run_one() { # COMMAND EXPECTED: in the tour's shell, so that variables stay
    local found line
    printf '%s\n' "$1" "printf '\\n%s\\n' '$mark'" >&"${shell[1]}"
    found=''
    while IFS= read -r -t 120 line <&"${shell[0]}"; do
        [[ $line != "$mark" ]] || break
        found+=$line$'\n'
    done
    # what the mark's own line end added, and the last line's
    found=${found%$'\n'}
    found=${found%$'\n'}
    if fits "$2" "$found"; then
        checks_passed=$((checks_passed + 1))
    else
        fail "$1: expected \"$2\", got \"$found\""
    fi
}

# walk DOCUMENT: runs its tour against a server of its own.
walk() {
    local line text lines command='' expected=''
    lines=$(tour "$1") || {
        fail "$1 has no tour between <!-- tour --> and <!-- /tour -->"
        return
    }
    start_server
    export HOLDFAST_URL=127.0.0.1:$port
    mkdir -p "$scratch/home"
    coproc shell { cd "$scratch/home" && exec bash --norc --noprofile 2>&1; }
    while IFS= read -r line; do
        text=${line:2}
        text=${text//7420/$port}
        case $line in
        c*)
            [[ -z $command ]] || run_one "$command" "$expected"
            command=$text expected=''
            ;;
        m*) command+=$'\n'$text ;;
        o*) expected+=${expected:+$'\n'}$text ;;
        esac
    done <<<"$lines"
    [[ -z $command ]] || run_one "$command" "$expected"
    # shellcheck disable=SC2154 # coproc sets it
    kill "$shell_PID" 2>/dev/null || true
    wait "$shell_PID" 2>/dev/null || true
    stop_server
    rm -rf "$scratch/data" "$scratch/home"
}

mark="end-of-output-$$"
export PATH=${HOLDFAST%/*}:$PATH
for document in "$@"; do
    before=$checks_passed
    walk "$document"
    check "the tour of $document has commands" \
        test "$checks_passed" -gt $((before + 4))
done
finish
