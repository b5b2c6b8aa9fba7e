/* agenda.c - runs of entries that came in order, and a heap for the others. */
#include "base/agenda.h"

#include "base/memory.h"

#define NODES_MIN 64u
/* Room in the heap for entries that a change moves there. */
#define HEAP_SPARE 256u

void hf_agenda_init(struct hf_agenda *agenda,
                    void (*moved)(void *context, uint32_t ref,
                                  uint32_t position),
                    void *context, size_t *account)
{
    *agenda = (struct hf_agenda){.top = 1};
    hf_heap_init(&agenda->heap, moved, context, account);
}

void hf_agenda_destroy(struct hf_agenda *agenda)
{
    hf_heap_destroy(&agenda->heap);
    hf_free(agenda->nodes);
    agenda->nodes = NULL;
    agenda->node_cap = 0;
    hf_agenda_clear(agenda);
}

void hf_agenda_clear(struct hf_agenda *agenda)
{
    hf_heap_clear(&agenda->heap);
    agenda->top = 1;
    agenda->free = agenda->used = agenda->earliest = agenda->run_count = 0;
    for (uint32_t i = 0; i < HF_AGENDA_RUNS; i++)
        agenda->runs[i].first = agenda->runs[i].last = 0;
}

/* ---- Memory. ---- */

/* Without memory entries go to the heap. */
static void make_nodes(struct hf_agenda *agenda, uint64_t count)
{
    uint64_t cap = agenda->node_cap > 0 ? agenda->node_cap : NODES_MIN;

    while (cap < count + 1)
        cap = hf_heap_grown(cap);
    if (cap >= HF_AGENDA_IN_RUN)
        return;
    struct hf_agenda_node *nodes =
        hf_realloc(agenda->nodes, cap * sizeof *nodes);
    if (nodes == NULL)
        return;
    *agenda->heap.account += (cap - agenda->node_cap) * sizeof *nodes;
    agenda->nodes = nodes;
    agenda->node_cap = (uint32_t)cap;
}

enum hf_status hf_agenda_promise(struct hf_agenda *agenda)
{
    struct hf_heap *heap = &agenda->heap;
    uint64_t nodes = (uint64_t)agenda->used + heap->promised + 1;

    if (nodes >= agenda->node_cap)
        make_nodes(agenda, nodes);
    if (!hf_heap_has_room(heap, HEAP_SPARE))
        (void)hf_heap_make_room(heap, (uint64_t)heap->count + heap->promised +
                                          HEAP_SPARE);
    return hf_heap_promise(heap);
}

/* ---- Runs. ---- */

static struct hf_agenda_node *node_edit(struct hf_agenda *agenda,
                                        uint32_t number)
{
    return hf_undo_keep(agenda->heap.undo, &agenda->nodes[number],
                        sizeof agenda->nodes[0]);
}

static uint32_t node_take(struct hf_agenda *agenda)
{
    uint32_t number = agenda->free;

    if (number != 0)
        agenda->free = agenda->nodes[number].next;
    else
        number = agenda->top++;
    assert(number < agenda->node_cap);
    agenda->used++;
    return number;
}

static uint32_t find_earliest(const struct hf_agenda *agenda)
{
    uint32_t earliest = 0;

    for (uint32_t i = 0; i < agenda->run_count; i++) {
        uint32_t first = agenda->runs[i].first;
        if (first != 0 &&
            (earliest == 0 || hf_heap_before(&agenda->nodes[first].entry,
                                             &agenda->nodes[earliest].entry)))
            earliest = first;
    }
    return earliest;
}

/* The first run to which the entry can be appended, or HF_AGENDA_RUNS. */
static uint32_t find_run(const struct hf_agenda *agenda,
                         const struct hf_heap_entry *entry)
{
    uint32_t i = 0;

    while (i < HF_AGENDA_RUNS && agenda->runs[i].last != 0 &&
           hf_heap_before(entry, &agenda->nodes[agenda->runs[i].last].entry))
        i++;
    return i;
}

/* Puts an entry into a run, behind the node `prev` (0: in front). */
static void insert(struct hf_agenda *agenda, uint32_t run, uint32_t prev,
                   struct hf_heap_entry entry)
{
    uint32_t number = node_take(agenda);
    uint32_t next =
        prev == 0 ? agenda->runs[run].first : agenda->nodes[prev].next;

    *node_edit(agenda, number) = (struct hf_agenda_node){entry, prev, next};
    if (next == 0)
        agenda->runs[run].last = number;
    else
        node_edit(agenda, next)->prev = number;
    if (prev != 0) {
        node_edit(agenda, prev)->next = number;
    } else {
        agenda->runs[run].first = number;
        if (agenda->earliest == 0 ||
            hf_heap_before(&entry, &agenda->nodes[agenda->earliest].entry))
            agenda->earliest = number;
        if (run >= agenda->run_count)
            agenda->run_count = run + 1;
    }
    agenda->heap.moved(agenda->heap.context, entry.ref,
                       HF_AGENDA_IN_RUN | number);
}

/* The run of which this node is the first or the last. */
static uint32_t run_of(const struct hf_agenda *agenda, uint32_t number)
{
    uint32_t i = 0;

    while (agenda->runs[i].first != number && agenda->runs[i].last != number) {
        i++;
        assert(i < HF_AGENDA_RUNS);
    }
    return i;
}

static void take_out(struct hf_agenda *agenda, uint32_t number)
{
    struct hf_agenda_node *node = node_edit(agenda, number);
    uint32_t prev = node->prev;
    uint32_t next = node->next;
    uint32_t run = prev == 0 || next == 0 ? run_of(agenda, number) : 0;

    if (next == 0)
        agenda->runs[run].last = prev;
    else
        node_edit(agenda, next)->prev = prev;
    if (prev == 0)
        agenda->runs[run].first = next;
    else
        node_edit(agenda, prev)->next = next;
    node->next = agenda->free;
    agenda->free = number;
    agenda->used--;
    while (agenda->run_count > 0 &&
           agenda->runs[agenda->run_count - 1].first == 0)
        agenda->run_count--;
    if (agenda->earliest == number)
        agenda->earliest = find_earliest(agenda);
}

/* True if it could be appended to a run. */
static bool append(struct hf_agenda *agenda, struct hf_heap_entry entry)
{
    if (agenda->free == 0 && agenda->top >= agenda->node_cap)
        return false;
    uint32_t run = find_run(agenda, &entry);
    if (run == HF_AGENDA_RUNS)
        return false;
    insert(agenda, run, agenda->runs[run].last, entry);
    return true;
}

/* Puts an entry where it belongs in the last run. */
static void search(struct hf_agenda *agenda, struct hf_heap_entry entry)
{
    uint32_t run = HF_AGENDA_RUNS - 1;
    uint32_t prev = agenda->runs[run].last;

    while (prev != 0 && hf_heap_before(&entry, &agenda->nodes[prev].entry))
        prev = agenda->nodes[prev].prev;
    insert(agenda, run, prev, entry);
}

/* ---- Both. ---- */

enum hf_status hf_agenda_add(struct hf_agenda *agenda,
                             struct hf_heap_entry entry)
{
    return append(agenda, entry) ? HF_OK : hf_heap_add(&agenda->heap, entry);
}

void hf_agenda_remove(struct hf_agenda *agenda, uint32_t position)
{
    uint32_t number = position & ~HF_AGENDA_IN_RUN;

    if (number == position) {
        hf_heap_remove(&agenda->heap, position);
        return;
    }
    assert(number >= 1 && number < agenda->top);
    agenda->heap.moved(agenda->heap.context, agenda->nodes[number].entry.ref,
                       0);
    take_out(agenda, number);
}

/* Room in the heap that is promised to nobody. What can be taken back must stay
 * where it is: then none is made. */
static bool has_spare(struct hf_heap *heap)
{
    uint64_t count = (uint64_t)heap->count + heap->promised + 1;

    return hf_heap_has_room(heap, 1) ||
           (!heap->undo->on && hf_heap_make_room(heap, count) == HF_OK);
}

void hf_agenda_change(struct hf_agenda *agenda, uint32_t position,
                      uint64_t when, uint64_t tie)
{
    struct hf_heap *heap = &agenda->heap;
    uint32_t number = position & ~HF_AGENDA_IN_RUN;

    if (number == position) {
        hf_heap_change(heap, position, when, tie);
        return;
    }
    assert(number >= 1 && number < agenda->top);
    struct hf_heap_entry entry = {when, tie, agenda->nodes[number].entry.ref};
    take_out(agenda, number);
    if (append(agenda, entry))
        return;
    if (!has_spare(heap) || hf_heap_add(heap, entry) != HF_OK)
        search(agenda, entry);
}

const struct hf_heap_entry *hf_agenda_find(const struct hf_agenda *agenda,
                                           uint64_t until,
                                           bool (*wanted)(uint32_t ref),
                                           uint32_t steps)
{
    const struct hf_heap_entry *found = NULL;

    for (uint32_t i = 0; i < agenda->run_count; i++) {
        uint32_t n = agenda->runs[i].first;
        for (; n != 0 && steps > 0; n = agenda->nodes[n].next, steps--) {
            const struct hf_heap_entry *entry = &agenda->nodes[n].entry;
            if (entry->when > until ||
                (found != NULL && !hf_heap_before(entry, found)))
                break; /* nor is one behind it */
            if (wanted(entry->ref))
                found = entry;
        }
    }
    for (uint32_t i = 1; i <= agenda->heap.count && steps > 0; i++, steps--) {
        const struct hf_heap_entry *entry = &agenda->heap.entries[i];
        if (entry->when <= until && wanted(entry->ref) &&
            (found == NULL || hf_heap_before(entry, found)))
            found = entry;
    }
    return found;
}

uint32_t hf_agenda_count_due(const struct hf_agenda *agenda, uint64_t until,
                             uint32_t most)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < agenda->run_count; i++) {
        uint32_t n = agenda->runs[i].first;
        for (; n != 0 && count < most && agenda->nodes[n].entry.when <= until;
             n = agenda->nodes[n].next)
            count++;
    }
    return count + hf_heap_count_due(&agenda->heap, until, most - count);
}

bool hf_agenda_is_sound(const struct hf_agenda *agenda)
{
    uint32_t count = 0;

    if (agenda->earliest != find_earliest(agenda))
        return false;

    for (uint32_t i = 0; i < HF_AGENDA_RUNS; i++) {
        uint32_t prev = 0;
        for (uint32_t n = agenda->runs[i].first; n != 0;
             n = agenda->nodes[n].next, count++) {
            const struct hf_agenda_node *node = &agenda->nodes[n];
            if (node->prev != prev ||
                (prev != 0 &&
                 hf_heap_before(&node->entry, &agenda->nodes[prev].entry)))
                return false;
            prev = n;
        }
        if (agenda->runs[i].last != prev)
            return false;
    }
    return count == agenda->used && hf_heap_is_sound(&agenda->heap);
}
