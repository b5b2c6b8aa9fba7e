/* thread.c - slots from a bitmap, given back by a destructor of the thread. */
#include "base/thread.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "base/atomic.h"
#include "base/memory.h"

#define HOOKS_MAX 4

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void (*hooks[HOOKS_MAX])(uint32_t slot); /* (m), then for ever */
static int hook_count;                          /* (m) */

void hf_thread_at_exit(void (*hook)(uint32_t slot))
{
    pthread_mutex_lock(&mutex);
    assert(hook_count < HOOKS_MAX);
    hooks[hook_count++] = hook;
    pthread_mutex_unlock(&mutex);
}

void hf_thread_run_exit_hooks(uint32_t slot)
{
    pthread_mutex_lock(&mutex);
    int count = hook_count;
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < count; i++)
        hooks[i](slot);
}

void hf_thread_yield(void)
{
#ifdef HF_STEPPED
    step_yield();
#else
    sched_yield();
#endif
}

unsigned hf_cpu_count(void)
{
    static struct hf_atomic_u32 known;
    /* Relaxed: whoever finds 0 counts again, with the same result. */
    uint32_t count = __atomic_load_n(&known.value, __ATOMIC_RELAXED);

    if (count == 0) {
        cpu_set_t set;
        int found =
            sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
        count = found < 1 ? 1 : (uint32_t)found;
        __atomic_store_n(&known.value, count, __ATOMIC_RELAXED);
    }
    return count;
}

#ifdef HF_STEPPED

enum hf_status hf_thread_start(struct hf_thread *thread, const char *name,
                               void (*body)(void *argument), void *argument)
{
    (void)name;
    thread->id = step_start(body, argument);
    return HF_OK;
}

void hf_thread_join(struct hf_thread *thread)
{
    step_join(thread->id);
}

#else

/* What a new thread is told; it frees this. */
struct start {
    void (*body)(void *argument);
    void *argument;
    char name[16];
};

static void *start_main(void *context)
{
    struct start start = *(struct start *)context;

    hf_free(context);
    if (start.name[0] != '\0')
        (void)pthread_setname_np(pthread_self(), start.name);
    start.body(start.argument);
    return NULL;
}

enum hf_status hf_thread_start(struct hf_thread *thread, const char *name,
                               void (*body)(void *argument), void *argument)
{
    static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE,
                                 SIGILL,  SIGABRT, SIGTRAP};
    sigset_t all;
    sigset_t before;
    struct start *start = hf_alloc(sizeof *start);

    if (start == NULL)
        return HF_NOMEM;
    *start = (struct start){.body = body, .argument = argument};
    snprintf(start->name, sizeof start->name, "%s", name ? name : "");
    sigfillset(&all);
    /* A fault whose signal is blocked ends the process past its handler. */
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread->id, NULL, start_main, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0)
        hf_free(start);
    return failed != 0 ? HF_NOMEM : HF_OK;
}

void hf_thread_join(struct hf_thread *thread)
{
    int state;

    /* Else a cancelled caller would leave it behind. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_join(thread->id, NULL);
    pthread_setcancelstate(state, NULL);
}

_Thread_local uint32_t hf_thread_slot_plus_1;

static uint64_t taken[HF_SLOTS_MAX / 64]; /* (m) bit = slot is in use */
static pthread_key_t key;                 /* its value is the slot + 1 */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct hf_atomic_u32 keyed; /* (a) there is a key */

static void slot_give(void *value)
{
    uint32_t slot = (uint32_t)((uintptr_t)value - 1);

    hf_thread_run_exit_hooks(slot);
    hf_thread_slot_plus_1 = 0;
    pthread_mutex_lock(&mutex);
    taken[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    pthread_mutex_unlock(&mutex);
}

static void make_key(void)
{
    if (pthread_key_create(&key, slot_give) != 0) {
        fprintf(stderr, "holdfast: no thread key can be had\n");
        abort();
    }
    hf_u32_store(&keyed, 1, __ATOMIC_SEQ_CST);
}

/* When a plugin with this code is unloaded, threads that have used it go on,
 * and must not call slot_give() at their end. This also runs when the process
 * exits: threads that still run then keep their slots. */
__attribute__((destructor)) static void delete_key(void)
{
    if (hf_u32_swap(&keyed, 0, __ATOMIC_SEQ_CST) != 0)
        pthread_key_delete(key);
}

uint32_t hf_thread_slot_take(void)
{
    uint32_t slot = 0;

    pthread_once(&once, make_key);
    pthread_mutex_lock(&mutex);
    while (slot < HF_SLOTS_MAX && taken[slot / 64] >> slot % 64 & 1)
        slot++;
    if (slot < HF_SLOTS_MAX)
        taken[slot / 64] |= UINT64_C(1) << slot % 64;
    pthread_mutex_unlock(&mutex);
    bool noted = hf_u32_load(&keyed, __ATOMIC_SEQ_CST) == 0 ||
                 pthread_setspecific(key, (void *)(uintptr_t)(slot + 1)) == 0 ||
                 hf_u32_load(&keyed, __ATOMIC_SEQ_CST) == 0;
    if (slot == HF_SLOTS_MAX || !noted) {
        fprintf(stderr, "holdfast: more than %u threads\n", HF_SLOTS_MAX);
        abort();
    }
    hf_thread_slot_plus_1 = slot + 1;
    return slot;
}

uint64_t hf_thread_number(void)
{
    static struct hf_atomic_u64 last;     /* (a) */
    static _Thread_local uint64_t number; /* 0: none yet */

    /* Relaxed: that it is unique is all. */
    if (number == 0)
        number = hf_u64_add(&last, 1, __ATOMIC_RELAXED) + 1;
    return number;
}

#endif
