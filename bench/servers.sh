# servers.sh - starts and ends the servers that are measured; for bench/run.
#
# Each has a name, runs on a free loopback port with its data in a folder of
# its own below $work, and is ended by the id of its process. Needs $work,
# $holdfast and fail().
#
#   need NAME...   exactly these run afterwards; ${port[NAME]} tells where
#   stop_all       none runs

declare -A pid=() port=()

# As the user whom PostgreSQL insists on, if we are root.
as_postgres() {
    if ((EUID == 0)); then
        exec setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
    else
        exec "$@"
    fi
}

# A port that nobody listens on now. Another process may take it before the
# server does; the server then fails to start, and says so.
free_port() {
    local candidate hex
    while :; do
        candidate=$((20000 + RANDOM % 12000))
        hex=$(printf ':%04X ' "$candidate")
        grep -qs "$hex" /proc/net/tcp /proc/net/tcp6 || break
    done
    echo "$candidate"
}

# await NAME COMMAND...: until the command succeeds, while the server lives.
await() {
    local name=$1 tries
    shift
    for ((tries = 0; tries < 1200; tries++)); do
        ! "$@" &>/dev/null || return 0
        kill -0 "${pid[$name]}" 2>/dev/null || break
        sleep 0.05
    done
    tail -n 20 "$work/$name.log" >&2
    fail "$name did not start"
}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# ZooKeeper takes connections before it serves, and closes them again.
zookeeper_serves() {
    (
        exec 3<>"/dev/tcp/127.0.0.1/$1"
        printf srvr >&3
        timeout 5 grep -q '^Mode:' <&3
    ) 2>/dev/null
}

start_holdfast() { # NAME DURABILITY
    rm -f "$work/$1.log" # an older one says ready as well
    "$holdfast" serve --port 0 --dir "$work/$1" --durability "$2" \
        &>"$work/$1.log" &
    pid[$1]=$!
    await "$1" grep -q '^ready' "$work/$1.log"
    port[$1]=$(sed -n 's/^ready.*:\([0-9]\{1,\}\).*/\1/p;T;q' "$work/$1.log")
}

start_redis() { # NAME CONFIG...
    local name=$1
    shift
    mkdir -p "$work/$name"
    port[$name]=$(free_port)
    redis-server --port "${port[$name]}" --bind 127.0.0.1 --save '' \
        --dir "$work/$name" "$@" &>"$work/$name.log" &
    pid[$name]=$!
    await "$name" redis-cli -p "${port[$name]}" ping
}

start_etcd() {
    local peer
    port[etcd]=$(free_port)
    peer=http://127.0.0.1:$(free_port)
    etcd --data-dir "$work/etcd" \
        --listen-client-urls "http://127.0.0.1:${port[etcd]}" \
        --advertise-client-urls "http://127.0.0.1:${port[etcd]}" \
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" \
        --initial-cluster "default=$peer" &>"$work/etcd.log" &
    pid[etcd]=$!
    await etcd env ETCDCTL_API=3 etcdctl \
        --endpoints "127.0.0.1:${port[etcd]}" endpoint health
}

# Defaults, but for the port of the web server (fixed, so it is off) and the
# number of connections from one address.
start_zookeeper() {
    local jar=/usr/share/java/zookeeper.jar
    port[zookeeper]=$(free_port)
    mkdir -p "$work/zookeeper"
    printf '%s\n' "dataDir=$work/zookeeper" "clientPort=${port[zookeeper]}" \
        clientPortAddress=127.0.0.1 tickTime=2000 admin.enableServer=false \
        maxClientCnxns=0 >"$work/zookeeper.cfg"
    java -cp "$jar" org.apache.zookeeper.server.quorum.QuorumPeerMain \
        "$work/zookeeper.cfg" &>"$work/zookeeper.log" &
    pid[zookeeper]=$!
    await zookeeper zookeeper_serves "${port[zookeeper]}"
}

postgres_bin() {
    local bin
    bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
    [[ -x $bin/postgres ]] || bin=$(dirname "$(command -v postgres)")
    echo "$bin"
}

start_postgres() {
    local data=$work/postgres bin
    bin=$(postgres_bin)
    mkdir -p "$data"
    ((EUID != 0)) || chown postgres "$data"
    (as_postgres "$bin/initdb" -D "$data" -U postgres -A trust -E UTF8 \
        --locale=C &>"$work/initdb.log") || fail "initdb: see $work/initdb.log"
    port[postgres]=$(free_port)
    (as_postgres "$bin/postgres" -D "$data" -p "${port[postgres]}" \
        -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
        -c shared_buffers=1GB -c max_wal_size=8GB -c fsync=on \
        -c synchronous_commit=on -c max_connections=300) \
        &>"$work/postgres.log" &
    pid[postgres]=$!
    await postgres "$bin/pg_isready" -q -h 127.0.0.1 -p "${port[postgres]}"
}

start_tarantool() {
    port[tarantool]=$(free_port)
    mkdir -p "$work/tarantool"
    tarantool bench/peers/tarantool/server.lua "${port[tarantool]}" \
        "$work/tarantool" &>"$work/tarantool.log" &
    pid[tarantool]=$!
    await tarantool listens "${port[tarantool]}"
}

start() {
    mkdir -p "$work"
    case $1 in
    holdfast-*) start_holdfast "$1" "${1#holdfast-}" ;;
    redis-always)
        start_redis "$1" --appendonly yes --appendfsync always \
            --auto-aof-rewrite-percentage 0
        ;;
    redis-none) start_redis "$1" --appendonly no ;;
    *) "start_$1" ;;
    esac
}

# PostgreSQL waits for its clients on TERM; INT sends them away.
stop() {
    local name=$1 signal=TERM tries
    [[ $name != postgres ]] || signal=INT
    kill -"$signal" "${pid[$name]}" 2>/dev/null || true
    for ((tries = 0; tries < 200; tries++)); do
        kill -0 "${pid[$name]}" 2>/dev/null || break
        sleep 0.05
    done
    kill -KILL "${pid[$name]}" 2>/dev/null || true
    wait "${pid[$name]}" 2>/dev/null || true
    unset "pid[$name]" "port[$name]"
    rm -rf "${work:?}/$name"
}

stop_all() {
    local name
    for name in "${!pid[@]}"; do
        stop "$name"
    done
}

need() {
    local name
    for name in "${!pid[@]}"; do
        [[ " $* " == *" $name "* ]] || stop "$name"
    done
    for name in "$@"; do
        [[ -n ${pid[$name]:-} ]] || start "$name"
    done
}
