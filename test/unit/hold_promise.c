/* hold_promise.c - what is kept for a REQ fits what was promised for it, also
 * when refusals name the longest things. */
#include <string.h>

#include "hold/bounds.h"
#include "support/engine.h"

static char sku[HOLD_SKU_MAX + 1];
static char other[HOLD_SKU_MAX + 1];
static char id[HOLD_ID_MAX + 1];

/* One reservation of one unit, with the longest names. */
static void begin(const char *item)
{
    memset(sku, 's', HOLD_SKU_MAX);
    memset(other, 't', HOLD_SKU_MAX);
    memset(id, 'i', HOLD_ID_MAX);
    engine_start();
    EXPECT_BEGINS(engine_do("STOCK SET %s 5", item), "OK");
    EXPECT_BEGINS(engine_do("RESERVE %s ITEM %s 1 TTL 5000", id, item), "OK");
}

TEST(a_refusal_of_a_part_that_is_not_there_is_kept)
{
    static const char *const verbs[] = {"CONFIRM", "CANCEL"};

    for (int i = 0; i < 2; i++) {
        begin("s"); /* its own items are short */
        for (int again = 0; again < 2; again++)
            EXPECT_BEGINS(
                engine_do("%s %s ITEM %s 1 REQ q", verbs[i], id, other),
                "BADARG id=iii");
        CHECK_ENGINE();
    }
}

TEST(a_refusal_of_more_than_there_is_is_kept)
{
    begin(sku);
    EXPECT_BEGINS(engine_do("CONFIRM %s ITEM %s 2 REQ a", id, sku), "BADARG");
    EXPECT_BEGINS(engine_do("CANCEL %s ITEM %s 2 REQ b", id, sku), "BADARG");
    EXPECT_BEGINS(engine_do("CANCEL nothing ITEM %s 2 REQ c", sku), "NOTFOUND");
    CHECK_ENGINE();
}

static struct hold_command part(enum hold_kind kind, const char *item)
{
    struct hold_command c = {.kind = kind,
                             .name = hf_bytes(id, HOLD_ID_MAX),
                             .now_us = engine_now_us};

    c.ttl_ms = kind == HOLD_RESERVE ? 5000 : 0;
    c.request = hf_bytes_text(kind == HOLD_RESERVE ? "" : "q");
    CHECK_EQ(hold_add_item(&c, hf_bytes_text(item), 1), HF_OK);
    return c;
}

static const struct hold_out *apply(const struct hold_command *c)
{
    static char record[HOLD_RECORD_MAX];

    return hold_apply(engine, hf_bytes(record, hold_encode(c, record)));
}

/* It is promised for when nobody knows the reservation. */
TEST(a_refusal_about_a_reservation_on_its_way_is_kept)
{
    begin("s");
    id[0] = 'j';
    struct hold_command reserve = part(HOLD_RESERVE, "s");
    struct hold_command cancel = part(HOLD_CANCEL, other);
    CHECK_EQ(hold_prepare(engine, &reserve), HF_OK);
    CHECK_EQ(hold_prepare(engine, &cancel), HF_OK);
    CHECK_EQ(apply(&reserve)->code, HOLD_OK);
    CHECK_EQ(apply(&cancel)->code, HOLD_BADARG);
    CHECK_ENGINE();
}
