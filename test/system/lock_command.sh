#!/bin/bash
# `holdfast lock` end to end against a real server: exit codes, environment,
# renewal, and above all that the command is dead before the hold is lost.
#
#   test/system/lock_command.sh [part of a case's name]
#
# Waits for conditions, with generous deadlines; where the point is that
# something happens in time, the time allowed is the hold's own.

set -u
HOLDFAST=${HOLDFAST:-build/holdfast}
only=${1:-}
passed=0
failed=0
folder=$(mktemp -d)
started=()

# Commands that outlived their `holdfast` left their numbers in files.
cleanup() {
    local pid
    for pid in "${started[@]}" \
        $(cat "$folder"/*/{*.parent,*.child,*.pid,pid,left} 2>/dev/null); do
        kill -CONT "$pid" 2>/dev/null
        kill -KILL "$pid" 2>/dev/null
    done
    wait 2>/dev/null
    rm -rf "$folder"
}
trap cleanup EXIT

. "$(dirname "$0")/../support/process.sh"

server=0
port=0
start_server() {
    local data=$folder/data-$RANDOM$RANDOM
    mkdir "$data"
    "$HOLDFAST" serve --port 0 --dir "$data" >"$data/out" 2>"$data/err" &
    server=$!
    started+=("$server")
    if ! until_true 30 grep -qs '^ready' "$data/out"; then
        echo "FAIL start: the server is not ready: $(cat "$data/err")"
        exit 1
    fi
    port=$(grep '^ready' "$data/out" | head -n 1 |
        grep -oE '[^ ]+:[0-9]+' | head -n 1 | sed 's/.*://')
}

stop_server() {
    kill -CONT "$server" 2>/dev/null
    kill -KILL "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    return 0
}

# In the background, call the command itself: $! must be its number.
lock() { timeout -k 5 60 "$HOLDFAST" lock "$@"; }

# finish PID: its exit code, once it has one
finish() {
    until_true 60 ended "$1" || kill -KILL "$1"
    wait "$1"
}
# gone FILE: the process whose number is in FILE has ended
gone() { [ -s "$1" ] && ended "$(cat "$1")"; }

why=''
expect() { # expect WHAT FOUND WANTED
    [ "$2" = "$3" ] && return 0
    why="$1 is '$2', not '$3'"
    return 1
}

run() {
    local name=$1
    case $name in *"$only"*) ;; *) return ;; esac
    why='a step failed'
    work=$folder/$name
    mkdir "$work"
    if "$name"; then
        passed=$((passed + 1))
        echo "ok $name"
    else
        failed=$((failed + 1))
        echo "FAIL $name: $why $(tail -n 2 "$work/err" 2>/dev/null)"
    fi
}

exit_code_of_the_command_passes_through() {
    lock a --port "$port" -- true 2>"$work/err"
    expect 'code of true' $? 0 || return
    lock a --port "$port" -- sh -c 'exit 3' 2>"$work/err"
    expect 'code of exit 3' $? 3 || return
    lock a --port "$port" -- sh -c 'kill -TERM $$' 2>"$work/err"
    expect 'code after SIGTERM' $? 143
}

wrong_command_lines_are_told_apart() {
    lock 2>"$work/err" -- true
    expect 'code without a name' $? 64 || return
    lock a --port "$port" 2>"$work/err"
    expect 'code without a command' $? 64 || return
    lock a --nope --port "$port" -- true 2>"$work/err"
    expect 'code of an unknown option' $? 64 || return
    lock a --ttl x --port "$port" -- true 2>"$work/err"
    expect 'code of a bad number' $? 64 || return
    lock --help >"$work/help" 2>"$work/err"
    expect 'code of --help' $? 0 || return
    grep -q 'examples:' "$work/help"
}

a_missing_command_is_told_and_the_lock_is_free_again() {
    lock a --port "$port" -- "$work/no-such-command" 2>"$work/err"
    expect 'code of a missing command' $? 127 || return
    touch "$work/not-executable"
    lock a --port "$port" -- "$work/not-executable" 2>"$work/err"
    expect 'code of a command that cannot be run' $? 126 || return
    lock a --port "$port" -- true 2>"$work/err"
    expect 'code afterwards' $? 0
}

the_command_finds_its_token_lock_and_owner() {
    lock env-a --owner me --port "$port" -- sh -c \
        'echo $HOLDFAST_LOCK $HOLDFAST_OWNER $HOLDFAST_TOKEN' \
        >"$work/first" 2>"$work/err" || return
    lock env-a --owner me --port "$port" -- sh -c \
        'echo $HOLDFAST_LOCK $HOLDFAST_OWNER $HOLDFAST_TOKEN' \
        >"$work/second" 2>"$work/err" || return
    grep -qE '^env-a me [0-9]+$' "$work/first" || return
    why='the second token is not newer'
    [ "$(cut -d' ' -f3 "$work/second")" -gt "$(cut -d' ' -f3 "$work/first")" ]
}

the_address_comes_from_the_environment() {
    HOLDFAST_URL=127.0.0.1:$port lock a -- true 2>"$work/err"
    expect 'code' $? 0 || return
    HOLDFAST_URL=127.0.0.1:nonsense lock a -- true 2>"$work/err"
    expect 'code of a malformed address' $? 64
}

without_a_server_it_says_so() {
    lock a --port 1 -- touch "$work/ran" 2>"$work/err"
    expect 'code' $? 69 || return
    grep -qF '127.0.0.1:1: connection refused: is the server running?' \
        "$work/err" || return
    why='the command ran'
    [ ! -e "$work/ran" ]
}

# hold NAME FILE ARGS...: holds NAME in the background until FILE is removed
hold() {
    local name=$1 file=$2
    shift 2
    touch "$file"
    "$HOLDFAST" lock "$name" --port "$port" "$@" -- sh -c \
        "echo \$\$ >$file.pid; while [ -e $file ]; do sleep 0.02; done" \
        2>>"$work/err" &
    holder=$!
    started+=("$holder")
    until_true 30 test -s "$file.pid"
}

a_held_lock_is_refused_at_once() {
    hold busy "$work/held" || return
    lock busy --port "$port" -- touch "$work/ran" 2>"$work/err2"
    expect 'code' $? 75 || return
    grep -q BUSY "$work/err2" || return
    lock busy --wait 300 --port "$port" -- touch "$work/ran" 2>"$work/err2"
    expect 'code after waiting' $? 75 || return
    why='the command ran'
    [ ! -e "$work/ran" ] || return
    rm "$work/held"
    finish "$holder"
    expect "holder's code" $? 0
}

a_waiting_contender_gets_it_when_it_is_given_back() {
    hold turns "$work/held" || return
    "$HOLDFAST" lock turns --wait 60000 --port "$port" -- sh -c \
        "test -e $work/held && exit 9; exit 0" 2>"$work/err" &
    local waiter=$!
    started+=("$waiter")
    sleep 0.2 # the waiter should be in the queue, but need not be
    rm "$work/held"
    finish "$holder"
    expect "holder's code" $? 0 || return
    finish "$waiter"
    expect "waiter's code" $? 0
}

two_contenders_never_overlap() {
    local i pids=()
    for i in 1 2 3 4; do
        "$HOLDFAST" lock overlap --wait 60000 --port "$port" -- \
            sh -c \
            "mkdir $work/inside || exit 9; sleep 0.1; rmdir $work/inside" \
            2>>"$work/err" &
        pids+=($!)
        started+=($!)
    done
    for i in "${pids[@]}"; do
        finish "$i"
        expect 'code' $? 0 || return
    done
}

# In a container of its own each has the same host and process number.
apart() { unshare --pid --fork --mount-proc --kill-child "$@"; }

two_with_the_same_host_and_number_are_two_owners() {
    local file=$work/held tell='echo $HOLDFAST_OWNER $HOLDFAST_TOKEN'
    touch "$file"
    apart "$HOLDFAST" lock apart --port "$port" -- sh -c \
        "$tell >$file.first; while [ -e $file ]; do sleep 0.02; done" \
        2>>"$work/err" &
    local holder=$!
    started+=("$holder")
    until_true 30 test -s "$file.first" || return
    apart "$HOLDFAST" lock apart --port "$port" -- touch "$work/ran" \
        2>>"$work/err"
    expect "the other's code" $? 75 || return
    why='both ran at once'
    [ ! -e "$work/ran" ] || return
    rm "$file"
    finish "$holder"
    expect "holder's code" $? 0 || return
    apart "$HOLDFAST" lock apart --port "$port" -- sh -c "$tell" \
        >"$file.second" 2>>"$work/err"
    expect 'code afterwards' $? 0 || return
    grep -qE ':1:[0-9a-f]{16} [0-9]+$' "$file.first" || return
    why='both have the same owner'
    [ "$(cut -d' ' -f1 "$file.first")" != "$(cut -d' ' -f1 "$file.second")" ]
}

# contend HOLDER END_MS: nobody else gets the lock, and the holder goes on. 2: it
# was lost, and the holder said so: the machine was too slow for this TTL.
contend() {
    local code
    while [ "$(now_ms)" -lt "$2" ]; do
        lock renew --port "$port" -- true 2>>"$work/err"
        code=$?
        [ $code -ne 75 ] || continue
        expect "contender's code" $code 0 || return 1
        finish "$1"
        expect "the code of the holder that lost it" $? 76 || return 1
        why='it was lost, whatever its TTL'
        return 2
    done
}

# The hold is longer than the TTL several times over. With a longer TTL a slow
# machine has more time to renew it; without renewal each of them is too short.
it_is_renewed_beyond_its_ttl() {
    local ttl code
    for ttl in 3000 6000 12000 24000; do
        rm -f "$work/held" "$work/held.pid"
        hold renew "$work/held" --ttl $ttl || return
        contend "$holder" $(($(now_ms) + ttl * 7 / 3))
        code=$?
        [ $code -eq 2 ] || break
    done
    [ $code -eq 0 ] || return
    rm "$work/held"
    finish "$holder"
    expect "holder's code" $? 0
}

it_is_free_at_once_after_the_end() {
    lock free --ttl 60000 --port "$port" -- true 2>"$work/err" || return
    lock free --port "$port" -- true 2>"$work/err"
    expect 'code' $? 0
}

# group FILE: a command that ignores SIGTERM, with a child that does so too
group() {
    echo "trap '' TERM; echo \$\$ >$1.parent;" \
        "sh -c 'echo \$\$ >$1.child; while :; do sleep 0.05; done' &" \
        "while :; do sleep 0.05; done"
}

# run_group LOCK TTL_MS: such a group under a lock; sets runner.
run_group() {
    "$HOLDFAST" lock "$1" --ttl "$2" --port "$port" -- \
        sh -c "$(group "$work/group")" 2>"$work/err" &
    runner=$!
    started+=("$runner")
    until_true 30 test -s "$work/group.child"
}

# Both must be dead before the hold of `ttl` ms is over on the server. The
# server was last heard of no earlier than the moment it was stopped.
dead_in_time() { # dead_in_time TTL_MS STOPPED_MS FILE
    local end=$(($2 + $1))
    until gone "$3.parent" && gone "$3.child"; do
        if [ "$(now_ms)" -ge "$end" ]; then
            why='the group outlived the hold'
            return 1
        fi
        sleep 0.005
    done
}

a_stopped_server_ends_the_command_in_time() {
    start_server
    run_group gone 5000 || return
    kill -STOP "$server"
    dead_in_time 5000 "$(now_ms)" "$work/group" || return
    finish "$runner"
    expect 'code' $? 76 || return
    stop_server
}

a_killed_server_ends_the_command_in_time() {
    start_server
    run_group gone 5000 || return
    stop_server
    dead_in_time 5000 "$(now_ms)" "$work/group" || return
    finish "$runner"
    expect 'code' $? 76
}

a_command_that_obeys_is_ended_by_the_first_signal() {
    start_server
    "$HOLDFAST" lock gone --ttl 5000 --port "$port" -- sh -c \
        "trap 'touch $work/asked; exit 0' TERM; echo \$\$ >$work/pid;
         while :; do sleep 0.02; done" 2>"$work/err" &
    local runner=$!
    started+=("$runner")
    until_true 30 test -s "$work/pid" || return
    stop_server
    finish "$runner"
    expect 'code' $? 76 || return
    why='it was not asked to end'
    [ -e "$work/asked" ]
}

a_killed_holdfast_takes_the_group_with_it() {
    run_group orphan 60000 || return
    kill -KILL "$runner"
    wait "$runner" 2>/dev/null
    why='the group runs on'
    until_true 20 gone "$work/group.parent" || return
    until_true 20 gone "$work/group.child"
}

a_stopped_holdfast_loses_the_group_in_time_and_says_so() {
    run_group sleeper 5000 || return
    kill -STOP "$runner"
    dead_in_time 5000 "$(now_ms)" "$work/group" || return
    kill -CONT "$runner"
    finish "$runner"
    expect 'code' $? 76
}

signals_are_passed_on() {
    local signal
    for signal in INT TERM HUP; do
        rm -f "$work/pid"
        # a background job of a script ignores SIGINT unless told otherwise
        env --default-signal=INT "$HOLDFAST" lock pass --port "$port" -- \
            bash -c "trap 'exit 42' $signal; echo \$\$ >$work/pid;
             while :; do sleep 0.02; done" 2>"$work/err" &
        local runner=$!
        started+=("$runner")
        until_true 30 test -s "$work/pid" || return
        kill -"$signal" "$runner"
        finish "$runner"
        expect "code after SIG$signal" $? 42 || return
    done
}

what_the_command_leaves_behind_is_killed() {
    lock left --port "$port" -- sh -c \
        "sleep 1000 & echo \$! >$work/left; exit 5" 2>"$work/err"
    expect 'code' $? 5 || return
    why='it runs on'
    gone "$work/left"
}

no_process_of_ours_is_left() {
    lock quiet --port "$port" -- sh -c \
        "echo \$PPID >$work/pids; pgrep -P \$PPID >>$work/pids" \
        2>"$work/err" || return
    local pid
    for pid in $(cat "$work/pids"); do
        why="process $pid is left"
        ended "$pid" || return
    done
}

start_server
first_server=$server
first_port=$port
run exit_code_of_the_command_passes_through
run wrong_command_lines_are_told_apart
run a_missing_command_is_told_and_the_lock_is_free_again
run the_command_finds_its_token_lock_and_owner
run the_address_comes_from_the_environment
run without_a_server_it_says_so
run a_held_lock_is_refused_at_once
run a_waiting_contender_gets_it_when_it_is_given_back
run two_contenders_never_overlap
run two_with_the_same_host_and_number_are_two_owners
run it_is_renewed_beyond_its_ttl
run it_is_free_at_once_after_the_end
run a_stopped_server_ends_the_command_in_time
run a_killed_server_ends_the_command_in_time
run a_command_that_obeys_is_ended_by_the_first_signal
server=$first_server
port=$first_port
run a_killed_holdfast_takes_the_group_with_it
run a_stopped_holdfast_loses_the_group_in_time_and_says_so
run signals_are_passed_on
run what_the_command_leaves_behind_is_killed
run no_process_of_ours_is_left
echo "lock_command: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
