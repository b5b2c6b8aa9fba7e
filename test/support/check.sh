# check.sh - counts the checks of a test script. To be sourced:
#
#   . "$(dirname "$0")/../support/check.sh"
#   check "ping is answered" redis-cli -p "$port" ping
#   expect "the reply is PONG" PONG "$reply"
#   finish
#
# A failed check prints one line, `file:line: what`, and the script goes on.
# finish prints the count that tools/test reads and ends the script.
# shellcheck shell=bash
checks_passed=0
checks_failed=0

# fail WHAT: one line, with the place in the script's main part.
fail() {
    checks_failed=$((checks_failed + 1))
    echo "${BASH_SOURCE[-1]}:${BASH_LINENO[-2]}: ${1//$'\n'/ | }"
}

# check WHAT COMMAND...: passes if the command succeeds.
check() {
    local what=$1
    shift
    if "$@"; then
        checks_passed=$((checks_passed + 1))
    else
        fail "$what"
    fi
}

# expect WHAT EXPECTED FOUND: passes if both texts are equal.
expect() {
    if [[ $3 == "$2" ]]; then
        checks_passed=$((checks_passed + 1))
    else
        fail "$1: expected \"$2\", got \"$3\""
    fi
}

finish() {
    local name=${0##*/}
    echo "${name%.sh}: $checks_passed passed, $checks_failed failed"
    exit $((checks_failed > 0))
}
