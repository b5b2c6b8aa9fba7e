/* fiber.h - stacks that one thread changes between, for schedule.c and the
 * simulation of the server.
 *
 * A fiber runs `main` on a stack of its own until it is switched away from,
 * and goes on there when it is switched to. `main` never returns. The fiber
 * at hand at the start, the thread itself, is prepared by fiber_outside.
 *
 * Sanitizers are told of every change. To a thread sanitizer a fiber is a
 * thread, but not because its stack is in use: fiber_become says who we are.
 * It is inlined, and the function that calls it must end as who it began; what
 * is kept on the stack in between must not be seen by sanitizers, that is, its
 * address must not be taken.
 */
#ifndef TEST_SUPPORT_FIBER_H
#define TEST_SUPPORT_FIBER_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/atomic.h"

#ifdef __has_feature
#define FIBER_HAS(feature) __has_feature(feature)
#else
#define FIBER_HAS(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || FIBER_HAS(thread_sanitizer)
#define FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__SANITIZE_ADDRESS__) || FIBER_HAS(address_sanitizer)
#define FIBER_ASAN
#include <sanitizer/asan_interface.h>
#endif

#ifndef FIBER_STACK_BYTES
#define FIBER_STACK_BYTES ((size_t)128 << 10)
#endif
#define FIBER_GUARD_BYTES ((size_t)4096)

struct fiber {
    char *stack; /* kept when the fiber is prepared anew */
    size_t stack_bytes;
    void *sp;        /* where it was left */
    void *sanitizer; /* its name to a thread sanitizer */
    void *fake;      /* what an address sanitizer keeps of it */
#ifndef __x86_64__
    ucontext_t context;
#endif
};

/* From here on we are the fiber of that name to a thread sanitizer. `ordered`:
 * and all that was done before happened before what it does next. */
HF_INLINE void fiber_become_named(void *sanitizer, bool ordered)
{
#ifdef FIBER_TSAN
    if (sanitizer != NULL) /* there are fibers at all */
        __tsan_switch_to_fiber(sanitizer,
                               ordered ? 0 : __tsan_switch_to_fiber_no_sync);
#else
    (void)sanitizer;
    (void)ordered;
#endif
}

HF_INLINE void fiber_become(struct fiber *fiber, bool ordered)
{
    fiber_become_named(fiber->sanitizer, ordered);
}

#ifdef __x86_64__

/* Pushes what a function must keep, takes the other stack and pops the same.
 * Much faster than swapcontext, which asks the kernel for a signal mask. */
void fiber_swap(void **sp, void *other);
__asm__(".text\n"
        ".globl fiber_swap\n"
        ".type fiber_swap, @function\n"
        "fiber_swap:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n"
        "    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n"
        "    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size fiber_swap, .-fiber_swap\n");

#endif

/* Once in `main`, before anything else. */
HF_INLINE void fiber_arrive(void *fake)
{
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#else
    (void)fake;
#endif
}

HF_INLINE void fiber_switch(struct fiber *from, struct fiber *to)
{
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(&from->fake, to->stack, to->stack_bytes);
#endif
#ifdef __x86_64__
    fiber_swap(&from->sp, to->sp);
#else
    swapcontext(&from->context, &to->context);
#endif
    fiber_arrive(from->fake);
}

static inline void fiber_outside(struct fiber *fiber)
{
    memset(fiber, 0, sizeof *fiber);
#ifdef FIBER_ASAN
    pthread_attr_t attributes;
    void *stack = NULL;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &stack, &fiber->stack_bytes);
    pthread_attr_destroy(&attributes);
    fiber->stack = stack;
#endif
#ifdef FIBER_TSAN
    fiber->sanitizer = __tsan_get_current_fiber();
#endif
}

static inline void fiber_stack(struct fiber *fiber)
{
    char *memory =
        mmap(NULL, FIBER_GUARD_BYTES + FIBER_STACK_BYTES,
             PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED ||
        mprotect(memory, FIBER_GUARD_BYTES, PROT_NONE) != 0) {
        fprintf(stderr, "schedule: no memory for stacks\n");
        abort();
    }
    fiber->stack = memory + FIBER_GUARD_BYTES;
    fiber->stack_bytes = FIBER_STACK_BYTES;
}

/* To be switched to for the first time, or anew after it was given up. */
static inline void fiber_prepare(struct fiber *fiber, void (*entry)(void))
{
    if (fiber->stack == NULL)
        fiber_stack(fiber);
#ifdef FIBER_ASAN
    __asan_unpoison_memory_region(fiber->stack, fiber->stack_bytes);
#endif
#ifdef FIBER_TSAN
    if (fiber->sanitizer != NULL)
        __tsan_destroy_fiber(fiber->sanitizer);
    fiber->sanitizer = __tsan_create_fiber(0);
#endif
    fiber->fake = NULL;
#ifdef __x86_64__
    /* Six registers, where to go on, and no caller above that. */
    uint64_t *sp = (uint64_t *)(void *)(fiber->stack + fiber->stack_bytes) - 8;
    memset(sp, 0, 8 * sizeof *sp);
    sp[6] = (uint64_t)(uintptr_t)entry;
    fiber->sp = sp;
#else
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = fiber->stack_bytes;
    makecontext(&fiber->context, entry, 0);
#endif
}

static void (*fiber_last_words)(void);

static inline void fiber_died(int signal_number)
{
    fiber_last_words();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* Calls `say` when the process dies: of an assertion, of a stack that was too
 * small, or of a sanitizer's report. Once is enough. */
static inline void fiber_at_death(void (*say)(void))
{
    if (fiber_last_words != NULL)
        return;
    fiber_last_words = say;
    signal(SIGABRT, fiber_died);
#if defined(FIBER_ASAN) || defined(FIBER_TSAN)
    __sanitizer_set_death_callback(say);
#else
    static char stack[16384]; /* the fiber's may be the one that is full */
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = fiber_died,
                               .sa_flags = SA_ONSTACK};
    sigaltstack(&other, NULL);
    sigaction(SIGSEGV, &action, NULL);
#endif
}

#endif
