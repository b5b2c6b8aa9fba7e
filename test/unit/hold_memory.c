/* hold_memory.c - tests of the engine without memory: all or nothing. */
#include "base/memory.h"
#include "support/engine.h"

TEST(a_new_engine_without_memory_is_none_at_every_allocation)
{
    struct hold_engine *made = NULL;

    for (uint64_t allowed = 0; made == NULL; allowed++) {
        hf_memory_fail_after(allowed);
        made = hold_new((struct hf_hash_seed){{1, 2}});
        hf_memory_fail_never();
        CHECK(allowed < 1000);
    }
    hold_free(made);
    hold_free(NULL);
}

/* Lets each allocation of preparing the command fail in turn; then applies it
 * with no memory at all. */
static const struct hold_out *starve(const struct hold_command *c)
{
    static char record[HOLD_RECORD_MAX];
    uint64_t before = hold_digest(engine);
    enum hf_status status = HF_NOMEM;

    for (uint64_t allowed = 0; status != HF_OK; allowed++) {
        hf_memory_fail_after(allowed);
        status = hold_prepare(engine, c);
        hf_memory_fail_never();
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(hold_digest(engine) == before);
        CHECK(allowed < 100);
    }
    size_t len = hold_encode(c, record);
    hf_memory_fail_after(0);
    const struct hold_out *out = hold_apply(engine, hf_bytes(record, len));
    hf_memory_fail_never();
    CHECK(out != NULL);
    return out;
}

static struct hold_command made(enum hold_kind kind, const char *name)
{
    struct hold_command c = {.kind = kind,
                             .name = hf_bytes_text(name),
                             .now_us = engine_now_us,
                             .ttl_ms = 1000};
    return c;
}

/* The first command of each kind meets slabs that are not there yet. */
TEST(every_allocation_of_every_kind_may_fail)
{
    static const char reason[] = "a reason that is longer than the names so "
                                 "far, so that it needs a place of its own";

    engine_start();
    struct hold_command c = made(HOLD_STOCK_SET, "apple");
    c.amount = 10;
    CHECK_EQ(starve(&c)->code, HOLD_OK);
    c = made(HOLD_LOCK, "door");
    c.owner = hf_bytes_text("ann");
    CHECK_EQ(starve(&c)->code, HOLD_OK);
    c.owner = hf_bytes_text("an owner with a longer name");
    c.wait_ms = 500;
    c.request = hf_bytes_text("a request with an id that is longer still");
    CHECK_EQ(starve(&c)->code, HOLD_WAITING);
    CHECK_EQ(starve(&c)->answer_count, 1); /* moved */
    c = made(HOLD_FENCE, "disk");
    c.token = 2;
    CHECK_EQ(starve(&c)->code, HOLD_OK);
    c = made(HOLD_RESERVE, "");
    c.owner = hf_bytes_text("ann");
    hold_add_item(&c, hf_bytes_text("apple"), 2);
    CHECK_EQ(starve(&c)->code, HOLD_OK);
    c.name = hf_bytes_text("r1");
    c.request = hf_bytes_text("q2");
    CHECK_EQ(starve(&c)->code, HOLD_OK);
    c = made(HOLD_CANCEL, "r1");
    c.reason = hf_bytes_text(reason);
    CHECK_EQ(starve(&c)->code, HOLD_OK);
    c = made(HOLD_UNLOCK, "door");
    c.token = 2;
    CHECK_EQ(starve(&c)->answer_count, 1);
    struct hf_bytes owner =
        reply_get_text(engine_info("door")->body, FIELD_OWNER);
    CHECK_TEXT(owner.data, owner.len, "an owner with a longer name");
    CHECK(strstr(engine_reply_text(engine_reservation("r1")), reason) != NULL);
    c = made(HOLD_FLUSH, "");
    CHECK_EQ(starve(&c)->code, HOLD_OK);
    CHECK_ENGINE();
}

TEST(many_prepared_commands_are_applied_without_memory)
{
    static struct hold_command commands[3000];
    static char names[3000][32];
    static char record[HOLD_RECORD_MAX];

    engine_start();
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(names[i], sizeof names[i], "lock/%u", i % 1000);
        commands[i] = made(HOLD_LOCK, names[i]);
        commands[i].owner = hf_bytes_text(i % 7 == 0 ? "ann" : "bob");
        commands[i].wait_ms = 700;
        CHECK_EQ(hold_prepare(engine, &commands[i]), HF_OK);
    }
    hf_memory_fail_after(0);
    for (unsigned i = 0; i < 3000; i++) {
        size_t len = hold_encode(&commands[i], record);
        CHECK(hold_apply(engine, hf_bytes(record, len)) != NULL);
    }
    hf_memory_fail_never();
    CHECK_ENGINE();
}

TEST(a_forgotten_preparation_leaves_nothing_promised)
{
    engine_start();
    struct hold_command c = made(HOLD_LOCK, "door");
    c.owner = hf_bytes_text("ann");
    c.wait_ms = 5;
    c.request = hf_bytes_text("q");
    for (int i = 0; i < 100000; i++) { /* would run out of numbers */
        CHECK_EQ(hold_prepare(engine, &c), HF_OK);
        hold_forget(engine, &c);
    }
    struct hold_counts counts;
    hold_count(engine, &counts);
    CHECK(counts.memory_bytes < 4u << 20);
}

TEST(beyond_the_memory_limit_only_what_needs_no_new_memory_is_prepared)
{
    struct hold_counts counts;
    char name[64];
    uint64_t held = 0;

    engine_start();
    engine_lock("door", "ann", 1000, 0);
    hold_count(engine, &counts);
    CHECK(counts.memory_bytes > 0);
    hold_set_memory_max(engine, counts.memory_bytes);
    /* what is there can be used up, and no more is taken */
    struct hold_command c = made(HOLD_LOCK, "");
    c.owner = hf_bytes_text("ann");
    for (;; held++) {
        snprintf(name, sizeof name, "lock %d", (int)held);
        c.name = hf_bytes_text(name);
        if (hold_prepare(engine, &c) != HF_OK)
            break;
        CHECK(held < 1000000);
        hold_forget(engine, &c);
        CHECK_EQ(engine_lock(name, "ann", 1000, 0)->code, HOLD_OK);
    }
    CHECK(held > 0);
    uint64_t limit = counts.memory_bytes;
    hold_count(engine, &counts);
    CHECK_EQ(counts.memory_bytes, limit);
    c = made(HOLD_STOCK_SET, "pear");
    CHECK_EQ(hold_prepare(engine, &c), HF_NOMEM);
    /* giving back makes room */
    EXPECT(engine_unlock("door", 1), "OK remaining=0");
    c = made(HOLD_LOCK, "gate");
    c.owner = hf_bytes_text("ann");
    CHECK_EQ(hold_prepare(engine, &c), HF_OK);
    hold_forget(engine, &c);
    hold_set_memory_max(engine, 0);
    c = made(HOLD_STOCK_SET, "pear");
    CHECK_EQ(hold_prepare(engine, &c), HF_OK);
}

TEST(memory_is_used_again)
{
    struct hold_counts before;
    struct hold_counts after;
    char name[64];

    engine_start();
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 2000; i++) {
            snprintf(name, sizeof name, "round %d lock %d", round, i);
            engine_lock(name, "ann", 10, 0);
        }
        engine_now_us += 10 * MS;
        for (int i = 0; i < 8; i++)
            engine_tick();
        hold_count(engine, round == 1 ? &before : &after);
    }
    CHECK_EQ(after.locks, 0);
    CHECK_EQ(after.memory_bytes, before.memory_bytes);
}
