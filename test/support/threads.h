/* threads.h - helper threads: run one function on many threads at once.
 *
 * The threads start together behind a barrier, so that they really overlap.
 */
#ifndef TEST_SUPPORT_THREADS_H
#define TEST_SUPPORT_THREADS_H

#define TEST_THREADS_MAX 64

/* Calls body(context, 0 .. count - 1), one thread each; returns when all have
 * returned. The body must not use CHECK: it runs outside the test's thread. */
void test_threads(int count, void (*body)(void *context, int index),
                  void *context);

#endif
