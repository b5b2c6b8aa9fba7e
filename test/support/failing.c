/* failing.c - counts allocations and starts of threads, and fails some. */
#include "support/failing.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "base/thread.h"

/* Of each thread its own. Relaxed, though no other thread looks: fibers share
 * them, and so does a signal handler of the thread. */
static _Thread_local uint64_t allocation_count;
static _Thread_local uint64_t fail_from = UINT64_MAX;
static _Thread_local uint64_t fail_end = UINT64_MAX;
static _Thread_local uint64_t starts_left = UINT64_MAX;
static _Thread_local int allocating;

void (*failing_left)(void);

static uint64_t get(const uint64_t *number)
{
    return __atomic_load_n(number, __ATOMIC_RELAXED);
}

static void set(uint64_t *number, uint64_t value)
{
    __atomic_store_n(number, value, __ATOMIC_RELAXED);
}

/* ---- Memory. ---- */

void hf_memory_fail_after(uint64_t count)
{
    set(&fail_from, get(&allocation_count) + count);
    set(&fail_end, UINT64_MAX);
}

void hf_memory_fail_once(uint64_t count)
{
    hf_memory_fail_after(count);
    set(&fail_end, get(&fail_from) + 1);
}

void hf_memory_fail_never(void)
{
    set(&fail_from, UINT64_MAX);
}

uint64_t hf_memory_count(void)
{
    return get(&allocation_count);
}

bool failing_allocates(void)
{
    return __atomic_load_n(&allocating, __ATOMIC_RELAXED) != 0;
}

static void enter(void)
{
    __atomic_store_n(&allocating, 1, __ATOMIC_RELAXED);
}

static void leave(void)
{
    __atomic_store_n(&allocating, 0, __ATOMIC_RELAXED);
    if (failing_left != NULL)
        failing_left();
}

static bool memory_fails(void)
{
    uint64_t index = get(&allocation_count);

    set(&allocation_count, index + 1);
    return index >= get(&fail_from) && index < get(&fail_end);
}

#define WRAPPED(name, parameters, arguments)                            \
    void *__real_##name parameters;                                     \
    void *__wrap_##name parameters;                                     \
    void *__wrap_##name parameters                                      \
    {                                                                   \
        enter();                                                        \
        void *memory = memory_fails() ? NULL : __real_##name arguments; \
        leave();                                                        \
        return memory;                                                  \
    }

WRAPPED(hf_alloc, (size_t bytes), (bytes))
WRAPPED(hf_alloc_zeroed, (size_t bytes), (bytes))
WRAPPED(hf_realloc, (void *old, size_t bytes), (old, bytes))
WRAPPED(hf_alloc_aligned, (size_t alignment, size_t bytes), (alignment, bytes))
WRAPPED(hf_alloc_lines, (size_t bytes), (bytes))
WRAPPED(hf_alloc_huge, (void), ())

void __real_hf_free(void *memory);
void __wrap_hf_free(void *memory);
void __wrap_hf_free(void *memory)
{
    enter();
    __real_hf_free(memory);
    leave();
}

/* ---- Threads. ---- */

void hf_thread_fail_after(uint64_t count)
{
    set(&starts_left, count);
}

void hf_thread_fail_never(void)
{
    hf_thread_fail_after(UINT64_MAX);
}

static bool start_fails(void)
{
    uint64_t left = get(&starts_left);

    if (left != 0 && left != UINT64_MAX)
        set(&starts_left, left - 1);
    return left == 0;
}

#ifdef HF_STEPPED

typedef enum hf_status start_fn(struct hf_thread *thread, const char *name,
                                void (*body)(void *argument), void *argument);
start_fn __real_hf_thread_start, __wrap_hf_thread_start;

enum hf_status __wrap_hf_thread_start(struct hf_thread *thread,
                                      const char *name,
                                      void (*body)(void *argument),
                                      void *argument)
{
    return start_fails() ? HF_NOMEM
                         : __real_hf_thread_start(thread, name, body, argument);
}

#else

typedef int create_fn(pthread_t *id, const pthread_attr_t *attributes,
                      void *(*body)(void *argument), void *argument);
create_fn __real_pthread_create, __wrap_pthread_create;

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attributes,
                          void *(*body)(void *argument), void *argument)
{
    return start_fails()
               ? EAGAIN
               : __real_pthread_create(id, attributes, body, argument);
}

#endif
