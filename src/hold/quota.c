/* quota.c - limits per owner, and what each owner has of them. */
#include "hold/quota.h"

#include <assert.h>

#include "base/little.h"
#include "hold/reserve.h"

/* How the name of a share begins. */
#define PRODUCT_BYTES 4u
#define SHARE_BYTES   (PRODUCT_BYTES + HOLD_OWNER_MAX)

static struct quota *quota_edit(struct hold_engine *e, uint32_t number)
{
    return hf_undo_keep(&e->undo, hf_index_at(&e->quotas, number),
                        sizeof(struct quota));
}

/* The number of the quota of a product that has one. */
static uint32_t quota_of(const struct hold_engine *e, const struct product *p)
{
    uint32_t number = hf_index_find(&e->quotas, hf_index_name(&e->products, p));

    assert(p->is_limited && number != 0);
    return number;
}

static struct hf_bytes share_name(uint32_t product, struct hf_bytes owner,
                                  char *out)
{
    hf_put_u32(out, product);
    if (owner.len > 0)
        memcpy(out + PRODUCT_BYTES, owner.data, owner.len);
    return hf_bytes(out, PRODUCT_BYTES + owner.len);
}

static uint32_t number_of(const struct hold_engine *e, const struct product *p)
{
    return hf_index_find(&e->products, hf_index_name(&e->products, p));
}

uint32_t share_find(const struct hold_engine *e, uint32_t product,
                    struct hf_bytes owner)
{
    char name[SHARE_BYTES];

    return hf_index_find(&e->shares, share_name(product, owner, name));
}

uint64_t quota_since(const struct hold_engine *e, const struct product *p)
{
    return ((const struct quota *)hf_index_at(&e->quotas, quota_of(e, p)))
        ->since;
}

uint64_t quota_most(const struct hold_engine *e, const struct product *p)
{
    const struct quota *quota =
        p->is_limited ? hf_index_at(&e->quotas, quota_of(e, p)) : NULL;

    return quota == NULL ? 0 : quota->most;
}

/* How many units an owner has of it, as far as they are counted. */
static uint64_t counted_of(const struct hold_engine *e, const struct product *p,
                           struct hf_bytes owner)
{
    uint32_t share = share_find(e, number_of(e, p), owner);

    return share == 0
               ? 0
               : ((const struct share *)hf_index_at(&e->shares, share))->units;
}

/* Of what is counted without a limit, so many that a share can count them. */
static uint64_t most_counted(const struct hold_engine *e,
                             const struct product *p)
{
    uint64_t most = quota_most(e, p);

    return most == 0 ? (uint64_t)HOLD_STOCK_MAX : most;
}

uint64_t quota_find_left(const struct hold_engine *e, const struct product *p,
                         struct hf_bytes owner)
{
    uint64_t most = most_counted(e, p);
    uint64_t has = counted_of(e, p, owner);

    return has < most ? most - has : 0;
}

/* ---- Counting. ---- */

void quota_need(struct hold_engine *e, const struct hold_command *c,
                struct need *need)
{
    uint32_t count = c->owner.len > 0 ? hold_most_items(c) : 0;

    for (uint32_t i = 0; i < count; i++)
        need_record(e, need, &e->shares, PRODUCT_BYTES + c->owner.len);
}

static struct share *share_edit(struct hold_engine *e, uint32_t number)
{
    return hf_undo_keep(&e->undo, hf_index_at(&e->shares, number),
                        sizeof(struct share));
}

static enum hf_status count_item(struct hold_engine *e, uint32_t product,
                                 const struct reservation *r,
                                 const struct hold_item *item)
{
    struct quota *quota = quota_edit(e, quota_of(e, product_at(e, product)));
    char place[SHARE_BYTES];
    struct hf_bytes name =
        share_name(product, hf_text_bytes(&e->texts, r->owner), place);

    if (r->seq <= quota->since)
        return HF_OK;
    uint32_t number = hf_index_find(&e->shares, name);
    quota->shares += number == 0;
    if (number == 0)
        number = hf_index_add(&e->shares, name);
    if (number == 0)
        return HF_NOMEM;
    share_edit(e, number)->units += item->quantity;
    return HF_OK;
}

static enum hf_status count_items(struct hold_engine *e,
                                  const struct reservation *r)
{
    enum hf_status status = HF_OK;
    struct hold_item item;

    for (size_t at = 0; status == HF_OK && r->owner.len > 0 &&
                        hold_next_item(items_of(e, r), &at, &item);) {
        uint32_t product = hf_index_find(&e->products, item.sku);
        if (product_at(e, product)->is_limited)
            status = count_item(e, product, r, &item);
    }
    return status;
}

enum hf_status quota_load(struct hold_engine *e, const struct reservation *r)
{
    return hf_index_count(&e->quotas) == 0 ? HF_OK : count_items(e, r);
}

void quota_count(struct hold_engine *e, const struct reservation *r)
{
    enum hf_status status = quota_load(e, r);

    assert(status == HF_OK); /* promised */
    (void)status;
}

static void quota_remove(struct hold_engine *e, uint32_t number)
{
    struct hf_bytes sku =
        hf_index_name(&e->quotas, hf_index_at(&e->quotas, number));

    product_edit(e, hf_index_find(&e->products, sku))->is_limited = false;
    hf_index_remove(&e->quotas, number);
}

static void give_item(struct hold_engine *e, uint32_t product,
                      const struct reservation *r, const struct hold_item *item)
{
    uint32_t number = quota_of(e, product_at(e, product));
    struct quota *quota = quota_edit(e, number);

    if (r->seq <= quota->since)
        return;
    uint32_t at = share_find(e, product, hf_text_bytes(&e->texts, r->owner));
    assert(at != 0);
    struct share *share = share_edit(e, at);
    assert(share->units >= item->quantity);
    share->units -= item->quantity;
    if (share->units > 0)
        return;
    hf_index_remove(&e->shares, at);
    if (--quota->shares == 0 && quota->most == 0)
        quota_remove(e, number);
}

void quota_give(struct hold_engine *e, const struct reservation *r,
                struct hf_bytes items)
{
    struct hold_item item;

    if (hf_index_count(&e->quotas) == 0 || r->owner.len == 0)
        return; /* as a rule */
    for (size_t at = 0; hold_next_item(items, &at, &item);) {
        uint32_t product = hf_index_find(&e->products, item.sku);
        if (product_at(e, product)->is_limited)
            give_item(e, product, r, &item);
    }
}

void quota_drop(struct hold_engine *e, const struct product *p)
{
    if (p->is_limited)
        quota_remove(e, quota_of(e, p));
}

/* ---- Refusals. ---- */

void reply_excess(struct hold_engine *e, const struct hold_command *c,
                  const struct excess *excess, uint32_t more)
{
    struct hf_buf *body = &e->body;
    const struct product *p = excess->product;

    reply_map(body, 4 + more);
    reply_field_text(body, FIELD_SKU, hf_index_name(&e->products, p));
    reply_field_number(body, FIELD_REQUESTED, (int64_t)excess->requested);
    reply_field_number(body, FIELD_HAS, (int64_t)counted_of(e, p, c->owner));
    reply_field_number(body, FIELD_LIMIT, (int64_t)most_counted(e, p));
}

bool refuse_excess(struct hold_engine *e, const struct hold_command *c,
                   const struct excess *list, uint32_t count)
{
    bool listed = count > 1;

    if (c->owner.len == 0) {
        struct hf_buf *body = refuse(e, HOLD_BADARG, 2);
        reply_field_text(body, FIELD_SKU,
                         hf_index_name(&e->products, list[0].product));
        reply_field_number(body, FIELD_LIMIT,
                           (int64_t)quota_most(e, list[0].product));
        return true;
    }
    e->out.code = HOLD_QUOTA;
    reply_excess(e, c, &list[0], 1u + listed);
    reply_field_text(&e->body, FIELD_OWNER, c->owner);
    if (!listed)
        return true;
    reply_field(&e->body, FIELD_ITEMS);
    reply_list(&e->body, count);
    for (uint32_t i = 0; i < count; i++)
        reply_excess(e, c, &list[i], 0);
    return true;
}

/* ---- STOCK LIMIT. ---- */

void quota_set_need(struct hold_engine *e, const struct hold_command *c,
                    struct need *need)
{
    need_record(e, need, &e->quotas, c->name.len);
}

void stock_limit(struct hold_engine *e, const struct hold_command *c,
                 struct target at)
{
    struct product *p = product_edit(e, at.number);
    uint64_t most = (uint64_t)c->amount;
    uint32_t number = p->is_limited ? quota_of(e, p) : 0;

    p->updated_us = e->now_us;
    p->version = emit_product(e, p, EVENT_STOCK_LIMIT);
    told(e)->token = most;
    if (number == 0 && most > 0) {
        number = hf_index_add(&e->quotas, c->name);
        assert(number != 0); /* promised */
        quota_edit(e, number)->since = e->seq;
        p->is_limited = true;
    }
    if (number != 0)
        quota_edit(e, number)->most = most;
    if (number != 0 && most == 0 && quota_edit(e, number)->shares == 0)
        quota_remove(e, number);
    reply_product(e, p, 1);
    reply_field_number(&e->body, FIELD_LIMIT, (int64_t)most);
}

/* Behind the products, and before the reservations. */
enum hf_status quota_loaded(struct hold_engine *e, uint32_t number,
                            uint64_t link)
{
    const struct quota *quota = hf_index_at(&e->quotas, number);
    uint32_t product =
        hf_index_find(&e->products, hf_index_name(&e->quotas, quota));

    (void)link;
    if (product == 0 || quota->since > e->seq)
        return HF_CORRUPT;
    product_edit(e, product)->is_limited = true;
    return HF_OK;
}
