/* scheduler.c - the scheduler itself: it repeats, and it finds what is wrong.
 *
 * Toys with a known fault, each beside one without: the first must be found
 * within so many seeds, the second must pass them all.
 */
#include "support/schedule.h"

#include "base/atomic.h"
#include "base/futex.h"
#include "base/thread.h"
#include "support/test.h"

#define SEEDS 10000

static struct {
    struct hf_atomic_u32 words[8];
    struct hf_atomic_u64 wide;
    uint32_t plain;
    uint32_t seen[4];
    bool correct; /* which of the two variants */
} toy;

static void toy_clear(void *context, uint64_t seed)
{
    bool correct = toy.correct;

    (void)context;
    (void)seed;
    memset(&toy, 0, sizeof toy);
    toy.correct = correct;
}

static enum schedule_result try_both(struct schedule_case *c, bool correct,
                                     uint64_t *seed)
{
    toy.correct = correct;
    c->setup = c->setup != NULL ? c->setup : toy_clear;
    return schedule_try(c, 1, SEEDS, seed);
}

/* The faulty toy gives `fault` within `most` seeds; the correct one passes. */
static void check_toy(struct schedule_case *c, enum schedule_result fault,
                      uint64_t most)
{
    uint64_t seed = 0;

    CHECK_EQ(try_both(c, true, NULL), SCHEDULE_OK);
    CHECK_EQ(try_both(c, false, &seed), fault);
    printf("%s: found by seed %llu: %s\n", c->name, (unsigned long long)seed,
           schedule_last()->text);
    CHECK(seed <= most);
    /* It is found again, alone. */
    struct schedule_facts facts = *schedule_last();
    CHECK_EQ(schedule_try(c, seed, 1, NULL), fault);
    CHECK_EQ(schedule_last()->trace, facts.trace);
    CHECK_EQ(schedule_last()->steps, facts.steps);
}

/* ---- A counter that loses updates. ---- */

static void count_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    for (int i = 0; i < 3; i++) {
        if (toy.correct) {
            hf_u32_add(&toy.words[0], 1, __ATOMIC_RELAXED);
        } else {
            uint32_t value = hf_u32_load(&toy.words[0], __ATOMIC_RELAXED);
            hf_u32_store(&toy.words[0], value + 1, __ATOMIC_RELAXED);
        }
    }
}

static bool count_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%u of 9", toy.words[0].value);
    return toy.words[0].value == 9;
}

TEST(a_lost_update_is_found)
{
    struct schedule_case c = {.name = "counter",
                              .fibers = 3,
                              .body = count_body,
                              .check = count_check};
    check_toy(&c, SCHEDULE_WRONG, 10);
}

/* ---- Dekker: a store that must come before a load. ---- */

static void dekker_body(void *context, unsigned fiber)
{
    int store = toy.correct ? __ATOMIC_SEQ_CST : __ATOMIC_RELEASE;
    int load = toy.correct ? __ATOMIC_SEQ_CST : __ATOMIC_ACQUIRE;

    (void)context;
    hf_u32_store(&toy.words[fiber], 1, store);
    toy.seen[fiber] = hf_u32_load(&toy.words[1 - fiber], load);
}

static bool dekker_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "seen %u and %u", toy.seen[0], toy.seen[1]);
    return toy.seen[0] != 0 || toy.seen[1] != 0;
}

TEST(a_store_that_comes_after_a_later_load_is_found)
{
    struct schedule_case c = {.name = "dekker",
                              .fibers = 2,
                              .body = dekker_body,
                              .check = dekker_check};
    check_toy(&c, SCHEDULE_WRONG, 100);
}

/* Peterson's lock: whoever holds it changes a plain word. */
static void peterson_body(void *context, unsigned fiber)
{
    int store = toy.correct ? __ATOMIC_SEQ_CST : __ATOMIC_RELEASE;
    int load = toy.correct ? __ATOMIC_SEQ_CST : __ATOMIC_ACQUIRE;
    struct hf_atomic_u32 *wants = toy.words;
    struct hf_atomic_u32 *turn = &toy.words[2];
    struct hf_atomic_u32 *inside = &toy.words[3];

    (void)context;
    for (int i = 0; i < 2; i++) {
        hf_u32_store(&wants[fiber], 1, store);
        hf_u32_store(turn, 1 - fiber, store);
        while (hf_u32_load(&wants[1 - fiber], load) != 0 &&
               hf_u32_load(turn, load) == 1 - fiber)
            hf_thread_pause();
        if (hf_u32_add(inside, 1, __ATOMIC_RELAXED) != 0)
            schedule_wrong("the other is inside as well");
        if (toy.correct)
            toy.plain++; /* a race would be reported */
        hf_u32_sub(inside, 1, __ATOMIC_RELAXED);
        hf_u32_store(&wants[fiber], 0, __ATOMIC_RELEASE);
    }
}

TEST(two_in_petersons_lock_are_found)
{
    struct schedule_case c = {
        .name = "peterson", .fibers = 2, .body = peterson_body};
    check_toy(&c, SCHEDULE_WRONG, 200);
}

/* Stores of one fiber are seen in their order, however late. */
static void order_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0) {
        for (uint32_t i = 1; i <= 10; i++) {
            hf_u32_store(&toy.words[0], i, __ATOMIC_RELAXED);
            hf_u32_store(&toy.words[1], i, __ATOMIC_RELEASE);
            if (hf_u32_load(&toy.words[0], __ATOMIC_RELAXED) != i)
                schedule_wrong("an own store is not seen");
        }
        hf_u64_store(&toy.wide, UINT64_C(5) << 32 | 7, __ATOMIC_RELAXED);
        uint32_t *half = (uint32_t *)(void *)&toy.wide.value + 1;
        if (step_load(half, 4, __ATOMIC_RELAXED) != 5)
            schedule_wrong("half of an own store is not seen");
        return;
    }
    for (int i = 0; i < 10; i++) {
        uint32_t second = hf_u32_load(&toy.words[1], __ATOMIC_ACQUIRE);
        uint32_t first = hf_u32_load(&toy.words[0], __ATOMIC_RELAXED);
        if (first < second)
            schedule_wrong("%u seen before %u", second, first);
    }
}

TEST(stores_of_a_fiber_keep_their_order)
{
    struct schedule_case c = {
        .name = "order", .fibers = 3, .setup = toy_clear, .body = order_body};
    schedule_check(&c);
}

/* ---- Sleep and wake. ---- */

/* The faulty one looks at the flag, then sleeps whatever happened between. */
static void sleep_body(void *context, unsigned fiber)
{
    struct hf_atomic_u32 *flag = &toy.words[0];
    struct hf_atomic_u32 *bell = &toy.words[1];

    (void)context;
    if (fiber == 0) {
        hf_u32_store(flag, 1, __ATOMIC_SEQ_CST);
        if (toy.correct)
            hf_u32_add(bell, 1, __ATOMIC_SEQ_CST);
        hf_futex_wake(&bell->value, UINT32_MAX);
        return;
    }
    for (;;) {
        uint32_t rung = hf_u32_load(bell, __ATOMIC_SEQ_CST);
        if (hf_u32_load(flag, __ATOMIC_SEQ_CST) != 0)
            return;
        hf_futex_wait(&bell->value, rung, hf_clock_system(), HF_FOREVER);
    }
}

TEST(a_lost_wake_up_is_a_deadlock)
{
    struct schedule_case c = {.name = "bell", .fibers = 3, .body = sleep_body};
    check_toy(&c, SCHEDULE_DEADLOCK, 100);
    CHECK(strstr(schedule_last()->text, "sleeps since step") != NULL);
}

/* The flag is set without seq_cst: it may still be in the buffer when the
 * sleepers are counted. */
static void counted_body(void *context, unsigned fiber)
{
    int store = toy.correct ? __ATOMIC_SEQ_CST : __ATOMIC_RELEASE;
    struct hf_atomic_u32 *flag = &toy.words[0];
    struct hf_atomic_u32 *sleepers = &toy.words[1];

    (void)context;
    if (fiber == 0) {
        hf_u32_store(flag, 1, store);
        if (hf_u32_load(sleepers, __ATOMIC_SEQ_CST) != 0)
            hf_futex_wake(&flag->value, UINT32_MAX);
        return;
    }
    hf_u32_add(sleepers, 1, __ATOMIC_SEQ_CST);
    while (hf_u32_load(flag, __ATOMIC_SEQ_CST) == 0)
        hf_futex_wait(&flag->value, 0, hf_clock_system(), HF_FOREVER);
}

TEST(a_wake_up_that_a_late_store_loses_is_a_deadlock)
{
    struct schedule_case c = {
        .name = "counted sleepers", .fibers = 2, .body = counted_body};
    check_toy(&c, SCHEDULE_DEADLOCK, 200);
}

/* One wakes one of three; the others must come back by their deadlines. */
static void deadline_body(void *context, unsigned fiber)
{
    struct hf_atomic_u32 *word = &toy.words[0];
    const struct hf_clock *clock = hf_clock_system();
    uint64_t until_ns = hf_clock_now_ns(clock) + 1000000;

    (void)context;
    if (fiber == 0) {
        hf_u32_add(word, 1, __ATOMIC_SEQ_CST);
        hf_futex_wake(&word->value, 1);
        return;
    }
    hf_futex_wait(&word->value, 0, clock, until_ns);
    if (hf_clock_now_ns(clock) >= until_ns)
        hf_u32_add(&toy.words[1], 1, __ATOMIC_RELAXED);
    else
        hf_u32_add(&toy.words[2], 1, __ATOMIC_RELAXED);
}

TEST(some_time_out_and_some_are_woken)
{
    struct schedule_case c = {.name = "deadlines",
                              .fibers = 4,
                              .setup = toy_clear,
                              .body = deadline_body};
    unsigned late[4] = {0};

    for (uint64_t seed = 1; seed <= 2000; seed++) {
        CHECK_EQ(schedule_try(&c, seed, 1, NULL), SCHEDULE_OK);
        CHECK_EQ(toy.words[1].value + toy.words[2].value, 3);
        late[toy.words[1].value]++;
    }
    printf("timed out: none %u, one %u, two %u, three %u\n", late[0], late[1],
           late[2], late[3]);
    for (int i = 0; i < 4; i++)
        CHECK(late[i] > 0);
}

/* ---- A stack of indexes, with and without a tag against reuse. ---- */

#define NODES 3 /* index + 1; 0 is none */

static bool stack_pop(uint32_t *node)
{
    uint64_t head = hf_u64_load(&toy.wide, __ATOMIC_ACQUIRE);

    for (;;) {
        uint32_t first = (uint32_t)head;
        if (first == 0)
            return false;
        uint64_t next = hf_u32_load(&toy.words[first], __ATOMIC_RELAXED);
        uint64_t tag = toy.correct ? (head >> 32) + 1 : 0;
        if (hf_u64_cas(&toy.wide, &head, tag << 32 | next, __ATOMIC_ACQUIRE)) {
            *node = first;
            return true;
        }
    }
}

static void stack_push(uint32_t node)
{
    uint64_t head = hf_u64_load(&toy.wide, __ATOMIC_RELAXED);

    do {
        hf_u32_store(&toy.words[node], (uint32_t)head, __ATOMIC_RELAXED);
    } while (!hf_u64_cas(&toy.wide, &head, (head >> 32) << 32 | node,
                         __ATOMIC_RELEASE));
}

static void stack_setup(void *context, uint64_t seed)
{
    toy_clear(context, seed);
    for (uint32_t node = 1; node <= NODES; node++)
        stack_push(node);
}

/* Takes two, gives the first back. */
static void stack_body(void *context, unsigned fiber)
{
    uint32_t mine[2] = {0, 0};

    (void)context;
    (void)fiber;
    for (int i = 0; i < 2; i++) {
        bool first = stack_pop(&mine[0]);
        bool second = stack_pop(&mine[1]);
        if (first)
            stack_push(mine[0]);
        if (second)
            stack_push(mine[1]);
    }
}

static bool stack_check(void *context, FILE *explain)
{
    unsigned found = 0;
    uint32_t node = (uint32_t)toy.wide.value;

    (void)context;
    for (; node != 0 && found <= NODES; node = toy.words[node].value)
        found++;
    fprintf(explain, "%u nodes of %d", found, NODES);
    return found == NODES;
}

TEST(aba_is_found)
{
    struct schedule_case c = {.name = "stack",
                              .fibers = 2,
                              .setup = stack_setup,
                              .body = stack_body,
                              .check = stack_check};
    check_toy(&c, SCHEDULE_WRONG, 1000);
}

/* ---- Spinning, and what ends a schedule. ---- */

/* Waits by spinning; the faulty one for what never comes. */
static void spin_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0 && toy.correct)
        hf_u32_store(&toy.words[0], 1, __ATOMIC_RELEASE);
    if (fiber == 1)
        while (hf_u32_load(&toy.words[0], __ATOMIC_ACQUIRE) == 0)
            hf_thread_pause();
    if (fiber == 2) /* and without a pause */
        while (hf_u32_load(&toy.words[0], __ATOMIC_ACQUIRE) == 0)
            continue;
}

TEST(who_spins_starves_nobody_and_for_ever_is_a_livelock)
{
    struct schedule_case c = {
        .name = "spin", .fibers = 3, .body = spin_body, .steps_max = 3000};
    check_toy(&c, SCHEDULE_LIVELOCK, 1);
}

/* Waits by spinning until a time; alone in the end. */
static void spin_until_body(void *context, unsigned fiber)
{
    (void)context;
    while (schedule_now_ns() < SCHEDULE_START_NS + fiber * 1000000)
        hf_thread_pause();
}

TEST(time_passes_for_those_who_spin)
{
    struct schedule_case c = {
        .name = "spin until", .fibers = 3, .body = spin_until_body};
    schedule_check(&c);
}

/* ---- The same seed, the same schedule. ---- */

static void mixed_body(void *context, unsigned fiber)
{
    (void)context;
    for (int i = 0; i < 5; i++) {
        uint32_t which = (uint32_t)schedule_random(4);
        hf_u32_store(&toy.words[which], fiber, __ATOMIC_RELEASE);
        (void)hf_u32_load(&toy.words[which ^ 1], __ATOMIC_ACQUIRE);
        hf_futex_wait(&toy.words[which].value, fiber, hf_clock_system(),
                      schedule_now_ns() + schedule_random(500));
        hf_u32_add(&toy.words[5], which, __ATOMIC_SEQ_CST);
        hf_futex_wake(&toy.words[which].value, 1);
    }
}

TEST(a_seed_gives_one_schedule)
{
    struct schedule_case c = {
        .name = "mixed", .fibers = 4, .setup = toy_clear, .body = mixed_body};
    uint64_t different = 0;
    uint64_t before = 0;

    for (uint64_t seed = 1; seed <= 500; seed++) {
        CHECK_EQ(schedule_try(&c, seed, 1, NULL), SCHEDULE_OK);
        struct schedule_facts facts = *schedule_last();
        uint32_t sum = toy.words[5].value;
        CHECK_EQ(schedule_try(&c, seed, 1, NULL), SCHEDULE_OK);
        CHECK_EQ(schedule_last()->trace, facts.trace);
        CHECK_EQ(schedule_last()->steps, facts.steps);
        CHECK_EQ(schedule_last()->switches, facts.switches);
        CHECK_EQ(toy.words[5].value, sum);
        different += facts.trace != before;
        before = facts.trace;
    }
    CHECK_EQ(different, 500);
}

/* ---- Who a fiber is. ---- */

static struct hf_atomic_u32 exits; /* a bit per slot whose thread ended */

static void slot_exit(uint32_t slot)
{
    hf_u32_or(&exits, UINT32_C(1) << slot, __ATOMIC_RELAXED);
}

static void slot_body(void *context, unsigned fiber)
{
    (void)context;
    if (hf_thread_slot() != fiber + 1)
        schedule_wrong("slot %u", hf_thread_slot());
    hf_thread_yield();
    if (hf_thread_slot() != fiber + 1)
        schedule_wrong("slot %u", hf_thread_slot());
}

static void slot_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    exits.value = 0;
}

static bool slot_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "exits %x, outside %u", exits.value, hf_thread_slot());
    return exits.value == 0x1fffe && hf_thread_slot() == 0;
}

TEST(each_fiber_has_its_slot_and_its_end)
{
    struct schedule_case c = {.name = "slots",
                              .fibers = SCHEDULE_FIBERS_MAX,
                              .setup = slot_setup,
                              .body = slot_body,
                              .check = slot_check};
    hf_thread_at_exit(slot_exit);
    schedule_check(&c);
}

/* ---- Threads that fibers start. ---- */

struct family {
    unsigned sum; /* plain: joining orders it */
    struct hf_atomic_u32 shared;
};

static void child_body(void *argument)
{
    struct family *family = argument;
    hf_u32_add(&family->shared, 1, __ATOMIC_RELAXED);
}

static void parent_body(void *context, unsigned fiber)
{
    struct family *family = context;
    struct hf_thread children[2];

    (void)fiber;
    for (int round = 0; round < 2; round++) { /* slots are used again */
        for (int i = 0; i < 2; i++)
            (void)hf_thread_start(&children[i], "child", child_body, family);
        for (int i = 0; i < 2; i++)
            hf_thread_join(&children[i]);
        family->sum += hf_u32_load(&family->shared, __ATOMIC_RELAXED);
    }
}

static void family_setup(void *context, uint64_t seed)
{
    (void)seed;
    *(struct family *)context = (struct family){0};
}

static bool family_check(void *context, FILE *explain)
{
    struct family *family = context;
    fprintf(explain, "sum %u", family->sum);
    return family->sum == 2 + 4;
}

TEST(fibers_start_and_join_threads)
{
    struct family family;
    struct schedule_case c = {.name = "family",
                              .fibers = 1,
                              .setup = family_setup,
                              .body = parent_body,
                              .check = family_check,
                              .context = &family};
    schedule_check(&c);
}
