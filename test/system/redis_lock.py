"""redis_lock.py - redis-py's own Lock.

    python3 redis_lock.py ADDRESS     a port of this machine, or a socket's path

Prints one line per outcome, as outcome.mjs does for the clients from npm.
"""
import sys
import threading

import redis
from redis.exceptions import LockError, LockNotOwnedError

LONG = 600  # seconds: no test takes so long
address = sys.argv[1]


def connect():
    if address.isdigit():
        return redis.Redis(port=int(address))
    return redis.Redis(unix_socket_path=address)


def expect(name, found, expected):
    good = found == expected
    print("ok " + name if good else
          f"FAIL {name}: {found!r} instead of {expected!r}")


def failure(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except (LockError, LockNotOwnedError) as error:
        return type(error).__name__
    return "none"


client = connect()
lock = client.lock("py:a", timeout=LONG)
expect("taken", lock.acquire(blocking=False), True)
expect("its token", client.get("py:a"), lock.local.token)
expect("locked and owned", (lock.locked(), lock.owned()), (True, True))
other = client.lock("py:a", timeout=LONG)
expect("another is refused", other.acquire(blocking=False), False)
expect("extended", (lock.extend(LONG), client.ttl("py:a") > LONG), (True, True))
expect("replaced", (lock.extend(10, replace_ttl=True), client.ttl("py:a") <= 10),
       (True, True))
expect("taken again", (lock.reacquire(), client.ttl("py:a") > 10), (True, True))
other.local.token = b"wrong"
expect("not by a wrong token", failure(other.extend, 1), "LockNotOwnedError")
expect("nor given back", failure(other.release), "LockNotOwnedError")
lock.release()
expect("given back", client.get("py:a"), None)
expect("only once", failure(lock.release), "LockError")

endless = client.lock("py:b")
expect("without an end", (endless.acquire(), client.ttl("py:b")), (True, -1))
expect("cannot be extended", failure(endless.extend, 1), "LockError")
endless.release()

first = client.lock("py:c", timeout=0.05)
first.acquire()
second = client.lock("py:c", timeout=LONG, sleep=0.001)
expect("an end is waited for", second.acquire(), True)
expect("the first has lost it", failure(first.release), "LockNotOwnedError")
second.release()

shared = [0]


def work():
    own = connect()
    for _ in range(5):
        with own.lock("py:count", timeout=LONG, sleep=0.001):
            read = shared[0]
            own.ping()
            shared[0] = read + 1


threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
expect("exact", shared[0], 30)
