#!/usr/bin/env bash
# redis_words.sh - the commands about keys, word for word: the same words get the
# same replies from Redis and from Holdfast.
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."
. test/support/server.sh

start_server
redis-server --port 0 --unixsocket "$scratch/redis.sock" --save '' \
    --dir "$scratch" >/dev/null &
redis_pid=$!
for ((i = 0; i < 600; i++)); do
    [[ $(redis-cli -s "$scratch/redis.sock" ping 2>&1) != PONG ]] || break
done

# Lines as redis-cli takes them. Times are long, so that their seconds are the
# same on a slow machine; what begins with # is for the reader.
words=$(cat <<'END'
# SET and its options
SET a 1
GET a
SET a 2 NX
SET a 2 XX
GET a
SET none 1 XX
SET a 3 GET
SET a 4 NX GET
SET none 1 XX GET
GET none
SET a 5 EX 100000 KEEPTTL
SET a 5 NX XX
SET a 5 PX 100 EX 100
SET a 5 PX
SET a 5 PX ten
SET a 5 PX 1.5
SET a 5 PX 05
SET a 5 PX 0
SET a 5 EX -1
SET a 5 EX 9223372036854775807
SET a 5 PX 99999999999999999999
SET a 5 nosuch
SET a
SET
SET a 5 px 100000000 nx
SET a 5 Px 100000000 xX
TTL a
SET a 6 KEEPTTL
TTL a
SET a 7
TTL a
SET a 8 EXAT 32503680000
PERSIST a
SET a 8 PXAT 32503680000000
PERSIST a
TTL a
SET a 8 PXAT 1
GET a
SET a 8 EXAT 0
SET "quoted key" "a value with blanks"
GET "quoted key"
SET bytes "\x00\xff\r\n"
GET bytes
SET empty ""
GET empty
SETNX b 1
SETNX b 2
SETNX b
SETNX b 1 2
# DEL and its kin
DEL b b none
DEL b
DEL
SET b 1
UNLINK b none
GETDEL a
GETDEL "quoted key"
GETDEL "quoted key"
GETDEL
GETDEL a b
GET
GET a b
# times
SET c 1
PEXPIRE c 100000000
TTL c
EXPIRE c 100000
TTL c
EXPIRE c ten
EXPIRE c
PEXPIRE c 1.5
PEXPIRE c 05
PEXPIRE c -0
EXPIRE c -9223372036854776
PERSIST c
PERSIST c
PERSIST none
EXPIRE none 10
PEXPIRE c 0
EXISTS c
SET c 1
EXPIRE c -5
EXISTS c
PTTL c
TTL c
PTTL
TTL a b
# others
SET d 1
TYPE d
TYPE none
TYPE
EXISTS d d none
EXISTS
EXISTS d
DBSIZE
DBSIZE x
KEYS d*
KEYS nosuch*
KEYS ""
SCAN 0 MATCH ""
KEYS
SCAN 0 MATCH d*
SCAN 0 MATCH d* COUNT 1000
SCAN 0 TYPE hash
SCAN x
SCAN 0 COUNT 0
SCAN 0 COUNT x
SCAN 0 COUNT 05
SCAN 0 nosuch
SCAN
# scripts
EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end" 1 d 2
EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end" 1 d 1
EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end" 2 d
EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end" x d
EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end" -1 d
EVAL "return redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2])" 1 e me 100000000
EVAL "return redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2])" 1 e me 100000000
EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('set',KEYS[1],ARGV[2],'EX',ARGV[3]) else return 0 end" 1 e me you 100000
EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('set',KEYS[1],ARGV[2],'EX',ARGV[3]) else return 0 end" 1 e me we 100000
TTL e
EVAL "local v = redis.call('get',KEYS[1]) if v == ARGV[1] then redis.call('set',KEYS[1],ARGV[2]) return true end return false" 1 e you me
TTL e
EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('set',KEYS[1],ARGV[1],'EX',ARGV[2]) else return 0 end" 1 e me 100000
TTL e
EVAL "if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return 1 else return 0 end" 1 e me 100000000
EVAL
EVAL x
EVALSHA x
SCRIPT LOAD "return redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2])"
EVALSHA 7ea1efbea425b62e6593f238a6c18bf25907dbd9 1 e me 100000000
EVALSHA 7EA1EFBEA425B62E6593F238A6C18BF25907DBD9 1 f me 100000000
EVALSHA 7ea1efbea425b62e6593f238a6c18bf25907dbd8 1 e me 100000000
SCRIPT EXISTS 0000000000000000000000000000000000000000 0
EVALSHA ae3671744a5dbb24ea37ef607b8b10ac7856d43e 1 e you
SCRIPT FLUSH ASYNC
EVALSHA ae3671744a5dbb24ea37ef607b8b10ac7856d43e 1 e you
EVALSHA 7ea1efbea425b62e6593f238a6c18bf25907dbd9 1 e me 100000000
SCRIPT FLUSH nosuch
# a value for each key
EVAL "for i=1,#KEYS do if redis.call('exists',KEYS[i])==1 then return {0,i,KEYS[i]} end end local ttl=tonumber(ARGV[#ARGV]) for i=1,#KEYS do redis.call('set',KEYS[i],ARGV[i],'PX',ttl) end return {1,#KEYS}" 3 i3 i1 i2 c a "" 100000000
EVAL "for i=1,#KEYS do if redis.call('exists',KEYS[i])==1 then return {0,i,KEYS[i]} end end local ttl=tonumber(ARGV[#ARGV]) for i=1,#KEYS do redis.call('set',KEYS[i],ARGV[i],'PX',ttl) end return {1,#KEYS}" 3 i4 i3 i2 a b c 100000000
EVAL "for i=1,#KEYS do if redis.call('exists',KEYS[i])==1 then return {0,i,KEYS[i]} end end local ttl=tonumber(ARGV[#ARGV]) for i=1,#KEYS do redis.call('set',KEYS[i],ARGV[i],'PX',ttl) end return {1,#KEYS}" 1 i1 a 100000000
EVAL "for i=1,#KEYS do if redis.call('exists',KEYS[i])==1 then return {0,i,KEYS[i]} end end local ttl=tonumber(ARGV[#ARGV]) for i=1,#KEYS do redis.call('set',KEYS[i],ARGV[i],'PX',ttl) end return {1,#KEYS}" 3 j1 j2 j1 a b c 100000000
EVAL "for i=1,#KEYS do if redis.call('exists',KEYS[i])==1 then return {0,i,KEYS[i]} end end local ttl=tonumber(ARGV[#ARGV]) for i=1,#KEYS do redis.call('set',KEYS[i],ARGV[i],'PX',ttl) end return {1,#KEYS}" 4 j3 j3 j4 j1 a b c d 100000000
EVAL "for i=1,#KEYS do if redis.call('exists',KEYS[i])==1 then return {0,i,KEYS[i]} end end local ttl=tonumber(ARGV[#ARGV]) for i=1,#KEYS do redis.call('set',KEYS[i],ARGV[i],'PX',ttl) end return {1,#KEYS}" 2 j5 j5 a b 100000000
EVAL "for i=1,#KEYS do if redis.call('exists',KEYS[i])==1 then return {0,i,KEYS[i]} end end local ttl=tonumber(ARGV[#ARGV]) for i=1,#KEYS do redis.call('set',KEYS[i],ARGV[i],'PX',ttl) end return {1,#KEYS}" 2 j6 j7 a b c d 100000000
EVAL "for i=1,#KEYS do if redis.call('exists',KEYS[i])==1 then return {0,i,KEYS[i]} end end local ttl=tonumber(ARGV[#ARGV]) for i=1,#KEYS do redis.call('set',KEYS[i],ARGV[i],'PX',ttl) end return {1,#KEYS}" 2 j8 j9 a 100000000
EVAL "for i=1,#KEYS do if redis.call('exists',KEYS[i])==1 then return {0,i,KEYS[i]} end end local ttl=tonumber(ARGV[#ARGV]) for i=1,#KEYS do redis.call('set',KEYS[i],ARGV[i],'PX',ttl) end return {1,#KEYS}" 1 j0 100000000
GET i1
GET i2
GET i3
EXISTS i4 j3 j4
TTL i3
GET j1
GET j5
GET j7
GET j9
GET j0
SCRIPT EXISTS 514d8d1b08387624661da2a9098d3949b633eb3b
EVALSHA 514d8d1b08387624661da2a9098d3949b633eb3b 2 k1 k2 a b 100000000
# groups
MULTI
EVAL "for i=1,#KEYS do if redis.call('exists',KEYS[i])==1 then return {0,i,KEYS[i]} end end local ttl=tonumber(ARGV[#ARGV]) for i=1,#KEYS do redis.call('set',KEYS[i],ARGV[i],'PX',ttl) end return {1,#KEYS}" 2 g3 g4 a b 100000000
EVAL "for i=1,#KEYS do if redis.call('exists',KEYS[i])==1 then return {0,i,KEYS[i]} end end local ttl=tonumber(ARGV[#ARGV]) for i=1,#KEYS do redis.call('set',KEYS[i],ARGV[i],'PX',ttl) end return {1,#KEYS}" 2 g5 g4 a b 100000000
GET g5
GET g4
DEL g3 g4
EXEC
MULTI
SET g 1 NX
SET g 2 NX
GET g
SET g 3 GET
TTL g
EXISTS g
DEL g
GETDEL g
EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end" 1 g 2
EXEC
MULTI
SET g
SET g 1
EXEC
MULTI
SET g 1
EXEC too much
SET h 1
EXEC
EXISTS g
END
)
say() {
    grep -v '^#' <<<"$words" | redis-cli --no-raw "$@" 2>&1 |
        sed -E 's/(No matching script).*/\1/; s/(because of: ).*/\1/; s/^"(string|none)"$/\1/'
}
say -s "$scratch/redis.sock" >"$scratch/expected"
say -p "$port" >"$scratch/found"
expect "the same replies" '' "$(diff "$scratch/expected" "$scratch/found")"
expect "all of them" 217 "$(wc -l <"$scratch/found")"

# At the bounds, which Redis does not have.
cli() {
    redis-cli -p "$port" "$@" 2>&1
}
text() { # LENGTH
    printf '%*s' "$1" '' | tr ' ' x
}
expect "the longest key and value" OK "$(cli SET "$(text 512)" "$(text 256)")"
expect "the value comes back" "$(text 256)" "$(cli GET "$(text 512)")"
expect "a value beyond the bound" \
    "BADARG the value has 257 bytes, at most 256 are allowed" \
    "$(cli SET k "$(text 257)")"
expect "a key beyond the bound" \
    "BADARG the key has 513 bytes, at most 512 are allowed" \
    "$(cli SET "$(text 513)" v)"
expect "an empty key" "BADARG the key is empty" "$(cli SET '' v)"
mapfile -t keys < <(seq 65)
expect "as many keys as there may be" 0 "$(cli DEL "${keys[@]:0:64}")"
expect "one more" "BADARG at most 64 keys in one command" "$(cli DEL "${keys[@]}")"
each="for i = 1, #KEYS do if redis.call('exists', KEYS[i]) == 1 then
    return {0, i, KEYS[i]} end end local ttl = tonumber(ARGV[#ARGV])
    for i = 1, #KEYS do redis.call('set', KEYS[i], ARGV[i], 'PX', ttl) end
    return {1, #KEYS}"
mapfile -t long < <(seq 64 | sed "s/^/$(text 510)/; s/.*\(.\{512\}\)$/\1/")
mapfile -t values < <(seq 64 | sed "s/^/$(text 254)/; s/.*\(.\{256\}\)$/\1/")
expect "as many as there may be, each with a value" $'1\n64' \
    "$(cli EVAL "$each" 64 "${long[@]}" "${values[@]}" 100000000)"
expect "the last of them is held" $'0\n64\n'"${long[63]}" \
    "$(cli EVAL "$each" 64 "${keys[@]:0:63}" "${long[63]}" "${values[@]}" 100000000)"
expect "one more with a value" "BADARG at most 64 keys in one command" \
    "$(cli EVAL "$each" 65 "${keys[@]}" "${values[@]}" x 100000000)"
expect "what LOCK made is taken" $'0\n2\nby-lock' \
    "$(cli LOCK by-lock OWNER me SHARED >/dev/null &&
        cli EVAL "$each" 2 free by-lock 1 2 100000000)"
expect "what DONE closed, too" $'0\n1\nclosed' \
    "$(cli LOCK closed OWNER me >"$scratch/lock" &&
        cli UNLOCK closed "$(sed -n 2p "$scratch/lock")" DONE 100000000 \
            >/dev/null &&
        cli EVAL "$each" 2 closed by-lock 1 2 100000000)"
expect "the longest time" OK "$(cli SET k v PX 1000000000000000)"
expect "a longer one" "ERR invalid expire time in 'set' command" \
    "$(cli SET k v PX 1000000000000001)"
expect "native compare and delete" $'0\n1\n0' \
    "$(cli DELIFEQ k x && cli DELEX k IFEQ v && cli DELEX k)"
expect "compare and set" $'OK\n\nOK\nw' \
    "$(cli SET k v && cli SET k x IFEQ y && cli SET k w IFEQ v && cli GET k)"

# Redis has more options.
expect "a time under a condition" \
    "ERR wrong number of arguments for 'expire' command" "$(cli EXPIRE k 5 NX)"
expect "deleted under another condition" "ERR syntax error" "$(cli DELEX k IFNE v)"

# What is not there says where to read.
for command in "HSET h f v" "LPUSH l v" "incr n" "ZADD z 1 m" "XADD x * f v" "SETEX k 5 v"; do
    # shellcheck disable=SC2086
    expect "$command is refused" "ERR '${command%% *}' is not supported: Holdfast \
keeps locks, stock and limits, see docs/redis.md" "$(cli $command)"
done
watch="ERR 'WATCH' is not supported: the conditions of a group are HELD, FENCE and \
IF version, see docs/groups.md"
expect "WATCH" "$watch" "$(cli WATCH k)"
expect "WATCH in a group, which does nothing then" \
    "$(printf '%s\n' OK "$watch" '' QUEUED \
        'EXECABORT Transaction discarded because of previous errors.')" \
    "$(printf '%s\n' MULTI 'WATCH k' 'SET watched v' EXEC | cli)"
check "nobody's command" grep -q "^ERR unknown command 'NOSUCH'" <<<"$(cli NOSUCH)"
expect "an unknown script" \
    "ERR unknown script: only scripts of lock clients are known, see docs/redis.md" \
    "$(cli EVAL 'return redis.call("HSET", KEYS[1], "f", "v")' 1 h)"
expect "an unknown SHA1" \
    "NOSCRIPT No matching script. Please use EVAL: see docs/redis.md" \
    "$(cli EVALSHA 0000000000000000000000000000000000000000 0)"

# So many texts are remembered; the one that was sent first goes first.
give="return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) --"
sha1_of() { # TEXT
    printf '%s' "$1" | sha1sum | cut -c 1-40
}
for ((i = 0; i <= 1024; i++)); do
    printf 'SCRIPT LOAD "%s %d"\n' "$give" "$i"
done | cli >"$scratch/loaded"
expect "the SHA1 of a text" "$(sha1_of "$give 0")" "$(head -n 1 "$scratch/loaded")"
expect "all are known" 1025 "$(sort -u "$scratch/loaded" | wc -l)"
expect "the first was forgotten, no other" $'0\n1\n1' \
    "$(cli SCRIPT EXISTS "$(sha1_of "$give 0")" "$(sha1_of "$give 1")" \
        "$(sha1_of "$give 1024")")"
expect "EVALSHA of the last" OK "$(cli EVALSHA "$(sha1_of "$give 1024")" 1 shas me 500)"

# Scripts that limit a rate are run by the limiter; its windows are the clock's,
# of which these are long.
window="local n = redis.call('INCR', KEYS[1])
    if n == 1 then redis.call('EXPIRE', KEYS[1], ARGV[2]) end
    if n > tonumber(ARGV[1]) then return 0 end return 1"
age=3000000000
expect "a limit in a window" $'1\n1\n0' \
    "$(for i in 1 2 3; do cli EVAL "$window" 1 api 2 $age; done)"
counted="local n = redis.call('incr', KEYS[1])
    if n == 1 then redis.call('pexpire', KEYS[1], ARGV[1]) end return n"
expect "calls in a window" $'1\n2\n3' \
    "$(for i in 1 2 3; do cli EVAL "$counted" 1 calls ${age}000; done)"
# Buckets by the second, as Spring Cloud Gateway and go-zero have them: two keys,
# a rate, a capacity, a time that does not count, and what is wanted. So large
# that what comes in the meantime does not matter.
bucket() { # SHA1
    for i in 1 2 3; do
        cli --no-raw EVALSHA "$1" 2 "$1" time 1 1000000 '' 400000
    done | sed -E 's/[0-9]{4}$/..../'
}
for sha1 in 9d491aea731237273f4274f9ed9660b432b23791 \
    86c69f51986a343841432495d8b97ac7ebdd7cfc; do
    expect "a bucket, and what is left" "1) (integer) 1
2) (integer) 60....
1) (integer) 1
2) (integer) 20....
1) (integer) 0
2) (integer) 20...." "$(bucket $sha1)"
done
expect "a bucket" $'(integer) 1\n(integer) 1\n(nil)' \
    "$(bucket 12882782d00e1181e052e120006f9973036715fe)"
for i in 1 2; do
    expect "a bucket that holds nothing" $'0\n0' \
        "$(cli EVALSHA 9d491aea731237273f4274f9ed9660b432b23791 2 a b 1 0 0 1)"
    expect "a window of nothing" 0 "$(cli EVAL "$window" 1 closed 0 $age)"
done
expect "a bucket that is filled with nothing" \
    "BADARG the number of permits must be a whole number from 1 to 2147483647, not '0'" \
    "$(cli EVALSHA 9d491aea731237273f4274f9ed9660b432b23791 2 a b 0 1 0 1)"
expect "it is no key" 0 "$(cli EXISTS api calls)"
expect "a window that cannot be" \
    "ERR value is not an integer or out of range" "$(cli EVAL "$counted" 1 calls x)"
expect "not in a group" $'OK\nERR EVAL is not allowed in MULTI' \
    "$(printf 'MULTI\nEVAL "%s" 1 calls 5\n' "${counted//$'\n'/ }" | cli |
        sed '/^$/d')"

# A SET whose client is gone stays, as with Redis.
exec {gone}<>"/dev/tcp/127.0.0.1/$port"
printf 'SET gone v\r\n' >&"$gone"
exec {gone}>&-
for ((i = 0; i < 600; i++)); do
    [[ $(cli GET gone) != v ]] || break
done
expect "a client that goes leaves its key" v "$(cli GET gone)"

# A key is a lock like any other.
expect "LOCKS lists it" 1 "$(cli LOCKS k | grep -cx k)"
check "LOCK waits behind it" grep -q "^BUSY lock 'k' is held by 'w' for " \
    <<<"$(cli LOCK k OWNER me)"
cli LOCK mine OWNER me >"$scratch/lock"
check "what LOCK made is no key" grep -q '^WRONGTYPE Operation against a key' \
    <<<"$(cli SET mine x)"
expect "and tells its owner" me "$(cli GET mine)"

# After a restart it is there.
kill -KILL "$server_pid"
wait "$server_pid" 2>/dev/null || true
start_server
expect "after a crash" w "$(cli GET k)"
expect "each value, too" "${values[*]:62:2}" \
    "$(echo "$(cli GET "${long[62]}")" "$(cli GET "${long[63]}")")"
kill "$redis_pid"
wait "$redis_pid" || true
stop_server
finish
