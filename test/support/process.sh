# process.sh - waiting for conditions and for processes. To be sourced.
# shellcheck shell=bash

now_ms() { date +%s%3N; }

# until_true SECONDS COMMAND...: waits for the command to succeed
until_true() {
    local end=$(($(now_ms) + $1 * 1000))
    shift
    until "$@"; do
        [ "$(now_ms)" -lt "$end" ] || return 1
        sleep 0.01
    done
}

# ended PID: also when nobody has collected it yet
ended() { [ ! -d "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"; } \
    2>/dev/null
# stopped PID: by SIGSTOP
stopped() { grep -q '^State:.T' "/proc/$1/status"; } 2>/dev/null
