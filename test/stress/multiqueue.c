/* multiqueue.c - real threads at the classes of a queue.
 *
 * tests: also under sanitizers
 *
 * More threads than processors, so that the system stops them at any place.
 * Whoever is forgotten leaves the run hanging, and it is stopped as failed.
 */
#include "holdfast/multiqueue.h"

#include "base/atomic.h"
#include "base/random.h"
#include "support/test.h"
#include "support/threads.h"

static uint64_t scaled(uint64_t count)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && *san != '\0' ? count / 8 : count;
}

static struct {
    struct hf_multiqueue *queue;
    struct hf_atomic_u64 by_class[3];
    struct hf_atomic_u64 takes;
    struct hf_atomic_u64 errors;
    uint64_t takes_max;
} test;

static void expect(bool condition)
{
    if (!condition)
        hf_u64_add(&test.errors, 1, __ATOMIC_RELAXED);
}

static void begin(const struct hf_multiqueue_opts *opts)
{
    memset(&test, 0, sizeof test);
    CHECK_EQ(hf_multiqueue_open(&test.queue, opts), HF_OK);
}

static void end(void)
{
    struct hf_multiqueue_stats stats;

    hf_multiqueue_stats(test.queue, &stats);
    for (uint32_t i = 0; i < stats.classes; i++) {
        const struct hf_multiqueue_class_stats *one = &stats.by_class[i];
        CHECK_EQ(one->depth,
                 one->put + one->promoted - one->raised - one->taken);
    }
    hf_multiqueue_close(test.queue);
    CHECK_EQ(test.errors.value, 0);
}

/* ---- Shares under saturation. ---- */

#define TAKERS 8

static void share_body(void *context, int index)
{
    (void)context;
    (void)index;
    while (hf_u64_add(&test.takes, 1, __ATOMIC_RELAXED) < test.takes_max) {
        uint32_t from = 0;
        void *item = NULL;
        expect(hf_multiqueue_take_from(test.queue, HF_MULTIQUEUE_NO_HOME, &item,
                                       HF_NOW, &from) == HF_OK);
        hf_u64_add(&test.by_class[from], 1, __ATOMIC_RELAXED);
        /* It goes back: no class is ever without work. */
        expect(hf_multiqueue_put(test.queue, from, item, HF_NOW, NULL) ==
               HF_OK);
    }
}

TEST(shares_are_within_one_percent_of_70_20_10)
{
    static const uint64_t shares[3] = {70, 20, 10};
    static char item[] = "item";

    begin(NULL);
    test.takes_max = scaled(2000000);
    for (uint32_t i = 0; i < 3; i++)
        for (int j = 0; j < TAKERS + 1; j++)
            CHECK_EQ(hf_multiqueue_put(test.queue, i, item, HF_NOW, NULL),
                     HF_OK);
    test_threads(TAKERS, share_body, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t expected = test.takes_max * shares[i] / 100;
        uint64_t found = test.by_class[i].value;
        printf("class %u: %.4f %% of %llu takes\n", i,
               100.0 * (double)found / (double)test.takes_max,
               (unsigned long long)test.takes_max);
        CHECK(found * 100 >= expected * 99 && found * 100 <= expected * 101);
    }
    end();
}

/* ---- Each item once, in its producer's order. ---- */

#define PRODUCERS 6
#define CONSUMERS 4

struct item {
    uint32_t producer;
    uint32_t number; /* of its producer and class */
    uint32_t class_index;
    struct hf_atomic_u32 taken;
};

static struct item *items[PRODUCERS];
static uint32_t item_count;
static struct hf_atomic_u32 producing;
static uint64_t accepted[PRODUCERS];
static uint64_t consumed[CONSUMERS];

static void produce(int index)
{
    struct hf_random random;
    struct hf_multiqueue_ticket ticket;

    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (uint32_t i = 0; i < item_count; i++) {
        struct item *item = &items[index][i];
        bool patient = hf_random_below(&random, 8) != 0;
        item->producer = (uint32_t)index;
        item->number = i;
        item->class_index = (uint32_t)hf_random_below(&random, 3);
        enum hf_status status =
            hf_multiqueue_put(test.queue, item->class_index, item,
                              patient ? HF_FOREVER
                                      : hf_clock_now_ns(hf_clock_system()) +
                                            hf_random_below(&random, 100000),
                              &ticket);
        expect(status == HF_OK || (!patient && status == HF_TIMEOUT));
        accepted[index] += status == HF_OK;
        if (status == HF_OK && hf_random_below(&random, 4) == 0) {
            status = hf_multiqueue_promote(test.queue, &ticket, 0);
            expect(status == HF_OK || status == HF_NOTFOUND);
        }
    }
    /* Release and acquire: the last shuts after all have put. */
    if (hf_u32_sub(&producing, 1, __ATOMIC_ACQ_REL) == 1)
        hf_multiqueue_shutdown(test.queue);
}

static void consume(int index)
{
    uint32_t home = index < 3 ? (uint32_t)index : HF_MULTIQUEUE_NO_HOME;
    enum hf_status status;
    void *taken = NULL;

    while ((status = hf_multiqueue_take_from(test.queue, home, &taken,
                                             HF_FOREVER, NULL)) == HF_OK) {
        struct item *item = taken;
        expect(hf_u32_add(&item->taken, 1, __ATOMIC_RELAXED) == 0);
        consumed[index]++;
    }
    expect(status == HF_CLOSED);
}

static void once_body(void *context, int index)
{
    (void)context;
    if (index < PRODUCERS)
        produce(index);
    else
        consume(index - PRODUCERS);
}

static void check_once(enum hf_multiqueue_overflow overflow)
{
    struct hf_multiqueue_opts opts = {.capacity = 4,
                                      .overflow = overflow,
                                      .age_ns = 50000,
                                      .starve_ns = 100000};
    uint64_t in = 0;
    uint64_t out = 0;

    begin(&opts);
    memset(accepted, 0, sizeof accepted);
    memset(consumed, 0, sizeof consumed);
    producing.value = PRODUCERS;
    item_count = (uint32_t)scaled(40000);
    for (int i = 0; i < PRODUCERS; i++) {
        items[i] = calloc(item_count, sizeof *items[i]);
        CHECK(items[i] != NULL);
    }
    test_threads(PRODUCERS + CONSUMERS, once_body, NULL);
    for (int i = 0; i < PRODUCERS; i++) {
        in += accepted[i];
        free(items[i]);
    }
    for (int i = 0; i < CONSUMERS; i++)
        out += consumed[i];
    CHECK(in > 0);
    CHECK_EQ(in, out);
    CHECK_EQ(hf_multiqueue_size(test.queue), 0);
    end();
}

TEST(what_is_accepted_is_taken_once_when_full_classes_block)
{
    check_once(HF_MULTIQUEUE_BLOCK);
}

TEST(what_is_accepted_is_taken_once_when_full_classes_flow_over)
{
    check_once(HF_MULTIQUEUE_LOWER);
}

/* ---- Order. ---- */

static void order_body(void *context, int index)
{
    uint32_t next[PRODUCERS][3] = {{0}};
    void *taken = NULL;

    (void)context;
    if (index < PRODUCERS) {
        for (uint32_t i = 0; i < item_count; i++) {
            struct item *item = &items[index][i];
            item->producer = (uint32_t)index;
            item->number = i / 3;
            item->class_index = i % 3;
            expect(hf_multiqueue_put(test.queue, i % 3, item, HF_FOREVER,
                                     NULL) == HF_OK);
        }
        if (hf_u32_sub(&producing, 1, __ATOMIC_ACQ_REL) == 1)
            hf_multiqueue_shutdown(test.queue);
        return;
    }
    while (hf_multiqueue_take(test.queue, &taken, HF_FOREVER) == HF_OK) {
        const struct item *item = taken;
        expect(item->number == next[item->producer][item->class_index]++);
        consumed[0]++;
    }
}

TEST(each_class_keeps_its_order)
{
    struct hf_multiqueue_opts opts = {.capacity = 16};

    begin(&opts);
    memset(consumed, 0, sizeof consumed);
    producing.value = PRODUCERS;
    item_count = (uint32_t)scaled(40000);
    for (int i = 0; i < PRODUCERS; i++) {
        items[i] = calloc(item_count, sizeof *items[i]);
        CHECK(items[i] != NULL);
    }
    test_threads(PRODUCERS + 1, order_body, NULL);
    CHECK_EQ(consumed[0], (uint64_t)PRODUCERS * item_count);
    for (int i = 0; i < PRODUCERS; i++)
        free(items[i]);
    end();
}
