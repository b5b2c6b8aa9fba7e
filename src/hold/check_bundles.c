/* check_bundles.c - proves that groups of reservations have their members. */
#include "hold/bundle.h"
#include "hold/check_parts.h"

static enum hf_status check_members(struct checker *checker, uint32_t number,
                                    const struct bundle *bundle)
{
    const struct hold_engine *e = checker->e;
    struct hf_bytes name = hf_index_name(&e->bundles, bundle);
    uint32_t count = 0;
    uint32_t last = 0;

    for (uint32_t n = bundle->members.first; n != 0;
         n = member_at(e, n)->links.next) {
        const struct member *member = member_at(e, n);
        const struct reservation *r = reservation_at(e, member->reservation);
        bool may = r->status == RESERVATION_PENDING ||
                   r->status == RESERVATION_WAITING ||
                   r->status == RESERVATION_EXPIRED;
        if (member->bundle != number || member->links.prev != last || !may ||
            r->member != n || ++count > HOLD_MEMBERS_MAX)
            return check_broken(checker, "group %.*s has a wrong member",
                                HF_SHOW(name));
        last = n;
    }
    return count == bundle->count && count > 0 && last == bundle->members.last
               ? HF_OK
               : check_broken(checker, "group %.*s counts %u members, not %u",
                              HF_SHOW(name), bundle->count, count);
}

enum hf_status check_bundles(struct checker *checker)
{
    const struct hold_engine *e = checker->e;
    enum hf_status status = HF_OK;
    uint32_t members = 0;
    uint32_t counted = 0;

    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->bundles);
         i++) {
        const struct bundle *bundle = hf_index_used(&e->bundles, i);
        if (bundle == NULL)
            continue;
        members += bundle->count;
        status = check_members(checker, i, bundle);
    }
    for (uint32_t i = 1; i < hf_index_top(&e->reservations); i++) {
        const struct reservation *r = hf_index_used(&e->reservations, i);
        counted += r != NULL && r->member != 0;
    }
    if (status == HF_OK && (members != counted || members != e->members.used))
        return check_broken(checker, "%u reservations are in groups, not %u",
                            counted, members);
    return status;
}
