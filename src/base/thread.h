/* thread.h - who the running thread is, and what it may do while it waits.
 *
 * Every thread that asks has a slot: a small number that no other living
 * thread has, given back when the thread ends and then given to another.
 * Structures keep what belongs to a thread in an array by slot.
 *
 * Threads: safe from any thread.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/step.h"
#include "holdfast/status.h"

/* Slots are below this. More threads than that at a time cannot be: the
 * process is ended with a message. */
#define HF_SLOTS_MAX 65536u

/* A thread that was started and is to be joined. */
struct hf_thread {
#ifdef HF_STEPPED
    uint32_t id;
#else
    pthread_t id;
#endif
};

/* Runs body(argument) in a thread that has all signals but those of faults
 * blocked, so that they go to threads of the user's. The name is cut to 15
 * bytes; NULL: none. HF_NOMEM: the system has no room for another thread. */
enum hf_status hf_thread_start(struct hf_thread *thread, const char *name,
                               void (*body)(void *argument), void *argument);
/* Waits until it has ended; once, and not by itself. */
void hf_thread_join(struct hf_thread *thread);

#ifdef HF_STEPPED

static inline uint32_t hf_thread_slot(void)
{
    return step_slot();
}

static inline uint64_t hf_thread_number(void)
{
    return step_slot();
}

static inline void hf_thread_pause(void)
{
    step_yield();
}

#else

/* 1 + the slot of this thread, 0 before it has one. */
extern _Thread_local uint32_t hf_thread_slot_plus_1;
uint32_t hf_thread_slot_take(void);

static inline uint32_t hf_thread_slot(void)
{
    uint32_t plus_1 = hf_thread_slot_plus_1;
    return __builtin_expect(plus_1 != 0, 1) ? plus_1 - 1
                                            : hf_thread_slot_take();
}

/* From 1 on; no other thread of this process has had the same. */
uint64_t hf_thread_number(void);

/* Tells the processor that this is a loop that waits. */
static inline void hf_thread_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif

/* Gives the processor to another thread. */
void hf_thread_yield(void);

/* How many processors this process may run on; asked once. */
unsigned hf_cpu_count(void);

/* How often to look before going to sleep: `most` with several processors; not
 * at all with one, where nobody can change anything meanwhile. Once under the
 * tests' scheduler, so that sleeping is what it tries. */
static inline int hf_thread_spins(int most)
{
#ifdef HF_STEPPED
    return most > 0;
#else
    return hf_cpu_count() > 1 ? most : 0;
#endif
}

/* Calls `hook(slot)` in every thread that has a slot and ends, before the slot
 * is given to another. At most 4 hooks; they stay for ever. */
void hf_thread_at_exit(void (*hook)(uint32_t slot));
/* What the end of a thread calls; the tests' scheduler does so for fibers. */
void hf_thread_run_exit_hooks(uint32_t slot);

#endif
