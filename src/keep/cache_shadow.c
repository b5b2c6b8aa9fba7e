/* cache_shadow.c - what a small and a large window would find: two caches of
 * names only, each with a part of the room and of the keys.
 *
 * Whether a window should be small (what was asked for often stays) or as large
 * as the cache (what was asked for lately stays) cannot be read off one cache:
 * it has only one window at a time, and to try another costs hits. So both are
 * tried in the small, on the keys whose hash says so, one of up to 16. What one
 * of them finds and the other does not is counted; old counts fade.
 *
 *   keys --1 of 2^shift--> [ narrow: window of 1 % ]   found by this only
 *                     `--> [ wide: window is all   ]   found by that only
 *
 * The same keys go to both, so that it does not matter which keys they are. A
 * lead counts if it is well above what chance makes of that many differences
 * (three times the square root) and at least one in a hundred.
 */
#include <math.h>

#include "base/memory.h"
#include "keep/cache_state.h"

#define KEYS_MIN  256u /* places of a shadow, if the cache has as many */
#define SHIFT_MAX 4u
#define NONE      UINT32_MAX

struct shadow_node {
    uint64_t hash;
    uint32_t newer;
    uint32_t older;
    uint32_t chain; /* the next one in its bucket */
    uint32_t queue;
};

struct shadow_queue {
    uint32_t newest;
    uint32_t oldest;
    uint32_t count;
};

struct shadow { /* one of the two */
    struct shadow_queue queues[3];
    uint32_t window_max;
    uint32_t protected_max;
    uint32_t used;   /* nodes that were ever used */
    uint32_t spare;  /* a node that is in no queue, or NONE */
    uint32_t *heads; /* of buckets */
    struct shadow_node *nodes;
};

struct cache_shadows {
    struct shadow narrow;
    struct shadow wide;
    uint32_t room; /* places of each */
    uint32_t mask; /* of the buckets */
    unsigned shift;
    uint32_t seen; /* keys in this period */
    double narrow_only;
    double wide_only;
};

static void queue_unlink(struct shadow *shadow, uint32_t at)
{
    struct shadow_node *node = &shadow->nodes[at];
    struct shadow_queue *queue = &shadow->queues[node->queue];

    *(node->newer == NONE ? &queue->newest
                          : &shadow->nodes[node->newer].older) = node->older;
    *(node->older == NONE ? &queue->oldest
                          : &shadow->nodes[node->older].newer) = node->newer;
    queue->count--;
}

static void queue_push(struct shadow *shadow, uint32_t to, uint32_t at)
{
    struct shadow_node *node = &shadow->nodes[at];
    struct shadow_queue *queue = &shadow->queues[to];

    node->queue = to;
    node->newer = NONE;
    node->older = queue->newest;
    *(queue->newest == NONE ? &queue->oldest
                            : &shadow->nodes[queue->newest].newer) = at;
    queue->newest = at;
    queue->count++;
}

static void queue_move(struct shadow *shadow, uint32_t to, uint32_t at)
{
    queue_unlink(shadow, at);
    queue_push(shadow, to, at);
}

/* The low bits say whether a key is looked at, others where it lies. */
static uint32_t *head_of(const struct cache_shadows *shadows,
                         struct shadow *shadow, uint64_t hash)
{
    return &shadow->heads[(hash >> 8) & shadows->mask];
}

static uint32_t find(const struct cache_shadows *shadows, struct shadow *shadow,
                     uint64_t hash)
{
    uint32_t at = *head_of(shadows, shadow, hash);

    while (at != NONE && shadow->nodes[at].hash != hash)
        at = shadow->nodes[at].chain;
    return at;
}

/* Takes it out; its node is the spare one. */
static void drop(const struct cache_shadows *shadows, struct shadow *shadow,
                 uint32_t at)
{
    uint32_t *link = head_of(shadows, shadow, shadow->nodes[at].hash);

    while (*link != at)
        link = &shadow->nodes[*link].chain;
    *link = shadow->nodes[at].chain;
    queue_unlink(shadow, at);
    assert(shadow->spare == NONE);
    shadow->spare = at;
}

static void make_room(const struct cache_shadows *shadows,
                      struct shadow *shadow, const struct cache_sketch *sketch)
{
    struct shadow_queue *window = &shadow->queues[CACHE_WINDOW];
    uint32_t candidate = NONE;

    if (window->count > shadow->window_max) {
        candidate = window->oldest;
        queue_move(shadow, CACHE_PROBATION, candidate);
    }
    if (shadow->used <= shadows->room)
        return;
    uint32_t victim = shadow->queues[CACHE_PROBATION].oldest;
    if (victim == NONE)
        victim = shadow->queues[CACHE_PROTECTED].oldest;
    if (victim == NONE)
        victim = window->oldest;
    if (candidate != NONE && candidate != victim &&
        hf_cache_sketch_count(sketch, shadow->nodes[candidate].hash) <=
            hf_cache_sketch_count(sketch, shadow->nodes[victim].hash))
        victim = candidate;
    drop(shadows, shadow, victim);
}

/* Is it there? If not, it is put there. */
static bool ask(const struct cache_shadows *shadows, struct shadow *shadow,
                const struct cache_sketch *sketch, uint64_t hash)
{
    struct shadow_queue *protected = &shadow->queues[CACHE_PROTECTED];
    uint32_t at = find(shadows, shadow, hash);

    if (at != NONE) {
        queue_move(shadow,
                   shadow->nodes[at].queue == CACHE_WINDOW ? CACHE_WINDOW
                                                           : CACHE_PROTECTED,
                   at);
        if (protected->count > shadow->protected_max)
            queue_move(shadow, CACHE_PROBATION, protected->oldest);
        return true;
    }
    at = shadow->spare;
    shadow->spare = NONE;
    if (at == NONE)
        at = shadow->used++;
    uint32_t *head = head_of(shadows, shadow, hash);
    shadow->nodes[at].hash = hash;
    shadow->nodes[at].chain = *head;
    *head = at;
    queue_push(shadow, CACHE_WINDOW, at);
    make_room(shadows, shadow, sketch);
    return false;
}

static void shadow_init(struct shadow *shadow, char *memory, uint32_t room,
                        uint32_t buckets, uint32_t window_max)
{
    shadow->nodes = (struct shadow_node *)(void *)memory;
    shadow->heads = (uint32_t *)(void *)(shadow->nodes + room + 1);
    memset(shadow->heads, 0xff, buckets * sizeof(uint32_t));
    for (unsigned i = 0; i < 3; i++)
        shadow->queues[i] = (struct shadow_queue){NONE, NONE, 0};
    shadow->window_max = window_max;
    shadow->protected_max = (room - window_max) / 10 * 8;
    shadow->spare = NONE;
    shadow->used = 0;
}

struct cache_shadows *hf_cache_shadows_new(uint64_t keys)
{
    unsigned shift = 0;

    while (shift < SHIFT_MAX && keys >> shift > KEYS_MIN)
        shift++;
    uint64_t room = keys >> shift < 2 ? 2 : keys >> shift;
    uint64_t buckets = 1;
    while (buckets < room)
        buckets *= 2;
    if (buckets > UINT32_MAX / 2)
        return NULL;
    size_t bytes = (room + 1) * sizeof(struct shadow_node) +
                   buckets * 2 * sizeof(uint32_t);
    struct cache_shadows *shadows =
        hf_alloc(sizeof(struct cache_shadows) + 2 * bytes);
    if (shadows == NULL)
        return NULL;
    *shadows = (struct cache_shadows){
        .room = (uint32_t)room, .mask = (uint32_t)buckets - 1, .shift = shift};
    char *memory = (char *)(shadows + 1);
    shadow_init(&shadows->narrow, memory, (uint32_t)room, (uint32_t)buckets,
                room / 100 < 1 ? 1 : (uint32_t)(room / 100));
    shadow_init(&shadows->wide, memory + bytes, (uint32_t)room,
                (uint32_t)buckets, (uint32_t)room);
    return shadows;
}

/* A period is over: which of the two leads, if any? */
static int judge(struct cache_shadows *shadows)
{
    double lead = shadows->wide_only - shadows->narrow_only;
    double differ = shadows->wide_only + shadows->narrow_only;
    int leader = 0;

    if (lead * lead > 9 * differ && fabs(lead) > 0.04 * shadows->room)
        leader = lead > 0 ? 1 : -1;
    shadows->seen = 0;
    shadows->wide_only *= 0.5;
    shadows->narrow_only *= 0.5;
    return leader;
}

int hf_cache_shadows_note(struct cache_shadows *shadows,
                          const struct cache_sketch *sketch, uint64_t hash)
{
    if ((hash & ((1u << shadows->shift) - 1)) != 0)
        return 0;
    bool narrow = ask(shadows, &shadows->narrow, sketch, hash);
    bool wide = ask(shadows, &shadows->wide, sketch, hash);
    shadows->narrow_only += narrow && !wide;
    shadows->wide_only += wide && !narrow;
    return ++shadows->seen < shadows->room ? 0 : judge(shadows);
}
