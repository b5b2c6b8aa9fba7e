/* world.c - the queue of events, the clock, fibers. */
#include "sim/server/world.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define FIBER_STACK_BYTES ((size_t)512 << 10)
#include "support/fiber.h"

#define FIBERS_MAX 16

/* The date on which every run begins. */
#define FIRST_WALL_US UINT64_C(1700000000000000)

struct event {
    uint64_t time_ns;
    uint64_t order;
    world_call *call;
    void *context;
    uint64_t number;
};

struct strand {
    struct fiber fiber;
    void (*run)(void *context);
    void *context;
    bool used;
    bool asleep; /* its end of sleep is in the queue */
    uint64_t sleep;
};

static struct {
    uint64_t seed;
    uint64_t now_ns;
    int64_t date_us;
    uint64_t order;
    struct event *heap;
    size_t count;
    size_t cap;
    struct strand strands[FIBERS_MAX];
    struct fiber outside;
    struct strand *inside; /* NULL: on the program's own stack */
    bool dead;
    uint64_t digest;
} world;

void (*world_killed)(void);

/* ---- Random numbers. ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = a + 0x9e3779b97f4a7c15u * (b + 1);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct dice dice_make(uint64_t seed, const char *what, uint64_t a, uint64_t b)
{
    struct dice dice;
    uint64_t from = seed;

    for (const char *c = what; *c != '\0'; c++)
        from = mix(from, (uint8_t)*c);
    hf_random_init(&dice.random, mix(mix(from, a), b));
    return dice;
}

uint64_t dice_below(struct dice *dice, uint64_t bound)
{
    return bound == 0 ? 0 : hf_random_below(&dice->random, bound);
}

uint64_t dice_between(struct dice *dice, uint64_t low, uint64_t high)
{
    return high <= low ? low : low + dice_below(dice, high - low + 1);
}

bool dice_hit(struct dice *dice, uint64_t part)
{
    return dice_below(dice, 1000) < part;
}

uint64_t dice_scale(struct dice *dice, uint64_t low, uint64_t high)
{
    uint64_t top = low;

    assert(low > 0);
    for (uint64_t at = low; at < high && dice_below(dice, 4) != 0; at *= 2)
        top = at * 2;
    return dice_between(dice, low, top < high ? top : high);
}

/* ---- Time and events. ---- */

void world_begin(uint64_t seed)
{
    world.seed = seed;
    world.now_ns = 1000 * S;
    world.date_us = 0;
    world.order = 0;
    world.count = 0;
    world.dead = false;
    world.digest = mix(seed, 0);
    world.inside = NULL;
    fiber_outside(&world.outside);
}

void world_end(void)
{
    assert(world_fibers() == 0);
    world.count = 0;
}

uint64_t world_seed(void)
{
    return world.seed;
}

uint64_t world_now_ns(void)
{
    return world.now_ns;
}

uint64_t world_now_us(void)
{
    return world.now_ns / 1000;
}

uint64_t world_wall_us(void)
{
    return FIRST_WALL_US + world.now_ns / 1000 + (uint64_t)world.date_us;
}

void world_set_date(int64_t by_us)
{
    world.date_us += by_us;
}

void world_spend(uint64_t ns)
{
    world.now_ns += ns;
}

static bool before(const struct event *a, const struct event *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns
                                    : a->order < b->order;
}

void world_at(uint64_t time_ns, world_call *call, void *context,
              uint64_t number)
{
    if (world.count == world.cap) {
        world.cap = world.cap ? world.cap * 2 : 256;
        world.heap = realloc(world.heap, world.cap * sizeof *world.heap);
        assert(world.heap != NULL);
    }
    struct event event = {time_ns, world.order++, call, context, number};
    size_t at = world.count++;
    while (at > 0 && before(&event, &world.heap[(at - 1) / 2])) {
        world.heap[at] = world.heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    world.heap[at] = event;
}

void world_after(uint64_t ns, world_call *call, void *context, uint64_t number)
{
    world_at(world.now_ns + ns, call, context, number);
}

static struct event take_first(void)
{
    struct event first = world.heap[0];
    struct event last = world.heap[--world.count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= world.count)
            break;
        if (child + 1 < world.count &&
            before(&world.heap[child + 1], &world.heap[child]))
            child++;
        if (!before(&world.heap[child], &last))
            break;
        world.heap[at] = world.heap[child];
        at = child;
    }
    world.heap[at] = last;
    return first;
}

uint64_t world_next_ns(void)
{
    return world.count == 0 ? UINT64_MAX : world.heap[0].time_ns;
}

void world_step(void)
{
    assert(world.count > 0);
    assert(world.inside == NULL);
    struct event event = take_first();
    if (event.time_ns > world.now_ns)
        world.now_ns = event.time_ns;
    event.call(event.context, event.number);
}

void world_run_until(uint64_t time_ns)
{
    while (world_next_ns() <= time_ns)
        world_step();
    if (world.now_ns < time_ns)
        world.now_ns = time_ns;
}

/* ---- Fibers. ---- */

bool world_in_fiber(void)
{
    return world.inside != NULL;
}

size_t world_fibers(void)
{
    size_t count = 0;

    for (size_t i = 0; i < FIBERS_MAX; i++)
        count += world.strands[i].used;
    return count;
}

static void leave(struct strand *strand)
{
    world.inside = NULL;
#ifdef FIBER_TSAN
    __tsan_switch_to_fiber(world.outside.sanitizer, 0);
#endif
    fiber_switch(&strand->fiber, &world.outside);
}

static void enter(struct strand *strand)
{
    assert(world.inside == NULL);
    world.inside = strand;
#ifdef FIBER_TSAN
    __tsan_switch_to_fiber(strand->fiber.sanitizer, 0);
#endif
    fiber_switch(&world.outside, &strand->fiber);
}

static void strand_main(void)
{
    fiber_arrive(NULL);
    for (;;) {
        struct strand *strand = world.inside;
        strand->run(strand->context);
        strand->used = false;
        leave(strand);
    }
}

static void on_wake(void *context, uint64_t sleep)
{
    struct strand *strand = context;

    if (!strand->used || !strand->asleep || strand->sleep != sleep)
        return;
    strand->asleep = false;
    enter(strand);
}

void world_fiber(void (*run)(void *context), void *context)
{
    for (size_t i = 0; i < FIBERS_MAX; i++) {
        struct strand *strand = &world.strands[i];
        if (strand->used)
            continue;
        if (strand->fiber.stack == NULL)
            fiber_prepare(&strand->fiber, strand_main);
        strand->run = run;
        strand->context = context;
        strand->used = true;
        strand->asleep = true;
        world_at(world.now_ns, on_wake, strand, ++strand->sleep);
        return;
    }
    assert(!"more fibers than there is room for");
}

void world_pass(uint64_t ns)
{
    struct strand *strand = world.inside;

    if (strand == NULL) {
        world_run_until(world.now_ns + ns);
        return;
    }
    strand->asleep = true;
    world_after(ns, on_wake, strand, ++strand->sleep);
    leave(strand);
}

/* ---- Death. ---- */

/* Whoever sleeps is woken: it finds its disk dead. */
void world_kill(void)
{
    if (world.dead)
        return;
    world.dead = true;
    if (world_killed != NULL)
        world_killed();
    for (size_t i = 0; i < FIBERS_MAX; i++) {
        struct strand *strand = &world.strands[i];
        if (strand->used && strand->asleep)
            world_at(world.now_ns, on_wake, strand, ++strand->sleep);
    }
}

bool world_is_dead(void)
{
    return world.dead;
}

void world_revive(void)
{
    world.dead = false;
}

/* ---- Digest. ---- */

void world_note(const void *data, size_t len)
{
    const struct hf_hash_seed seed = {{world.digest, world.now_ns}};

    world.digest = hf_hash(seed, hf_bytes(data, len));
}

uint64_t world_digest(void)
{
    return world.digest;
}
