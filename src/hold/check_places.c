/* check_places.c - proves that every place is counted where it belongs. */
#include "hold/check_parts.h"
#include "hold/places.h"

static enum hf_status check_sums(struct checker *checker,
                                 const struct places *places)
{
    const struct hold_engine *e = checker->e;
    struct hf_bytes name = hf_index_name(&e->places, places);
    struct hf_bytes last = {"", 0};
    struct places sums = {.count = 0};
    uint64_t steps = 0;

    for (uint32_t i = 0; i < places->count; i++) {
        const struct product *p =
            product_at(e, place_nth(e, places, i, &steps));
        struct hf_bytes sku = {"", 0};
        struct hf_bytes place = {"", 0};
        bool placed = place_part(hf_index_name(&e->products, p), &sku, &place);
        if (!placed || !p->is_placed || !hf_bytes_equal(sku, name) ||
            hf_bytes_compare(last, place) >= 0)
            return check_broken(checker, "the places of %.*s are out of order",
                                HF_SHOW(name));
        last = place;
        sums.total += p->total;
        sums.reserved += p->reserved;
        sums.sold += p->sold;
    }
    if (sums.total != places->total || sums.reserved != places->reserved ||
        sums.sold != places->sold || places->count == 0)
        return check_broken(checker, "the sums over %.*s are wrong",
                            HF_SHOW(name));
    return HF_OK;
}

enum hf_status check_places(struct checker *checker)
{
    const struct hold_engine *e = checker->e;
    enum hf_status status = HF_OK;
    uint64_t placed = 0;
    uint64_t counted = 0;

    for (uint32_t i = 1; i < hf_index_top(&e->products); i++) {
        const struct product *p = hf_index_used(&e->products, i);
        struct hf_bytes sku;
        struct hf_bytes place;
        placed += p != NULL &&
                  place_part(hf_index_name(&e->products, p), &sku, &place);
    }
    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->places); i++) {
        const struct places *places = hf_index_used(&e->places, i);
        if (places == NULL)
            continue;
        counted += places->count;
        status = check_sums(checker, places);
    }
    if (status == HF_OK &&
        (placed != counted ||
         counted - hf_index_count(&e->places) != e->forks.used))
        return check_broken(checker, "%llu products are of a place, not %llu",
                            (unsigned long long)placed,
                            (unsigned long long)counted);
    return status;
}
