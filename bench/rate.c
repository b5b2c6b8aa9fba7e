/* rate.c - what hf_rate_take() costs beside one bare compare-and-swap.
 *
 * Both sides move one shared word forward on every call and never refuse; the
 * time is passed in. Rounds alternate, A B A B ..., so that whatever else the
 * machine does meets both; the middle of the rounds and their spread (the
 * quarter below to the quarter above) are printed, in nanoseconds a call:
 *
 *   rate: threads=1 take_ns=.. cas_ns=.. ratio=.. take_spread=..-.. ...
 *
 * With two threads the word is contended and the figures are noisier.
 */
#include "holdfast/rate.h"

#include <pthread.h>

#include "base/atomic.h"
#include "holdfast/clock.h"

#define ROUNDS      21
#define CALLS       4000000
#define THREADS_MAX 2

/* A cache line each, so that only the word in question is shared. */
static struct {
    _Alignas(128) struct hf_rate rate;
    _Alignas(128) struct hf_atomic_u64 word;
} shared;

static uint64_t refused; /* by hf_rate_take(); stays 0, or the run is void */

static void take_many(void)
{
    uint64_t waits = 0;

    for (uint64_t i = 0; i < CALLS; i++)
        waits |= hf_rate_take(&shared.rate, 1, i);
    if (waits != 0)
        __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED); /* a count only */
}

static void swap_many(void)
{
    for (uint64_t i = 0; i < CALLS; i++) {
        uint64_t seen = hf_u64_load(&shared.word, __ATOMIC_RELAXED);
        while (!hf_u64_cas(&shared.word, &seen, seen + 1, __ATOMIC_RELAXED))
            continue;
    }
}

struct runner {
    pthread_t thread;
    pthread_barrier_t *gate;
    void (*body)(void);
    uint64_t took_ns;
};

static void *runner_main(void *argument)
{
    struct runner *runner = argument;

    pthread_barrier_wait(runner->gate);
    uint64_t start_ns = hf_clock_now_ns(hf_clock_system());
    runner->body();
    runner->took_ns = hf_clock_now_ns(hf_clock_system()) - start_ns;
    return NULL;
}

/* Nanoseconds a call, of the slowest thread. */
static double round_ns(int threads, void (*body)(void))
{
    struct runner runners[THREADS_MAX];
    pthread_barrier_t gate;
    uint64_t worst_ns = 0;

    pthread_barrier_init(&gate, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        runners[i] = (struct runner){.gate = &gate, .body = body};
        if (pthread_create(&runners[i].thread, NULL, runner_main,
                           &runners[i]) != 0)
            abort();
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(runners[i].thread, NULL);
        if (runners[i].took_ns > worst_ns)
            worst_ns = runners[i].took_ns;
    }
    pthread_barrier_destroy(&gate);
    return (double)worst_ns / CALLS;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void sort(double *values)
{
    qsort(values, ROUNDS, sizeof values[0], compare);
}

/* The ratio is the middle of the neighbours' ratios: it suffers least from a
 * machine that is now fast, now slow. */
static void measure(int threads)
{
    const int low = ROUNDS / 4;
    const int middle = ROUNDS / 2;
    const int high = ROUNDS * 3 / 4;
    double take[ROUNDS];
    double cas[ROUNDS];
    double ratio[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        if (hf_rate_init(&shared.rate, UINT32_MAX, 1) != HF_OK)
            abort();
        take[i] = round_ns(threads, take_many);
        cas[i] = round_ns(threads, swap_many);
        ratio[i] = take[i] / cas[i];
    }
    sort(take);
    sort(cas);
    sort(ratio);
    printf("rate: threads=%d take_ns=%.2f cas_ns=%.2f ratio=%.2f "
           "take_spread=%.2f-%.2f cas_spread=%.2f-%.2f\n",
           threads, take[middle], cas[middle], ratio[middle], take[low],
           take[high], cas[low], cas[high]);
}

int main(void)
{
    for (int threads = 1; threads <= THREADS_MAX; threads++)
        measure(threads);
    if (refused != 0)
        fprintf(stderr, "rate: a take was refused; the figures are void\n");
    return refused != 0;
}
