/* cache_tinylfu.c - a window, a main space in two parts, and a sketch that
 * decides who may pass: W-TinyLFU.
 *
 *   new --> [ window ] --may it pass?--> [ probation ] --read--> [ protected ]
 *             LRU           |              LRU  ^                   LRU |
 *                           `--> out        |   `-----------------------'
 *                                           `--> out       the oldest, when
 *                                                          it is full
 *
 * The oldest of the window goes on to probation. When there is no room, it and
 * the oldest of probation are compared: who was asked for more often lately
 * stays. So what is read once, as in a scan, does not push out what is read
 * again and again.
 *
 * How large the window is: what is read again soon and then never needs a large
 * one, what is read again after long needs a small one. Every ten times as many
 * reads as there is room, the hit rate is compared with the last one: if the
 * last change of the window did well, another one follows in the same
 * direction, else in the other. Steps get smaller while little changes, and
 * large again when much does.
 */
#include "keep/cache_state.h"

#define WINDOW_SHARE    100u /* 1 % of the room, to begin with */
#define PROTECTED_TENTH 8u   /* of the main space, to begin with */
#define STEP            0.0625
#define STEP_SHRINKS    0.98
#define RATE_CHANGED    0.05
#define WARM_COUNT      5u /* a key that was seen as often is no stranger */
#define LUCK            127u

enum hf_status cache_tinylfu_init(struct cache_policy *policy, uint64_t keys,
                                  uint64_t seed)
{
    uint64_t window = policy->max / WINDOW_SHARE;

    policy->window_max = window == 0 ? 1 : window;
    policy->protected_max =
        (policy->max - policy->window_max) / 10 * PROTECTED_TENTH;
    policy->step = -STEP * (double)policy->max;
    policy->random = seed | 1;
    return cache_sketch_init(&policy->sketch, keys) ? HF_OK : HF_NOMEM;
}

void cache_tinylfu_added(struct cache_segment *segment,
                         struct cache_entry *entry)
{
    struct cache_policy *policy = &segment->policy;

    cache_sketch_fit(&policy->sketch, cache_figure(&segment->count));
    cache_sketch_add(&policy->sketch, entry->hash);
    policy->sample_misses++;
    cache_queue_push(policy, CACHE_WINDOW, entry);
}

void cache_tinylfu_read(struct cache_segment *segment,
                        struct cache_entry *entry)
{
    struct cache_policy *policy = &segment->policy;
    struct cache_queue *protected = &policy->queues[CACHE_PROTECTED];

    cache_sketch_add(&policy->sketch, entry->hash);
    policy->sample_hits++;
    if (entry->queue == CACHE_WINDOW) {
        cache_queue_move(policy, CACHE_WINDOW, entry);
        return;
    }
    cache_queue_move(policy, CACHE_PROTECTED, entry);
    while (protected->weight > policy->protected_max)
        cache_queue_move(policy, CACHE_PROBATION, protected->oldest);
}

static bool may_pass(struct cache_policy *policy,
                     const struct cache_entry *candidate,
                     const struct cache_entry *victim)
{
    unsigned candidate_count =
        cache_sketch_count(&policy->sketch, candidate->hash);
    unsigned victim_count = cache_sketch_count(&policy->sketch, victim->hash);

    if (candidate_count > victim_count)
        return true;
    if (candidate_count <= WARM_COUNT)
        return false;
    /* Who can make a victim's count high by keys of his choice must not keep
     * out the others for ever: now and then one passes by luck. */
    policy->random ^= policy->random << 13;
    policy->random ^= policy->random >> 7;
    policy->random ^= policy->random << 17;
    return (policy->random >> 32 & LUCK) == 0;
}

/* The oldest that takes room, from there on to newer ones. */
static struct cache_entry *heavy(struct cache_entry *entry)
{
    while (entry != NULL && entry->weight == 0)
        entry = entry->newer;
    return entry;
}

/* What the window has too much of goes to probation; returns the first. */
static struct cache_entry *leave_window(struct cache_policy *policy)
{
    struct cache_queue *window = &policy->queues[CACHE_WINDOW];
    struct cache_entry *first = NULL;

    while (window->weight > policy->window_max) {
        struct cache_entry *entry = window->oldest;
        cache_queue_move(policy, CACHE_PROBATION, entry);
        first = first == NULL ? entry : first;
    }
    return first;
}

static uint64_t weight_of(const struct cache_policy *policy)
{
    return policy->queues[CACHE_WINDOW].weight +
           policy->queues[CACHE_PROBATION].weight +
           policy->queues[CACHE_PROTECTED].weight;
}

static void make_room(struct cache_segment *segment, struct cache_batch *batch)
{
    struct cache_policy *policy = &segment->policy;
    struct cache_entry *candidate = leave_window(policy);

    while (weight_of(policy) > policy->max) {
        struct cache_entry *victim =
            heavy(policy->queues[CACHE_PROBATION].oldest);
        candidate = heavy(candidate);
        if (victim == NULL)
            victim = heavy(policy->queues[CACHE_PROTECTED].oldest);
        if (victim == NULL)
            victim = heavy(policy->queues[CACHE_WINDOW].oldest);
        assert(victim != NULL);
        struct cache_entry *goes = victim;
        if (candidate != NULL && candidate != victim) {
            struct cache_entry *next = candidate->newer;
            if (candidate->weight > policy->max ||
                !may_pass(policy, candidate, victim))
                goes = candidate;
            candidate = next;
        } else if (candidate != NULL) {
            candidate = candidate->newer;
        }
        cache_evict(segment, goes, batch);
    }
}

/* Moves the border between window and main space by `by`. */
static void move_border(struct cache_policy *policy, double by)
{
    uint64_t amount = (uint64_t)(by < 0 ? -by : by);

    if (by > 0) {
        amount =
            amount < policy->protected_max ? amount : policy->protected_max;
        policy->window_max += amount;
        policy->protected_max -= amount;
    } else {
        uint64_t most = policy->window_max - 1;
        amount = amount < most ? amount : most;
        policy->window_max -= amount;
        policy->protected_max += amount;
    }
    struct cache_queue *window = &policy->queues[CACHE_WINDOW];
    struct cache_queue *protected = &policy->queues[CACHE_PROTECTED];
    while (protected->weight > policy->protected_max)
        cache_queue_move(policy, CACHE_PROBATION, protected->oldest);
    while (window->weight > policy->window_max)
        cache_queue_move(policy, CACHE_PROBATION, window->oldest);
    /* A larger window is filled with what would be the next to go. */
    while (by > 0) {
        struct cache_entry *entry = policy->queues[CACHE_PROBATION].oldest;
        if (entry == NULL ||
            window->weight + entry->weight > policy->window_max)
            break;
        cache_queue_move(policy, CACHE_WINDOW, entry);
    }
}

/* Is the window better larger or smaller? */
static void climb(struct cache_policy *policy)
{
    uint64_t reads = policy->sample_hits + policy->sample_misses;

    if (reads < policy->sketch.adds_max)
        return;
    double rate = (double)policy->sample_hits / (double)reads;
    double change = rate - policy->last_rate;
    policy->sample_hits = 0;
    policy->sample_misses = 0;
    policy->last_rate = rate;
    if (!policy->sampled) { /* the first one is of a cache that was empty */
        policy->sampled = true;
        return;
    }
    double by = change >= 0 ? policy->step : -policy->step;
    if (change >= RATE_CHANGED || change <= -RATE_CHANGED)
        policy->step = (by < 0 ? -STEP : STEP) * (double)policy->max;
    else
        policy->step = by * STEP_SHRINKS;
    move_border(policy, by);
}

void cache_tinylfu_settle(struct cache_segment *segment,
                          struct cache_batch *batch)
{
    make_room(segment, batch);
    climb(&segment->policy);
    hf_u64_store(&segment->window, segment->policy.window_max,
                 __ATOMIC_RELAXED); /* a figure */
}
