/* merge_sort.c - sorts a million numbers with all processors.
 *
 *   cc -std=c11 -O2 merge_sort.c $(pkg-config --cflags --libs holdfast)
 *
 * Merge sort cuts an array in two, sorts both halves and merges them. The two
 * halves have nothing to do with each other, so one of them is forked: if a
 * thread is idle it takes it, else the join below calls it like a function.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/clock.h>
#include <holdfast/forkjoin.h>

#define NUMBERS 1000000
#define SERIAL  4096 /* fewer are sorted by one thread: not worth a fork */

struct part {
    int *numbers;
    int *room; /* as much room again, to merge in */
    size_t count;
};

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a;
    int y = *(const int *)b;

    return (x > y) - (x < y);
}

static void merge(int *out, const int *a, const int *a_end, const int *b,
                  const int *b_end)
{
    while (a < a_end && b < b_end)
        *out++ = *b < *a ? *b++ : *a++;
    while (a < a_end)
        *out++ = *a++;
    while (b < b_end)
        *out++ = *b++;
}

static void sort(struct hf_forkjoin_worker *worker, void *arg)
{
    struct part *part = arg;
    size_t half = part->count / 2;

    if (part->count <= SERIAL) {
        qsort(part->numbers, part->count, sizeof(int), compare);
        return;
    }
    struct part low = {part->numbers, part->room, half};
    struct part high = {part->numbers + half, part->room + half,
                        part->count - half};
    struct hf_fork fork;

    hf_fork(worker, &fork, sort, &high); /* somebody else may do it ... */
    sort(worker, &low);
    hf_join(worker, &fork); /* ... and now it is done */

    merge(part->room, low.numbers, low.numbers + low.count, high.numbers,
          high.numbers + high.count);
    memcpy(part->numbers, part->room, part->count * sizeof(int));
}

int main(void)
{
    struct part all = {malloc(NUMBERS * sizeof(int)),
                       malloc(NUMBERS * sizeof(int)), NUMBERS};
    struct hf_forkjoin *forkjoin;
    unsigned number = 1;
    int wrong = 0;

    if (!all.numbers || !all.room || hf_forkjoin_open(&forkjoin, NULL))
        return 1;
    for (size_t i = 0; i < NUMBERS; i++) {
        number = number * 1664525 + 1013904223; /* looks random */
        all.numbers[i] = (int)(number >> 8);
    }

    uint64_t start_ns = hf_clock_now_ns(hf_clock_system());
    if (hf_forkjoin_run(forkjoin, sort, &all)) /* returns when it is sorted */
        return 1;
    uint64_t took_ns = hf_clock_now_ns(hf_clock_system()) - start_ns;

    for (size_t i = 1; i < NUMBERS; i++)
        wrong += all.numbers[i - 1] > all.numbers[i];
    struct hf_forkjoin_stats stats;
    hf_forkjoin_stats(forkjoin, &stats);
    printf("%d numbers sorted by %u threads in %.1f ms, %d out of order; "
           "%llu forks, %llu by another thread\n",
           NUMBERS, stats.threads, (double)took_ns / 1e6, wrong,
           (unsigned long long)stats.forks, (unsigned long long)stats.steals);
    hf_forkjoin_close(forkjoin);
    free(all.numbers);
    free(all.room);
    return wrong != 0;
}
