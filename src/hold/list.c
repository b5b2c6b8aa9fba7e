/* list.c - the lists of what has ended, oldest first.
 *
 * Time never goes back, so appending keeps a list in order of time and the
 * first entry is the next to be forgotten: no heap is needed.
 */
#include "hold/state.h"

struct list_link reservation_links(struct hold_engine *e, uint32_t number)
{
    struct reservation *r = reservation_at(e, number);
    return (struct list_link){&r->prev, &r->next};
}

struct list_link request_links(struct hold_engine *e, uint32_t number)
{
    struct request *r = request_at(e, number);
    return (struct list_link){&r->prev, &r->next};
}

void list_append(struct hold_engine *e, struct list *list, list_links *links,
                 uint32_t number)
{
    struct list_link link = links(e, number);

    *link.prev = list->last;
    *link.next = 0;
    if (list->last != 0)
        *links(e, list->last).next = number;
    else
        list->first = number;
    list->last = number;
}

void list_remove(struct hold_engine *e, struct list *list, list_links *links,
                 uint32_t number)
{
    struct list_link link = links(e, number);

    if (*link.prev != 0)
        *links(e, *link.prev).next = *link.next;
    else
        list->first = *link.next;
    if (*link.next != 0)
        *links(e, *link.next).prev = *link.prev;
    else
        list->last = *link.prev;
}
