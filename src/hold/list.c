/* list.c - queues, and lists of what has ended, oldest first.
 *
 * Time never goes back, so appending keeps a list in order of time and the
 * first entry is the next to be forgotten: no heap is needed.
 */
#include "hold/state.h"

static struct listed *at(const struct hf_index *index, uint32_t number)
{
    return hf_index_at(index, number);
}

/* The link that leads to what is behind `number`, and the one back; 0: of the
 * list itself. */
static uint32_t *next_of(const struct hf_index *index, struct list *list,
                         uint32_t number)
{
    return number != 0 ? &at(index, number)->next : &list->first;
}

static uint32_t *prev_of(const struct hf_index *index, struct list *list,
                         uint32_t number)
{
    return number != 0 ? &at(index, number)->prev : &list->last;
}

void list_replace(const struct hf_index *index, struct list *list,
                  uint32_t number)
{
    const struct listed *record = at(index, number);

    *next_of(index, list, record->prev) = number;
    *prev_of(index, list, record->next) = number;
}

void list_append(const struct hf_index *index, struct list *list,
                 uint32_t number)
{
    struct listed *record = at(index, number);

    record->prev = list->last;
    record->next = 0;
    list_replace(index, list, number);
}

void list_remove(const struct hf_index *index, struct list *list,
                 uint32_t number)
{
    const struct listed *record = at(index, number);

    *next_of(index, list, record->prev) = record->next;
    *prev_of(index, list, record->next) = record->prev;
}
