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
 * How large the window is: as a rule 1 %. But where what is asked for lately is
 * asked for again soon, and then never, counting comes too late, and a window
 * that is nearly all of the cache (which then is an LRU) does better. Which of
 * the two it shall be is found out in the small, see cache_shadow.c. The border
 * then moves step by step, with the puts.
 */
#include "base/memory.h"
#include "keep/cache_state.h"

#define WINDOW_SHARE    100u /* 1 % of the room, or all but 1 % */
#define PROTECTED_TENTH 8u   /* of the main space */
#define STEP_MIN        64u  /* weight by which the border moves with a put */
#define STEP_SHARE      128u

static uint64_t hundredth(const struct cache_policy *policy)
{
    uint64_t share = policy->max / WINDOW_SHARE;
    return share == 0 ? 1 : share;
}

static void set_window(struct cache_policy *policy, uint64_t window_max)
{
    policy->window_max = window_max;
    policy->protected_max = (policy->max - window_max) / 10 * PROTECTED_TENTH;
}

enum hf_status hf_cache_tinylfu_init(struct cache_policy *policy, uint64_t keys)
{
    set_window(policy, hundredth(policy));
    policy->window_goal = policy->window_max;
    return hf_cache_sketch_init(&policy->sketch, keys) ? HF_OK : HF_NOMEM;
}

/* A key was asked for: by that the shadows may know better. */
static void note(struct cache_policy *policy, uint64_t hash)
{
    hf_cache_sketch_add(&policy->sketch, hash);
    if (policy->shadows == NULL)
        return;
    int leader = hf_cache_shadows_note(policy->shadows, &policy->sketch, hash);
    if (leader != 0)
        policy->window_goal =
            leader < 0 ? hundredth(policy) : policy->max - hundredth(policy);
}

void hf_cache_tinylfu_added(struct cache_segment *segment,
                            struct cache_entry *entry)
{
    struct cache_policy *policy = &segment->policy;

    hf_cache_sketch_fit(&policy->sketch, cache_figure(&segment->count));
    note(policy, entry->hash);
    hf_cache_queue_push(policy, CACHE_WINDOW, entry);
}

void hf_cache_tinylfu_read(struct cache_segment *segment,
                           struct cache_entry *entry)
{
    struct cache_policy *policy = &segment->policy;
    struct cache_queue *protected = &policy->queues[CACHE_PROTECTED];

    note(policy, entry->hash);
    if (entry->queue == CACHE_WINDOW) {
        hf_cache_queue_move(policy, CACHE_WINDOW, entry);
        return;
    }
    hf_cache_queue_move(policy, CACHE_PROTECTED, entry);
    while (protected->weight > policy->protected_max)
        hf_cache_queue_move(policy, CACHE_PROBATION, protected->oldest);
}

static bool may_pass(struct cache_policy *policy,
                     const struct cache_entry *candidate,
                     const struct cache_entry *victim)
{
    unsigned candidate_count =
        hf_cache_sketch_count(&policy->sketch, candidate->hash);
    unsigned victim_count =
        hf_cache_sketch_count(&policy->sketch, victim->hash);

    return candidate_count > victim_count;
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
        hf_cache_queue_move(policy, CACHE_PROBATION, entry);
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
        hf_cache_evict(segment, goes, batch);
    }
}

/* Moves the border between window and main space towards where it shall be.
 * What this leaves too much of in the window goes on with the next puts. */
static void move_border(struct cache_policy *policy)
{
    struct cache_queue *window = &policy->queues[CACHE_WINDOW];
    struct cache_queue *protected = &policy->queues[CACHE_PROTECTED];
    uint64_t step = policy->max / STEP_SHARE;

    step = step < STEP_MIN ? STEP_MIN : step;
    if (policy->window_max > policy->window_goal) {
        uint64_t left = policy->window_max - policy->window_goal;
        set_window(policy, policy->window_max - (left < step ? left : step));
        while (window->weight > policy->window_max)
            hf_cache_queue_move(policy, CACHE_PROBATION, window->oldest);
        return;
    }
    uint64_t left = policy->window_goal - policy->window_max;
    set_window(policy, policy->window_max + (left < step ? left : step));
    while (protected->weight > policy->protected_max)
        hf_cache_queue_move(policy, CACHE_PROBATION, protected->oldest);
    /* A larger window is filled with what would be the next to go. */
    for (;;) {
        struct cache_entry *entry = policy->queues[CACHE_PROBATION].oldest;
        if (entry == NULL ||
            window->weight + entry->weight > policy->window_max)
            break;
        hf_cache_queue_move(policy, CACHE_WINDOW, entry);
    }
}

/* The shadows are made when the cache is a quarter full, for as many entries as
 * it will hold by what they weigh so far; and again if that was far off. */
static void fit_shadows(struct cache_segment *segment)
{
    struct cache_policy *policy = &segment->policy;
    uint64_t count = cache_figure(&segment->count);
    uint64_t weight = weight_of(policy);

    /* Only now and then: a division for each put would cost. */
    if (count / 8 == policy->judged || weight < policy->max / 4 || weight == 0)
        return;
    policy->judged = count / 8;
    uint64_t keys =
        (uint64_t)((double)count * (double)policy->max / (double)weight);
    if (keys / 2 <= policy->shadowed && policy->shadowed <= keys * 2)
        return;
    policy->shadowed = keys;
    hf_free(policy->shadows);
    policy->shadows = hf_cache_shadows_new(keys);
}

void hf_cache_tinylfu_settle(struct cache_segment *segment,
                             struct cache_batch *batch)
{
    struct cache_policy *policy = &segment->policy;

    fit_shadows(segment);
    make_room(segment, batch);
    if (policy->window_max != policy->window_goal)
        move_border(policy);
    hf_u64_store(&segment->window, policy->window_max,
                 __ATOMIC_RELAXED); /* a figure */
}
