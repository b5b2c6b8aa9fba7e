/* schedule.c - fibers, who runs next, store buffers, sleep and virtual time.
 *
 * (tidy: long because all of it works on one state, `run`.)
 *
 * The scheduler has no stack of its own: its code runs on that of whoever
 * takes a step. A thread sanitizer is told otherwise. To it the scheduler is
 * always the thread outside: `enter` makes us that thread, `leave` the fiber
 * again, both without an order between the two. So the scheduler's variables
 * are plain ones, and nothing that it does hides a race between fibers. (Both
 * must be inlined: a function must end as the thread that it began as.)
 */
#include "support/schedule.h"

#include <assert.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/random.h"
#include "base/thread.h"
#include "holdfast/clock.h"
#include "support/chooser.h"
#include "support/fiber.h"
#include "support/sleepers.h"
#include "support/stores.h"
#include "support/test.h"

#define SLOTS             (SCHEDULE_FIBERS_MAX + 1) /* 0 is outside */
#define DEFAULT_RUNS      10000
#define DEFAULT_STEPS_MAX 100000

struct runner {
    struct fiber fiber;
    bool begun; /* its stack is in use: it can be resumed, not started */
    struct stores stores;
    void (*body)(void *argument); /* of a thread that a fiber started */
    void *argument;
    uint32_t ended; /* 1 when it has; joiners sleep on it; as `current` */
};

/* Read by fibers as well, so always accessed as an atomic, relaxed. */
static uint32_t current;

static struct runner runners[SLOTS];
static struct {
    const struct schedule_case *test;
    uint64_t seed;
    struct hf_random random;  /* for the scheduler */
    struct hf_random choices; /* for schedule_random */
    struct chooser chooser;
    struct sleepers sleepers;
    bool buffering;
    uint64_t write_odds;  /* a buffered store is written: 1 in so many */
    uint64_t jump_mask;   /* a deadline comes early: 1 in so many, minus 1 */
    bool stirring;        /* sleepers may wake for no reason */
    uint32_t ready;       /* bit per slot: could run */
    uint32_t alive;       /* has not come to its end */
    uint32_t joinable;    /* was started by a fiber and not joined */
    uint32_t used;        /* slots up to this one have been used */
    uint64_t store_count; /* of all buffers */
    uint64_t now_ns;
    uint64_t steps_max;
    bool tracing;
    enum schedule_result result;
    struct schedule_facts facts;
} run = {.now_ns = SCHEDULE_START_NS};

HF_INLINE uint32_t me(void)
{
    return __atomic_load_n(&current, __ATOMIC_RELAXED);
}

HF_INLINE uint32_t bit(uint32_t slot)
{
    return UINT32_C(1) << slot;
}

HF_INLINE void enter(void)
{
    fiber_become(&runners[0].fiber, false);
}

HF_INLINE void leave(void)
{
    fiber_become(&runners[me()].fiber, false);
}

static void resume(uint32_t next)
{
    uint32_t last = me();

    if (next == last)
        return;
    run.facts.switches++;
    __atomic_store_n(&current, next, __ATOMIC_RELAXED);
    fiber_switch(&runners[last].fiber, &runners[next].fiber);
}

/* Leaves all fibers where they stand, for good. The reason is in run.facts. */
__attribute__((noreturn)) static void give_up(enum schedule_result result)
{
    run.result = result;
    runners[me()].begun = false;
    resume(0);
    abort(); /* nobody resumes us */
}

/* ---- Memory. ---- */

/* Does the oldest store of a buffer, as the fiber whose store it is. */
static void write_one(uint32_t slot)
{
    struct stores *stores = &runners[slot].stores;
    void *at = stores->queue[0].at;
    uint64_t value = stores->queue[0].value;
    unsigned bytes = stores->queue[0].bytes;
    int order = stores->queue[0].order;

    if (run.tracing)
        fprintf(stderr, "        fiber %u  wrote  %p\n", slot - 1, at);
    stores_shift(stores);
    run.store_count--;
    fiber_become(&runners[slot].fiber, false);
    store_now(at, bytes, value, order);
    enter();
}

static void write_all(uint32_t slot)
{
    while (runners[slot].stores.count > 0)
        write_one(slot);
}

/* Buffers empty themselves while anybody runs. */
static void write_some(void)
{
    for (uint32_t slot = 1; slot < SLOTS && run.store_count > 0; slot++)
        while (runners[slot].stores.count > 0 &&
               hf_random_below(&run.random, run.write_odds) == 0)
            write_one(slot);
}

/* A late store to a stack would hit whatever lies there by then. */
static bool on_own_stack(const void *at)
{
    uintptr_t stack = (uintptr_t)runners[me()].fiber.stack;

    return (uintptr_t)at - stack < FIBER_STACK_BYTES;
}

/* ---- Sleep and time. ---- */

static void wake(uint32_t slots)
{
    run.sleepers.asleep &= ~slots;
    run.ready |= slots;
}

/* The earliest deadline comes; false if there is none. */
static bool jump(void)
{
    uint64_t first_ns = sleepers_deadline(&run.sleepers);

    if (first_ns == HF_FOREVER)
        return false;
    if (first_ns > run.now_ns)
        run.now_ns = first_ns;
    wake(sleepers_due(&run.sleepers, run.now_ns));
    return true;
}

static void time_pass(void)
{
    uint64_t draw = hf_random_next(&run.random);

    run.now_ns += 1 + (draw & 63);
    if (run.sleepers.asleep == 0)
        return;
    if ((draw >> 6 & run.jump_mask) == 0)
        (void)jump();
    wake(sleepers_due(&run.sleepers, run.now_ns));
}

/* As the fiber: only it surely may read the word that it sleeps on. */
static uint32_t word_of(uint32_t slot, const uint32_t *word)
{
    fiber_become(&runners[slot].fiber, false);
    uint32_t value = __atomic_load_n(word, __ATOMIC_RELAXED);
    enter();
    return value;
}

__attribute__((noreturn)) static void deadlock(void)
{
    char *text = run.facts.text;
    size_t room = sizeof run.facts.text;
    size_t used = (size_t)snprintf(text, room, "deadlock after %llu steps",
                                   (unsigned long long)run.facts.steps);

    for (uint32_t slot = 1; slot < SLOTS && used < room; slot++) {
        const struct sleeper *sleeper = &run.sleepers.by_slot[slot];
        if ((run.alive & bit(slot)) != 0)
            used += (size_t)snprintf(
                text + used, room - used,
                "\n    fiber %u sleeps since step %llu on %p, which is %u "
                "(was %u)",
                slot - 1, (unsigned long long)sleeper->since_step,
                (const void *)sleeper->word, word_of(slot, sleeper->word),
                sleeper->expected);
    }
    give_up(SCHEDULE_DEADLOCK);
}

/* ---- Who runs next. ---- */

static uint32_t choose(bool yielding)
{
    return chooser_next(&run.chooser, run.ready, me(), run.facts.steps,
                        hf_random_next(&run.random), yielding);
}

/* The running fiber sleeps or has ended: who goes on? 0: all have ended. */
static uint32_t next_of_others(void)
{
    if (run.alive == 0)
        return 0;
    if (run.ready == 0 && !jump())
        deadlock();
    return choose(false);
}

extern const char __executable_start;

static void trace(const char *what, const void *at, const void *caller)
{
    run.facts.trace = (run.facts.trace ^ me()) * UINT64_C(0x100000001b3);
    run.facts.trace += run.now_ns;
    if (run.tracing)
        fprintf(stderr, "%6llu  fiber %u  %-6s %-14p from +0x%zx\n",
                (unsigned long long)run.facts.steps, me() - 1, what, at,
                (size_t)((const char *)caller - &__executable_start));
}

/* Before each step of a fiber, as the scheduler. */
static void step(const char *what, const void *at, const void *caller,
                 bool yielding)
{
    if (++run.facts.steps > run.steps_max) {
        snprintf(run.facts.text, sizeof run.facts.text,
                 "livelock: not over after %llu steps",
                 (unsigned long long)run.steps_max);
        give_up(SCHEDULE_LIVELOCK);
    }
    time_pass();
    if (run.store_count > 0)
        write_some();
    resume(choose(yielding));
    trace(what, at, caller);
}

#define CALLER __builtin_return_address(0)

uint64_t step_load(const void *at, unsigned bytes, int order)
{
    if (me() == 0)
        return load_now(at, bytes, order);
    enter();
    step("load", at, CALLER, false);
    const struct store *own = stores_find(&runners[me()].stores, at, bytes);
    bool found = own != NULL && own->at == at && own->bytes == bytes;
    uint64_t value = found ? own->value : 0;
    if (own != NULL && !found)
        write_all(me()); /* a part of what is asked for: let memory have it */
    leave();
    return found ? value : load_now(at, bytes, order);
}

void step_store(void *at, unsigned bytes, uint64_t value, int order)
{
    if (me() == 0) {
        store_now(at, bytes, value, order);
        return;
    }
    enter();
    step("store", at, CALLER, false);
    bool late = run.buffering && order != __ATOMIC_SEQ_CST && !on_own_stack(at);
    if (late) {
        if (runners[me()].stores.count == STORES_MAX)
            write_one(me());
        stores_put(&runners[me()].stores, at, bytes, value, order);
        run.store_count++;
    } else {
        write_all(me());
    }
    leave();
    if (!late)
        store_now(at, bytes, value, order);
}

void step_before_change(void)
{
    if (me() == 0)
        return;
    enter();
    /* Others may see the stores for a while before they see the change. */
    if (runners[me()].stores.count > 0 && hf_random_below(&run.random, 2) == 0)
        write_all(me());
    step("change", NULL, CALLER, false);
    write_all(me());
    leave();
}

void step_before_free(void)
{
    if (me() == 0)
        return;
    enter();
    write_all(me());
    leave();
}

/* Outside there is nobody who could wake us: only time passes. */
static void wait_outside(uint64_t deadline_ns)
{
    if (deadline_ns == HF_FOREVER) {
        fprintf(stderr, "schedule: a wait for ever outside of fibers\n");
        abort();
    }
    if (deadline_ns > run.now_ns)
        run.now_ns = deadline_ns;
}

void step_wait(const uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    if (me() == 0) {
        if (load_now(word, sizeof *word, __ATOMIC_RELAXED) == expected)
            wait_outside(deadline_ns);
        return;
    }
    enter();
    step("wait", word, CALLER, false);
    write_all(me());
    if (word_of(me(), word) == expected && deadline_ns > run.now_ns) {
        struct sleeper *sleeper = sleepers_add(&run.sleepers, me());
        sleeper->word = word;
        sleeper->expected = expected;
        sleeper->deadline_ns = deadline_ns;
        sleeper->stir_ns = HF_FOREVER;
        if (run.stirring && hf_random_below(&run.random, 16) == 0)
            sleeper->stir_ns = run.now_ns + hf_random_below(&run.random, 2000);
        sleeper->since_step = run.facts.steps;
        run.ready &= ~bit(me());
        resume(next_of_others());
        trace("awake", word, CALLER);
    }
    leave();
}

void step_wake(const uint32_t *word, uint32_t count)
{
    if (me() == 0)
        return;
    enter();
    step("wake", word, CALLER, false);
    write_all(me());
    uint32_t sleepers = sleepers_on(&run.sleepers, word);
    for (; sleepers != 0 && count > 0; count--) {
        uint64_t draw = hf_random_next(&run.random) >> 32;
        uint32_t slot = chooser_pick(sleepers, draw);
        sleepers &= ~bit(slot);
        wake(bit(slot));
    }
    leave();
}

/* Whoever waits for time by spinning must see it pass, so a yield takes more of
 * it than a step; and much when nobody else could run. */
void step_yield(void)
{
    if (me() == 0) {
        run.now_ns += 1000;
        return;
    }
    enter();
    bool alone = run.ready == bit(me());
    if (!alone || hf_random_below(&run.random, 4) != 0 || !jump())
        run.now_ns += hf_random_below(&run.random, alone ? 20000 : 2000);
    step("yield", NULL, CALLER, true);
    leave();
}

uint32_t step_slot(void)
{
    return me();
}

uint64_t step_now_ns(void)
{
    enter();
    uint64_t now_ns = run.now_ns;
    leave();
    return now_ns;
}

uint64_t schedule_now_ns(void)
{
    return step_now_ns();
}

/* ---- A schedule from its seed to its end. ---- */

static void fiber_body(uint32_t slot)
{
    if (slot <= run.test->fibers)
        run.test->body(run.test->context, slot - 1);
    else
        runners[slot].body(runners[slot].argument);
}

static void fiber_main(void)
{
    fiber_arrive(NULL);
    for (;;) {
        uint32_t slot = me();
        leave();
        fiber_body(slot);
        hf_thread_run_exit_hooks(slot);
        enter();
        step("end", NULL, NULL, false); /* its last stores may be late too */
        write_all(slot);
        run.ready &= ~bit(slot);
        run.alive &= ~bit(slot);
        __atomic_store_n(&runners[slot].ended, 1, __ATOMIC_RELAXED);
        wake(sleepers_on(&run.sleepers, &runners[slot].ended));
        resume(next_of_others());
    }
}

static void fiber_start(uint32_t slot)
{
    struct runner *runner = &runners[slot];

    if (!runner->begun)
        fiber_prepare(&runner->fiber, fiber_main);
    runner->begun = true;
    runner->stores.count = 0;
    __atomic_store_n(&runner->ended, 0, __ATOMIC_RELAXED);
    run.alive |= bit(slot);
    run.ready |= bit(slot);
    if (run.used < slot)
        run.used = slot;
}

uint32_t step_start(void (*body)(void *argument), void *argument)
{
    uint32_t slot = run.test->fibers + 1;

    if (me() == 0) {
        fprintf(stderr, "schedule: threads are started by fibers only\n");
        abort();
    }
    enter();
    step("start", NULL, CALLER, false);
    write_all(me());
    while (slot < SLOTS && (run.joinable & bit(slot)) != 0)
        slot++;
    if (slot == SLOTS) {
        fprintf(stderr, "schedule: more than %u fibers\n", SCHEDULE_FIBERS_MAX);
        abort();
    }
    fiber_start(slot);
    run.joinable |= bit(slot);
    void *born = runners[slot].fiber.sanitizer; /* as who wrote it */
    void *mine = runners[me()].fiber.sanitizer;
    leave();
    runners[slot].body = body; /* it does not run before our next step */
    runners[slot].argument = argument;
    fiber_become_named(born, true); /* what we did comes before it */
    fiber_become_named(mine, false);
    return slot;
}

void step_join(uint32_t slot)
{
    const uint32_t *ended = &runners[slot].ended;

    while (__atomic_load_n(ended, __ATOMIC_RELAXED) == 0)
        step_wait(ended, 0, HF_FOREVER);
    enter();
    run.joinable &= ~bit(slot);
    void *gone = runners[slot].fiber.sanitizer; /* as who wrote it */
    void *mine = runners[me()].fiber.sanitizer;
    leave();
    fiber_become_named(gone, false);
    fiber_become_named(mine, true); /* what it did comes before us */
}

static void seed_prepare(const struct schedule_case *test, uint64_t seed)
{
    memset(&run, 0, sizeof run);
    run.test = test;
    run.seed = seed;
    hf_random_init(&run.random, seed);
    hf_random_init(&run.choices, ~seed);
    uint64_t draw = hf_random_next(&run.random);
    static const uint64_t odds[4] = {4, 16, 64, 256};
    static const uint64_t masks[4] = {15, 127, 127, 1023};
    run.buffering = (draw & 1) != 0;
    run.stirring = (draw >> 1 & 1) != 0;
    run.write_odds = odds[draw >> 2 & 3];
    run.jump_mask = masks[draw >> 4 & 3];
    run.now_ns = SCHEDULE_START_NS;
    sleepers_init(&run.sleepers);
    run.steps_max = test->steps_max > 0 ? test->steps_max : DEFAULT_STEPS_MAX;
    chooser_init(&run.chooser, &run.random, SLOTS);
}

static void fibers_prepare(unsigned count)
{
    if (!runners[0].begun)
        fiber_outside(&runners[0].fiber);
    runners[0].begun = true;
    for (uint32_t slot = 1; slot <= count; slot++)
        fiber_start(slot);
}

/* To a thread sanitizer: what was done outside comes before all fibers, and
 * all that they did comes before what follows outside. */
static void fibers_order(unsigned count, bool before)
{
    for (uint32_t slot = 1; slot <= count; slot++) {
        fiber_become(&runners[slot].fiber, before);
        fiber_become(&runners[0].fiber, !before);
    }
}

/* After an abort or a sanitizer's report: which schedule was it? */
static void say_which(void)
{
    if (run.test != NULL)
        dprintf(STDERR_FILENO, "schedule: %s died with SCHEDULE_SEED=%llu\n",
                run.test->name, (unsigned long long)run.seed);
}

static void look(const struct schedule_case *test)
{
    FILE *explain = fmemopen(run.facts.text, sizeof run.facts.text, "w");

    assert(explain != NULL);
    fprintf(explain, "check failed: ");
    if (!test->check(test->context, explain))
        run.result = SCHEDULE_WRONG;
    fclose(explain);
    run.facts.text[sizeof run.facts.text - 1] = '\0';
    if (run.result == SCHEDULE_OK)
        run.facts.text[0] = '\0';
}

static enum schedule_result run_one(const struct schedule_case *test,
                                    uint64_t seed, bool tracing)
{
    assert(test->fibers >= 1 && test->fibers <= SCHEDULE_FIBERS_MAX);
    assert(me() == 0);
    fiber_at_death(say_which);
    seed_prepare(test, seed);
    run.tracing = tracing;
    fibers_prepare(test->fibers);
    if (test->setup != NULL)
        test->setup(test->context, seed);
    fibers_order(test->fibers, true);
    resume(choose(false));
    fibers_order(run.used, false);
    for (uint32_t slot = 1; slot <= run.used; slot++)
        if ((run.alive & bit(slot)) != 0) { /* given up */
            runners[slot].begun = false;
            runners[slot].stores.count = 0;
        }
    bool ended = run.result == SCHEDULE_OK;
    if (ended && test->check != NULL)
        look(test);
    if (ended && test->teardown != NULL)
        test->teardown(test->context);
    run.test = NULL;
    return run.result;
}

enum schedule_result schedule_try(const struct schedule_case *c,
                                  uint64_t seed_first, uint64_t count,
                                  uint64_t *failed_seed)
{
    for (uint64_t i = 0; i < count; i++) {
        enum schedule_result result = run_one(c, seed_first + i, false);
        if (result == SCHEDULE_OK)
            continue;
        if (failed_seed != NULL)
            *failed_seed = seed_first + i;
        return result;
    }
    return SCHEDULE_OK;
}

/* A number from the environment, or `otherwise`. */
static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t value = otherwise;

    if (text != NULL && *text != '\0' &&
        hf_parse_u64(hf_bytes_text(text), &value) != HF_OK)
        test_fail(__FILE__, __LINE__, "%s=%s is not a number", name, text);
    return value;
}

void schedule_check(const struct schedule_case *c)
{
    uint64_t only = setting("SCHEDULE_SEED", 0);
    uint64_t count =
        setting("SCHEDULES", c->schedules > 0 ? c->schedules : DEFAULT_RUNS);
    uint64_t seed = only;
    enum schedule_result result =
        only > 0 ? run_one(c, only, true)
                 : schedule_try(c, setting("SCHEDULE_FIRST", 1), count, &seed);

    if (result != SCHEDULE_OK)
        test_fail(__FILE__, __LINE__, "%s: SCHEDULE_SEED=%llu: %s", c->name,
                  (unsigned long long)seed, run.facts.text);
}

uint64_t schedule_random(uint64_t bound)
{
    enter();
    uint64_t value = hf_random_below(&run.choices, bound);
    leave();
    return value;
}

/* As the fiber, not the scheduler: it is the fiber's text. */
void schedule_wrong(const char *format, ...)
{
    va_list args;

    int used =
        snprintf(run.facts.text, sizeof run.facts.text, "fiber %u: ", me() - 1);
    va_start(args, format);
    vsnprintf(run.facts.text + used, sizeof run.facts.text - (size_t)used,
              format, args);
    va_end(args);
    if (me() == 0)
        test_fail(__FILE__, __LINE__, "outside of fibers: %s", run.facts.text);
    enter();
    give_up(SCHEDULE_WRONG);
}

void schedule_note(const char *format, ...)
{
    va_list args;

    if (!run.tracing)
        return;
    fprintf(stderr, "        fiber %u  ", me() - 1);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

const struct schedule_facts *schedule_last(void)
{
    return &run.facts;
}
