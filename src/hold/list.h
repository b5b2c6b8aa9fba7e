/* list.h - queues, and lists of what has ended, oldest first.
 *
 * Time never goes back, so appending keeps a list in order of time and the
 * first entry is the next to be forgotten: no heap is needed.
 */
#ifndef HOLD_LIST_H
#define HOLD_LIST_H

#include "base/slab.h"

/* The numbers of the first and the last record; 0: none. */
struct list {
    uint32_t first;
    uint32_t last;
};

struct links {
    uint32_t prev;
    uint32_t next;
};

/* Records that are listed: where they are, and where in them the links. */
struct chain {
    const struct hf_slab *slab;
    size_t place;
};
#define CHAIN(records, kind, field)              \
    (struct chain)                               \
    {                                            \
        &(records), offsetof(struct kind, field) \
    }

static inline struct links *links_of(struct chain chain, uint32_t number)
{
    char *record = hf_slab_at(chain.slab, number);

    return (void *)(record + chain.place);
}

/* The link that leads to what is behind `number`, and the one back; 0: of the
 * list itself. */
static inline uint32_t *next_of(struct chain chain, struct list *list,
                                uint32_t number)
{
    return number != 0 ? &links_of(chain, number)->next : &list->first;
}

static inline uint32_t *prev_of(struct chain chain, struct list *list,
                                uint32_t number)
{
    return number != 0 ? &links_of(chain, number)->prev : &list->last;
}

/* Sets a link of the list, or of a record. */
static inline void set_link(struct chain chain, uint32_t *link, uint32_t number)
{
    *(uint32_t *)hf_undo_keep(chain.slab->undo, link, sizeof *link) = number;
}

/* Links the list to `number`, whose links are those of a record that it takes
 * the place of. */
static inline void list_replace(struct chain chain, struct list *list,
                                uint32_t number)
{
    const struct links *links = links_of(chain, number);

    set_link(chain, next_of(chain, list, links->prev), number);
    set_link(chain, prev_of(chain, list, links->next), number);
}

/* Puts it behind that one; 0: at the front. */
static inline void list_insert(struct chain chain, struct list *list,
                               uint32_t number, uint32_t behind)
{
    struct links *links =
        hf_undo_keep(chain.slab->undo, links_of(chain, number), sizeof *links);

    links->prev = behind;
    links->next = *next_of(chain, list, behind);
    list_replace(chain, list, number);
}

static inline void list_append(struct chain chain, struct list *list,
                               uint32_t number)
{
    list_insert(chain, list, number, list->last);
}

static inline void list_remove(struct chain chain, struct list *list,
                               uint32_t number)
{
    const struct links *links = links_of(chain, number);

    set_link(chain, next_of(chain, list, links->prev), links->next);
    set_link(chain, prev_of(chain, list, links->next), links->prev);
}

/* Positions are counted so far. */
#define POSITION_MAX 1000u

/* The first has the position 1. */
static inline uint32_t list_position(struct chain chain, uint32_t number)
{
    uint32_t position = 1;

    for (uint32_t n = links_of(chain, number)->prev;
         n != 0 && position < POSITION_MAX; n = links_of(chain, n)->prev)
        position++;
    return position;
}

#endif
