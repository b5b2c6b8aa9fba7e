/* agenda.h - what is due next, where most entries come in order.
 *
 * A heap pays for any order. Times to live are few, and each makes entries that
 * come in order: what is asked for later ends later. So entries that fit are
 * appended to runs, which are linked lists, and only the others go to a heap:
 *
 *   runs[0]  600 s: 9:10:00 - 9:10:02 - 9:10:07
 *   runs[1]   30 s: 9:00:31 - 9:00:31 - 9:00:38      <- first of all
 *   heap     9:00:44, 9:05:00
 *
 * An entry goes to the first run that is empty or whose last entry is not
 * later. To add, change or remove one of a run takes the same few steps however
 * many there are. The order in which entries leave is that of (when, tie), as
 * with a heap alone, and so are positions: the user is told where its entry
 * lies
 * (`moved`), and 0 means that it is not in.
 *
 * Memory: an add that was promised does not fail, and a change never does. A
 * change may have to move an entry to the heap, whose room is not promised:
 * there is some to spare, more is made if that can be, and without memory the
 * entry is put to its place in a run by a search.
 *
 * Threads: one thread at a time.
 */
#ifndef BASE_AGENDA_H
#define BASE_AGENDA_H

#include "base/heap.h"

#define HF_AGENDA_RUNS 8u
/* Of a position: the rest is the number of a node. */
#define HF_AGENDA_IN_RUN 0x80000000u

struct hf_agenda_node {
    struct hf_heap_entry entry;
    uint32_t prev; /* in its run */
    uint32_t next; /* or the next free one */
};

struct hf_agenda {
    struct hf_heap heap;
    struct hf_agenda_node *nodes; /* [0] is not used */
    uint32_t node_cap;
    uint32_t top;  /* those from here on were never used */
    uint32_t free; /* the first free one below, or 0 */
    uint32_t used;
    uint32_t earliest;  /* of the first nodes of all runs; 0: all are empty */
    uint32_t run_count; /* those from here on are empty */
    struct {
        uint32_t first;
        uint32_t last;
    } runs[HF_AGENDA_RUNS];
};

void hf_agenda_init(struct hf_agenda *agenda,
                    void (*moved)(void *context, uint32_t ref,
                                  uint32_t position),
                    void *context, size_t *account);
void hf_agenda_destroy(struct hf_agenda *agenda);
/* Empties it, tells nobody, keeps the memory and what is promised. */
void hf_agenda_clear(struct hf_agenda *agenda);

/* True if a promise of `count` more entries needs no new memory. */
static inline bool hf_agenda_has_room(const struct hf_agenda *agenda,
                                      uint32_t count)
{
    uint64_t nodes = (uint64_t)agenda->used + agenda->heap.promised + count;

    return hf_heap_has_room(&agenda->heap, count) && nodes < agenda->node_cap;
}
/* Makes sure that one more add succeeds. HF_NOMEM. */
enum hf_status hf_agenda_promise(struct hf_agenda *agenda);
static inline void hf_agenda_unpromise(struct hf_agenda *agenda)
{
    hf_heap_unpromise(&agenda->heap);
}

/* HF_NOMEM without memory (never, if promised). */
enum hf_status hf_agenda_add(struct hf_agenda *agenda,
                             struct hf_heap_entry entry);
void hf_agenda_remove(struct hf_agenda *agenda, uint32_t position);
/* Gives the entry at `position` another time and tie. */
void hf_agenda_change(struct hf_agenda *agenda, uint32_t position,
                      uint64_t when, uint64_t tie);

static inline uint32_t hf_agenda_count(const struct hf_agenda *agenda)
{
    return agenda->heap.count + agenda->used;
}

/* The entry at `position`, or NULL if there is none. */
static inline const struct hf_heap_entry *
hf_agenda_at(const struct hf_agenda *agenda, uint32_t position)
{
    uint32_t node = position & ~HF_AGENDA_IN_RUN;

    if (node == position)
        return position == 0 || position > agenda->heap.count
                   ? NULL
                   : &agenda->heap.entries[position];
    return node == 0 || node >= agenda->top ? NULL : &agenda->nodes[node].entry;
}

/* When the entry at `position` is due, which is one. */
static inline uint64_t hf_agenda_when(const struct hf_agenda *agenda,
                                      uint32_t position)
{
    return (position & HF_AGENDA_IN_RUN) != 0
               ? agenda->nodes[position & ~HF_AGENDA_IN_RUN].entry.when
               : agenda->heap.entries[position].when;
}

/* The entry that is due first, or NULL. */
static inline const struct hf_heap_entry *
hf_agenda_first(const struct hf_agenda *agenda)
{
    const struct hf_heap_entry *first = hf_heap_first(&agenda->heap);

    if (agenda->earliest == 0)
        return first;
    const struct hf_heap_entry *early = &agenda->nodes[agenda->earliest].entry;
    return first == NULL || hf_heap_before(early, first) ? early : first;
}

/* The first that is due up to `until` and whose ref is `wanted`, or NULL; looks
 * at so many at most. */
const struct hf_heap_entry *hf_agenda_find(const struct hf_agenda *agenda,
                                           uint64_t until,
                                           bool (*wanted)(uint32_t ref),
                                           uint32_t steps);

/* How many are due up to `until`, or `most`, if there are as many. */
uint32_t hf_agenda_count_due(const struct hf_agenda *agenda, uint64_t until,
                             uint32_t most);

/* Are all runs and the heap in order, and are as many in as are counted? */
bool hf_agenda_is_sound(const struct hf_agenda *agenda);

#endif
