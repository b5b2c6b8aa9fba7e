#!/usr/bin/env bash
# sanitizers.sh - what is built with SAN has its sanitizers in it, and the
# thread sanitizer sees libuv close a descriptor (test/support/syscall.c).
#
# tests: also under sanitizers
set -euo pipefail
. "$(dirname "$0")/../support/check.sh"
cd "$(dirname "$0")/../.."

san=${HOLDFAST_SAN:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# has PATTERN FILE: does a dynamic symbol match?
has() {
    nm -D "$2" | grep -E -- "$1" >/dev/null # to its end
}

lacks() {
    ! has "$@"
}

# The command under test and a program of the tests, as they were built.
for program in "$HOLDFAST" "${HOLDFAST%/*}/test/unit/disk"; do
    [[ $san == address ]] && with=has || with=lacks
    check "$with the address sanitizer: $program" $with ' __asan_init' "$program"
    check "$with the one for undefined: $program" $with ' __ubsan_handle' "$program"
    [[ $san == thread ]] && with=has || with=lacks
    check "$with the thread sanitizer: $program" $with ' __tsan_init' "$program"
    check "$with a syscall of its own: $program" $with ' T syscall$' "$program"
done
[[ -z $san ]] || finish

# A descriptor that the loop's thread used and closed comes back to another,
# who opens by a call that the sanitizer does not see either, as the journal
# does. Nothing orders the two but the kernel.
cat >"$folder/reuse.c" <<'END'
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>
#include <uv.h>

static int closed = -1; /* the number, once it is free */

static void *read_it(void *unused)
{
    char byte;
    int number;

    while ((number = __atomic_load_n(&closed, __ATOMIC_RELAXED)) < 0)
        sched_yield();
    int fd = openat(AT_FDCWD, "/dev/null", O_RDONLY);
    if (fd == number && read(fd, &byte, 1) == 0)
        puts("the same number");
    return unused;
}

int main(void)
{
    pthread_t thread;
    uv_loop_t loop;
    uv_pipe_t handle;
    int ends[2];

    if (pthread_create(&thread, NULL, read_it, NULL) != 0 ||
        pipe(ends) != 0 ||
        uv_loop_init(&loop) != 0 || uv_pipe_init(&loop, &handle, 0) != 0 ||
        uv_pipe_open(&handle, ends[0]) != 0)
        return 1;
    uv_close((uv_handle_t *)&handle, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    __atomic_store_n(&closed, ends[0], __ATOMIC_RELAXED);
    return pthread_join(thread, NULL);
}
END

# run FILE...: builds reuse.c with FILE, sets status and output.
run() {
    status=0
    gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -g1 -fsanitize=thread \
        -pthread -o "$folder/reuse" "$folder/reuse.c" "$@" -luv
    output=$(TSAN_OPTIONS='' "$folder/reuse" 2>"$folder/report") || status=$?
    expect "the case is what it should be" "the same number" "$output"
}

# If the first of these fails, syscall.c is no longer needed.
run
expect "a bare close is not seen" 66 "$status"
check "and is a race to the sanitizer" grep -q 'data race' "$folder/report"
run test/support/syscall.c
expect "with a syscall of our own there is no report" "" "$(cat "$folder/report")"
expect "nor a failure" 0 "$status"

# All other calls go on to libc, with six arguments and with its errno.
cat >"$folder/calls.c" <<'END'
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
    FILE *file = tmpfile();
    int fd = file == NULL ? -1 : fileno(file);

    if (fputs("one page", file) < 0 || fflush(file) != 0)
        return 1;
    char *map = (char *)syscall(SYS_mmap, NULL, 4096L, (long)PROT_READ,
                                (long)MAP_SHARED, (long)fd, 0L);
    long id = syscall(SYS_getpid);
    long wrong = syscall(SYS_read, -1L, NULL, 0L);
    int read_error = errno;
    long again = syscall(SYS_close, -1L);
    printf("%.8s %d %ld %d %ld %d\n", map, id == getpid(), wrong,
           read_error == EBADF, again, errno == EBADF);
    return 0;
}
END
gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -fsanitize=thread \
    -o "$folder/calls" "$folder/calls.c" test/support/syscall.c
expect "other calls are libc's" "one page 1 -1 1 -1 1" "$("$folder/calls")"
finish
