/* check_quotas.c - proves that what each owner has of a product with a limit is
 * what its reservations say. */
#include "base/memory.h"
#include "hold/check_parts.h"
#include "hold/quota.h"
#include "hold/reserve.h"

/* Takes what the reservation has off a copy of the shares. */
static enum hf_status subtract(struct checker *checker,
                               const struct reservation *r, uint64_t *units)
{
    const struct hold_engine *e = checker->e;
    struct hf_bytes owner = hf_text_bytes(&e->texts, r->owner);
    struct hold_item item;

    for (size_t at = 0;
         owner.len > 0 && hold_next_item(items_of(e, r), &at, &item);) {
        uint32_t number = hf_index_find(&e->products, item.sku);
        const struct product *p = product_at(e, number);
        if (!p->is_limited || r->seq <= quota_since(e, p))
            continue;
        uint32_t share = share_find(e, number, owner);
        if (share == 0 || units[share] < item.quantity)
            return check_broken(
                checker, "product %.*s: owner %.*s has more than is counted",
                HF_SHOW(item.sku), HF_SHOW(owner));
        units[share] -= item.quantity;
    }
    return HF_OK;
}

static enum hf_status check_shares(struct checker *checker, uint64_t *units)
{
    const struct hold_engine *e = checker->e;

    for (uint32_t i = 1; i < hf_index_top(&e->shares); i++) {
        const struct share *share = hf_index_used(&e->shares, i);
        if (share != NULL && share->units == 0)
            return check_broken(checker, "an owner's share is empty");
        units[i] = share == NULL ? 0 : share->units;
    }
    for (uint32_t i = 1; i < hf_index_top(&e->reservations); i++) {
        const struct reservation *r = hf_index_used(&e->reservations, i);
        if (r == NULL || reservation_has_ended(r))
            continue;
        enum hf_status status = subtract(checker, r, units);
        if (status != HF_OK)
            return status;
    }
    for (uint32_t i = 1; i < hf_index_top(&e->shares); i++) {
        if (units[i] > 0)
            return check_broken(checker, "an owner has %llu less than counted",
                                (unsigned long long)units[i]);
    }
    return HF_OK;
}

static enum hf_status check_limits(struct checker *checker)
{
    const struct hold_engine *e = checker->e;
    uint32_t shares = 0;
    uint32_t limited = 0;

    for (uint32_t i = 1; i < hf_index_top(&e->quotas); i++) {
        const struct quota *quota = hf_index_used(&e->quotas, i);
        if (quota == NULL)
            continue;
        struct hf_bytes sku = hf_index_name(&e->quotas, quota);
        uint32_t product = hf_index_find(&e->products, sku);
        shares += quota->shares;
        if (product == 0 || !product_at(e, product)->is_limited ||
            quota->since > e->seq || (quota->most == 0 && quota->shares == 0))
            return check_broken(checker, "the limit of %.*s is out of order",
                                HF_SHOW(sku));
    }
    for (uint32_t i = 1; i < hf_index_top(&e->products); i++) {
        const struct product *p = hf_index_used(&e->products, i);
        limited += p != NULL && p->is_limited;
    }
    if (limited != hf_index_count(&e->quotas) ||
        shares != hf_index_count(&e->shares))
        return check_broken(checker, "%u limits and %u shares, not %u and %u",
                            hf_index_count(&e->quotas),
                            hf_index_count(&e->shares), limited, shares);
    return HF_OK;
}

enum hf_status check_quotas(struct checker *checker)
{
    const struct hold_engine *e = checker->e;
    uint64_t *units =
        hf_alloc_zeroed((hf_index_top(&e->shares) + 1) * sizeof *units);

    if (units == NULL)
        return HF_NOMEM;
    enum hf_status status = check_limits(checker);
    if (status == HF_OK)
        status = check_shares(checker, units);
    hf_free(units);
    return status;
}
