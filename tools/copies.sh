# copies.sh - copies of the tree for tools that change the code and look what
# happens, one for each of JOBS workers: $work/1, $work/2 ... Nothing is changed
# in the work tree. To be sourced in the root of the tree, with `work` set and
# with a die().
JOBS=${JOBS:-$(nproc)}

sums() { # FOLDER: checksum, size and name of each file that is not built
    (cd "$1" && find . \( -name .git -o -name node_modules -o -path ./build -o \
        -path ./data \) -prune -o -type f -print0 | xargs -0r cksum | sort)
}

# sync_tree TREE: makes it equal to the work tree; what is equal stays untouched.
sync_tree() {
    local name
    mkdir -p "$1"
    comm -13 <(sums .) <(sums "$1") | cut -d' ' -f3- | while read -r name; do
        rm -f "$1/$name"
    done
    comm -23 <(sums .) <(sums "$1") | cut -d' ' -f3- | while read -r name; do
        mkdir -p "$(dirname "$1/$name")"
        cp "$name" "$1/$name"
        [[ ! -x $name ]] || chmod +x "$1/$name"
    done
}

# make_in TREE ARGUMENT...: warnings do not matter there.
make_in() {
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -C "$1" --no-print-directory -s \
        -j"$(nproc)" WARN=-w "${@:2}" >"$1.log" 2>&1
}

stop_workers() {
    local job
    trap - EXIT INT TERM
    for job in $(jobs -p); do
        kill -TERM "$job" 2>/dev/null || true
    done
    wait
    exit 130
}

# begin_copies: one call at a time works there. The first copy is made.
begin_copies() {
    exec 9>"$work/lock"
    flock -n 9 || die "another one is at work in ${work#"$PWD/"}"
    trap stop_workers INT TERM
    sync_tree "$work/1"
}

# work_in_copies FUNCTION ITEM...: several of FUNCTION TREE ITEM... at once, each
# with its share of the items. What was built in the first copy is in all.
work_in_copies() {
    local function=$1 worker i share
    shift
    local items=("$@") workers=$((JOBS <= $# ? JOBS : $#))
    for ((worker = 1; worker <= workers; worker++)); do
        share=()
        for ((i = worker - 1; i < ${#items[@]}; i += workers)); do
            share+=("${items[i]}")
        done
        if ((worker > 1)); then
            [[ -d $work/$worker ]] || cp -a "$work/1" "$work/$worker"
            sync_tree "$work/$worker"
        fi
        "$function" "$work/$worker" "${share[@]}" 9>&- &
    done
    wait
}

# end_child_with_us: in a worker, whose `child` is the program that it runs.
end_child_with_us() {
    trap '[[ -z $child ]] || kill -TERM "$child" 2>/dev/null; wait; exit 1' TERM
}
