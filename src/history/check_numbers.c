/* check_numbers.c - tokens and versions grow, also over restarts.
 *
 * All come from one counter. In the order of the numbers: none may be known
 * before a smaller one can have been given.
 *
 *   token 7   ........ |lo ....
 *   token 9   .. hi|                 9 was told, then 7 was given: wrong
 */
#include "history/check.h"

void check_numbers(struct check *c)
{
    const struct number *all = c->numbers.data;
    const struct number *earliest = NULL; /* of the larger ones */

    check_sort(&c->numbers, sizeof *all);
    for (size_t i = c->numbers.count; i > 0;) {
        size_t top = i;
        while (i > 0 && all[i - 1].key.by[0] == all[top - 1].key.by[0]) {
            i--;
            if (earliest != NULL && earliest->hi < all[i].lo)
                check_found(c, "order", all[i].id, earliest->id,
                            "%llu was given after %llu was told",
                            (unsigned long long)all[i].key.by[0],
                            (unsigned long long)earliest->key.by[0]);
        }
        for (size_t j = i; j < top; j++) {
            if (earliest == NULL || all[j].hi < earliest->hi)
                earliest = &all[j];
        }
    }
}
