/* stall.h - stops one thread where it stands, as a scheduler may at any time.
 *
 * A lock-free structure must go on when one of its threads does not: a test
 * stops a thread at an instruction that nobody chose, lets the others work, and
 * lets it go on. The thread is held inside the handler of a real-time signal.
 *
 *   stall_init();
 *   struct stall *stall = stall_stop(thread);   it stands still from here
 *   ... the others must finish their work ...
 *   stall_resume(stall);
 *
 * The thread may stop with any lock held but the allocator's: inside a call of
 * base/memory.h it stops at the end of that call (test programs are linked with
 * wrappers of these calls), so that the others can allocate. Until the thread
 * is resumed the caller waits for nothing else that it could hold.
 *
 * A system call in which the thread slept ends with EINTR once it goes on; what
 * sleeps by base/futex.h looks again and goes back to sleep. Under a thread
 * sanitizer the thread stops at its next atomic access or call of libc, and one
 * that sleeps in a pthread barrier or join does not stop before it wakes.
 *
 * Threads: any thread may stop any other, several can be stopped at a time. No
 *          memory order comes from stopping: a thread sanitizer sees the races
 *          that it would see without.
 */
#ifndef TEST_SUPPORT_STALL_H
#define TEST_SUPPORT_STALL_H

#include <pthread.h>

#define STALLS_MAX 64

struct stall;

/* Installs the handler; again is harmless. */
void stall_init(void);
/* Returns when the thread is stopped. Ends the program with a message if that
 * takes more than 60 seconds or STALLS_MAX threads are stopped. The thread must
 * not have ended and been joined. */
struct stall *stall_stop(pthread_t thread);
/* Lets it go on; `stall` is then no longer valid. */
void stall_resume(struct stall *stall);

#endif
