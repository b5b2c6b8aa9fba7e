/* syscall.c - syscall() of programs built with SAN=thread.
 *
 * The thread sanitizer watches close() to learn that a descriptor is free to
 * be given to somebody else. libuv closes by syscall(SYS_close), which it does
 * not see: whoever gets that number next is reported as a race with those who
 * used it before. Here that one call becomes close(); all others go to libc.
 * The linker lets libuv find this function before that of libc.
 *
 * Besides, the sanitizer makes a thread's record of pending signals when the
 * thread first blocks, and loses a signal that comes while it does: a SIGTERM
 * before the server's first epoll_wait(). So main() begins with the record
 * made.
 *
 * Threads: any. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef long syscall_function(long number, ...);

static _Atomic(syscall_function *) libc_syscall;

/* Before main(): a signal handler may call syscall(), but not dlsym(). */
__attribute__((constructor)) static syscall_function *find_libc(void)
{
    syscall_function *found = (syscall_function *)dlsym(RTLD_NEXT, "syscall");

    /* Relaxed: whoever looks finds the same. */
    atomic_store_explicit(&libc_syscall, found, memory_order_relaxed);
    return found;
}

/* Any call that may block will do. */
__attribute__((constructor)) static void make_signal_record(void)
{
    (void)nanosleep(&(struct timespec){0}, NULL);
}

long syscall(long number, ...)
{
    syscall_function *libc =
        atomic_load_explicit(&libc_syscall, memory_order_relaxed);
    long words[6];
    va_list args;

    /* As libc does: six words, whether or not the call has so many. */
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_close)
        return close((int)words[0]);
    if (libc == NULL)
        libc = find_libc();
    if (libc == NULL) {
        errno = ENOSYS;
        return -1;
    }
    return libc(number, words[0], words[1], words[2], words[3], words[4],
                words[5]);
}
