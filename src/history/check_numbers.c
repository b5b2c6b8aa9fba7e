/* check_numbers.c - tokens and versions grow, also over restarts.
 *
 * All come from one counter. In the order of the numbers: none may be known
 * before a smaller one can have been given.
 *
 *   token 7   ........ |lo ....
 *   token 9   .. hi|                 9 was told, then 7 was given: wrong
 */
#include "base/memory.h"
#include "history/check.h"

static int by_number(const void *a, const void *b)
{
    const struct number *left = a;
    const struct number *right = b;

    return (left->number > right->number) - (left->number < right->number);
}

enum hf_status check_numbers(struct check *c)
{
    struct number *all = (struct number *)c->numbers.data;
    size_t count = c->numbers.count;
    const struct number *earliest = NULL; /* of the larger ones */

    if (count > 0)
        qsort(all, count, sizeof *all, by_number);
    for (size_t i = count; i > 0;) {
        size_t top = i;
        while (i > 0 && all[i - 1].number == all[top - 1].number) {
            i--;
            if (earliest != NULL && earliest->hi < all[i].lo)
                check_found(c, "order", all[i].id, earliest->id,
                            "%llu was given after %llu was told",
                            (unsigned long long)all[i].number,
                            (unsigned long long)earliest->number);
        }
        for (size_t j = i; j < top; j++) {
            if (earliest == NULL || all[j].hi < earliest->hi)
                earliest = &all[j];
        }
    }
    return HF_OK;
}
