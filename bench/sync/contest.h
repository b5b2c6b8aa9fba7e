/* contest.h - several sides do the same work, in turns, and are timed.
 *
 *   work 1:  open A B C   A B C  A B C  A B C ...   close A B C
 *   work 2:  ...
 *
 * A side is one library's way to do it: ours or a peer's. Its run() is the
 * whole loop of one thread, with the side's calls compiled into it, so that
 * nobody pays for an indirect call and what is inline stays inline. The loops
 * are written once, as always-inline functions that take the side's calls as
 * arguments. Here threads are started, released together, timed and checked.
 *
 * The figure is nanoseconds an operation: from the first thread's start to the
 * last one's end, divided by the operations of all. Before the rounds each
 * side is run until it is known how many operations fill the time of a run.
 *
 *   PROGRAM [--rounds N] [--ms N] [--raw] [WORK...]
 *
 * prints the median, lowest and highest of each side; --raw prints a line
 * `SIDE WORK_ns VALUE` for each run instead. Whoever loses or invents an item
 * ends the program.
 */
#ifndef BENCH_SYNC_CONTEST_H
#define BENCH_SYNC_CONTEST_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONTEST_THREADS_MAX 16
#define CONTEST_SIDES_MAX   10
#define CONTEST_CHUNK       256
#define CONTEST_LINE        128

#define CONTEST_INLINE static inline __attribute__((always_inline, unused))

struct contest_work {
    const char *name; /* the figure is NAME_ns */
    unsigned threads;
    int shape;      /* which loop; the subject's own numbers */
    int mode;       /* and in which manner */
    uint64_t size;  /* capacity, keys, ... */
    uint64_t most;  /* operations of a run at most; 0: any number */
    uint64_t exact; /* operations of each run; 0: as many as fill the time */
    bool fresh;     /* is opened anew for every run */
    bool roam;      /* its threads, and those they start, run on any core */
};

/* What one thread of a run has. The sums must agree at the end. */
struct contest_thread {
    const struct contest_work *work;
    struct contest_run *run;
    void *self; /* what open() returned */
    void *own;  /* enter() may put something of the thread here */
    unsigned index;
    uint64_t total;  /* operations of the whole run */
    uint64_t done;   /* of them, what contest_chunk() gave this thread */
    uint64_t random; /* for contest_random() */
    uint64_t put;    /* the sum of what this thread put */
    uint64_t taken;  /* the sum of what it took */
    uint64_t start_ns;
    uint64_t end_ns;
} __attribute__((aligned(CONTEST_LINE)));

struct contest_side {
    const char *name;
    /* NULL: this side has no such thing, and does not take part. */
    void *(*open)(const struct contest_work *work);
    void (*close)(void *self);
    void (*run)(struct contest_thread *thread);
    /* In the thread, before it starts and after its end; may be NULL. */
    void (*enter)(struct contest_thread *thread);
    void (*leave)(struct contest_thread *thread);
    /* In the first thread when all have ended; may be NULL. */
    void (*check)(struct contest_thread *thread);
};

/* Ends with a NULL side and a work without a name. */
int contest_main(int argc, char **argv, const struct contest_work *works,
                 const struct contest_side *const *sides);

__attribute__((noreturn)) void contest_fail(const char *what);

/* Memory or the end of the program; zeroed, on a line of its own. */
void *contest_alloc(size_t bytes);

/* The next operations for whoever asks: `*count` of them from number `*from`.
 * So the threads of a run end together. false: all are done,
 * or the run takes far too long. */
bool contest_chunk(struct contest_thread *thread, uint64_t *from,
                   uint64_t *count);

CONTEST_INLINE uint64_t contest_random(struct contest_thread *thread)
{
    uint64_t x = thread->random;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    thread->random = x;
    return x;
}

/* When there is nothing to take, or no room: the same for all sides. */
CONTEST_INLINE void contest_wait(unsigned *spins)
{
    if (++*spins % 64 == 0) {
        sched_yield();
        return;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#ifdef __cplusplus
}
#endif

#endif
