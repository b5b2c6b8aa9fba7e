/* hold_memory.c - tests of the engine without memory: all or nothing. */
#include "support/starve.h"

TEST(a_new_engine_without_memory_is_none_at_every_allocation)
{
    struct hold_engine *made = NULL;
    uint64_t needed = 0;

    for (uint64_t allowed = 0; made == NULL; allowed++) {
        hf_memory_fail_after(allowed);
        made = hold_new((struct hf_hash_seed){{1, 2}});
        hf_memory_fail_never();
        CHECK(allowed < 1000);
        needed = allowed;
    }
    hold_free(made);
    made = NULL;
    for (uint64_t at = 0; made == NULL; at++) { /* the others succeed */
        hf_memory_fail_once(at);
        made = hold_new((struct hf_hash_seed){{1, 2}});
        hf_memory_fail_never();
        CHECK(at < 1000);
        if (made != NULL)
            CHECK_EQ(at, needed);
    }
    hold_free(made);
    hold_free(NULL);
}

static struct hold_command made(enum hold_kind kind, const char *name)
{
    struct hold_command c = {.kind = kind,
                             .name = hf_bytes_text(name),
                             .now_us = engine_now_us,
                             .ttl_ms = 1000};
    return c;
}

static enum hf_status would_fit(const struct hold_command *c)
{
    size_t before = memory_bytes();
    enum hf_status status = hold_prepare(engine, c);

    if (status == HF_OK)
        hold_forget(engine, c);
    CHECK_EQ(memory_bytes(), before);
    return status;
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

    engine_start();
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(names[i], sizeof names[i], "lock/%u", i % 1000);
        commands[i] = made(HOLD_LOCK, names[i]);
        commands[i].owner = hf_bytes_text(i % 7 == 0 ? "ann" : "bob");
        commands[i].wait_ms = 700;
        CHECK_EQ(hold_prepare(engine, &commands[i]), HF_OK);
    }
    for (unsigned i = 0; i < 3000; i++)
        (void)apply_starved(&commands[i]);
    CHECK_ENGINE();
}

/* As many as fit into what is there, names and owners side by side; the rest of
 * a lock has room. */
TEST(plain_locks_of_which_no_more_fit_are_applied_without_memory)
{
    static struct hold_command commands[3000];
    static char names[3000][32];
    unsigned count = 0;

    engine_start();
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(names[i], sizeof names[i], "a name of its own, %u", i);
        engine_lock(names[i], "an owner with a long name", 1, 0);
    }
    for (unsigned i = 0; i < 8; i++) {
        engine_now_us += 10 * MS;
        engine_tick();
    }
    engine_lock("door", "ann", 1, 0); /* makes room for some short ones */
    hf_memory_fail_after(0);
    for (; count < 3000; count++) {
        snprintf(names[count], sizeof names[count], "%u", count);
        commands[count] = made(HOLD_LOCK, names[count]);
        commands[count].owner = hf_bytes_text("bob");
        if (hold_prepare(engine, &commands[count]) != HF_OK)
            break;
    }
    hf_memory_fail_never();
    CHECK(count > 100 && count < 3000);
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(apply_starved(&commands[i])->code, HOLD_OK);
    CHECK_ENGINE();
    for (unsigned i = 0; i < count; i++) { /* the owner is known */
        const struct hold_out *out = engine_lock(names[i], "bob", 1, 0);
        CHECK_EQ(reply_get_number(out->body, FIELD_COUNT), 2);
    }
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
        hf_memory_fail_after(0); /* the first one has made room */
    }
    hf_memory_fail_never();
}

TEST(beyond_the_memory_limit_only_what_needs_no_new_memory_is_prepared)
{
    char name[64];
    uint64_t held = 0;

    engine_start();
    engine_lock("door", "ann", 1000, 0);
    size_t limit = memory_bytes();
    CHECK(limit > 0);
    hold_set_memory_max(engine, limit);
    /* what is there can be used up, and no more is taken */
    struct hold_command c = made(HOLD_LOCK, "");
    c.owner = hf_bytes_text("ann");
    for (;; held++) {
        snprintf(name, sizeof name, "lock %d", (int)held);
        c.name = hf_bytes_text(name);
        if (would_fit(&c) != HF_OK)
            break;
        CHECK(held < 1000000);
        CHECK_EQ(engine_lock(name, "ann", 1000, 0)->code, HOLD_OK);
    }
    CHECK(held > 0);
    CHECK_EQ(memory_bytes(), limit);
    c = made(HOLD_STOCK_SET, "pear");
    CHECK_EQ(hold_prepare(engine, &c), HF_NOMEM);
    /* giving back makes room */
    EXPECT(engine_unlock("door", 1), "OK remaining=0");
    c = made(HOLD_LOCK, "gate");
    c.owner = hf_bytes_text("ann");
    CHECK_EQ(would_fit(&c), HF_OK);
    hold_set_memory_max(engine, 0);
    c = made(HOLD_STOCK_SET, "pear");
    CHECK_EQ(hold_prepare(engine, &c), HF_OK);
}

static char many_ids[6000][16];

/* CONFIRMs that are prepared and not applied, all with a REQ. */
static struct hold_command many_confirms(unsigned i)
{
    struct hold_command c = made(HOLD_CONFIRM, "nope");

    snprintf(many_ids[i], sizeof many_ids[i], "r%u", i);
    c.ttl_ms = 0;
    c.request = hf_bytes_text(many_ids[i]);
    return c;
}

/* Finding 4: nothing is shown of what is not there. */
TEST(a_request_about_no_reservation_promises_little)
{
    engine_start();
    size_t before = memory_bytes();
    for (unsigned i = 0; i < 6000; i++) {
        struct hold_command c = many_confirms(i);
        CHECK_EQ(hold_prepare(engine, &c), HF_OK);
    }
    CHECK(memory_bytes() - before < 6000 * 512);
    for (unsigned i = 0; i < 6000; i++) {
        struct hold_command c = many_confirms(i);
        CHECK_EQ(apply_starved(&c)->code, HOLD_NOTFOUND);
    }
    CHECK(memory_bytes() - before < 6000 * 512);
    CHECK_ENGINE();
}

/* A reservation of everything that fits, under this id. */
static struct hold_command large_reserve(const char *id, unsigned items)
{
    static char skus[HOLD_ITEMS_MAX][HOLD_SKU_MAX];
    struct hold_command c = made(HOLD_RESERVE, id);

    for (unsigned i = 0; i < items; i++) {
        memset(skus[i], 'y', HOLD_SKU_MAX);
        skus[i][0] = (char)(1 + i);
        CHECK_EQ(hold_add_item(&c, hf_bytes(skus[i], HOLD_SKU_MAX), 1), HF_OK);
    }
    return c;
}

static void start_large_shop(void)
{
    engine_start();
    struct hold_command all = large_reserve("", HOLD_ITEMS_MAX);
    for (unsigned i = 0; i < HOLD_ITEMS_MAX; i++) {
        struct hold_command c = made(HOLD_STOCK_SET, "");
        c.ttl_ms = 0;
        c.name = all.items[i].sku;
        c.amount = 1000;
        CHECK_EQ(engine_apply(&c)->code, HOLD_OK);
    }
}

static struct hold_command ending(enum hold_kind kind, const char *id,
                                  const char *request)
{
    struct hold_command c = made(kind, id);

    c.request = hf_bytes_text(request);
    return c;
}

/* What a CONFIRM shows may be made after it was prepared. */
TEST(a_request_promises_for_the_reservations_that_are_on_their_way)
{
    start_large_shop();
    struct hold_command small = large_reserve("small", 1);
    struct hold_command large = large_reserve("large", HOLD_ITEMS_MAX);
    struct hold_command c[5] = {
        ending(HOLD_CONFIRM, "nope", "q0"), /* the smallest promise */
        ending(HOLD_EXTEND, "small", "q1"), ending(HOLD_CONFIRM, "nope", "q2"),
        ending(HOLD_EXTEND, "large", "q3"), ending(HOLD_CANCEL, "large", "q4")};

    CHECK_EQ(hold_prepare(engine, &c[0]), HF_OK);
    CHECK_EQ(hold_prepare(engine, &small), HF_OK);
    CHECK_EQ(hold_prepare(engine, &c[1]), HF_OK);
    CHECK_EQ(hold_prepare(engine, &large), HF_OK);
    CHECK_EQ(hold_prepare(engine, &c[2]), HF_OK);
    CHECK_EQ(hold_prepare(engine, &c[3]), HF_OK);
    CHECK_EQ(hold_prepare(engine, &c[4]), HF_OK);
    CHECK_EQ(apply_starved(&c[0])->code, HOLD_NOTFOUND);
    CHECK_EQ(apply_starved(&small)->code, HOLD_OK);
    CHECK_EQ(apply_starved(&c[1])->code, HOLD_OK);
    CHECK_EQ(apply_starved(&large)->code, HOLD_OK);
    hold_forget(engine, &c[2]); /* not in the order of preparing */
    CHECK_EQ(apply_starved(&c[3])->code, HOLD_OK);
    CHECK_EQ(apply_starved(&c[4])->code, HOLD_OK);
    /* and what is known is promised for, with nothing on its way */
    struct hold_command last = ending(HOLD_CANCEL, "small", "q5");
    CHECK_EQ(hold_prepare(engine, &last), HF_OK);
    CHECK_EQ(apply_starved(&last)->code, HOLD_OK);
    CHECK_ENGINE();
    engine_now_us += 10 * MS;
    engine_request = "q3"; /* all of it was kept */
    CHECK(strstr(engine_reply_text(engine_extend("large", 1000)), "\x80yyy") !=
          NULL);
}

/* What is shown of an item is longer than what is kept of it. */
TEST(a_request_promises_for_the_number_of_items_too)
{
    static char skus[HOLD_ITEMS_MAX][2];
    struct hold_command c = made(HOLD_RESERVE, "r1");

    engine_start();
    for (unsigned i = 0; i < HOLD_ITEMS_MAX; i++) {
        skus[i][0] = (char)(1 + i);
        engine_set(skus[i], 5);
        CHECK_EQ(hold_add_item(&c, hf_bytes(skus[i], 1), 1), HF_OK);
    }
    c.request = hf_bytes_text("q1");
    CHECK_EQ(starve(&c)->code, HOLD_OK);
    c = ending(HOLD_CONFIRM, "r1", "q2");
    CHECK_EQ(starve(&c)->code, HOLD_OK);
    CHECK_ENGINE();
}

TEST(the_longest_texts_fit_what_was_promised_for_them)
{
    static char name[HOLD_NAME_MAX + 1];
    static char owner[HOLD_OWNER_MAX + 1];

    engine_start();
    memset(name, 'n', HOLD_NAME_MAX);
    memset(owner, 'o', HOLD_OWNER_MAX);
    engine_lock(name, owner, 1000, 0);
    struct hold_command c = made(HOLD_LOCK, name);
    c.owner = hf_bytes_text("bob");
    c.request = hf_bytes_text("q1");
    CHECK_EQ(starve(&c)->code, HOLD_BUSY);
    c.kind = HOLD_UNLOCK;
    c.request = hf_bytes_text("q2");
    CHECK_EQ(starve(&c)->code, HOLD_NOTHELD);
    c.kind = HOLD_FENCE_DEL;
    c.request = hf_bytes_text("q3");
    CHECK_EQ(starve(&c)->code, HOLD_NOTFOUND);
    c.kind = HOLD_STOCK_SET;
    c.name.len = HOLD_SKU_MAX;
    c.request = hf_bytes_text("q4");
    CHECK_EQ(starve(&c)->code, HOLD_OK);
    c = large_reserve("", HOLD_ITEMS_MAX);
    c.request = hf_bytes_text("q5");
    CHECK_EQ(starve(&c)->code, HOLD_NOTFOUND);
    CHECK_ENGINE();
}

TEST(a_timeout_needs_no_memory_at_all)
{
    engine_start();
    engine_request = "q1";
    engine_lock("door", "ann", 5000, 0);
    engine_request = "q2";
    engine_fence("disk", 1); /* OK: no byte is kept of it */
    engine_request = NULL;
    hold_set_memory_max(engine, 1);
    hf_memory_fail_after(0);
    struct hold_command c = made(HOLD_TIMEOUT, "door");
    c.token = 1;
    c.request = hf_bytes_text("q1");
    CHECK_EQ(hold_prepare(engine, &c), HF_OK);
    EXPECT(engine_apply(&c), "OK");
    c.request = hf_bytes_text("q2");
    EXPECT(engine_apply(&c), "OK");
    hf_memory_fail_never();
    engine_request = "q2";
    EXPECT(engine_fence("disk", 1), "TIMEOUT");
    CHECK_ENGINE();
}

TEST(memory_of_promises_that_came_back_is_not_counted)
{
    start_large_shop();
    struct hold_command large = large_reserve("large", HOLD_ITEMS_MAX);
    large.request = hf_bytes_text("q");
    CHECK_EQ(hold_prepare(engine, &large), HF_OK);
    hold_forget(engine, &large);
    size_t before = memory_bytes();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 500; i++)
            CHECK_EQ(hold_prepare(engine, &large), HF_OK);
        CHECK(memory_bytes() > before + 500 * 60000);
        for (int i = 0; i < 500; i++)
            hold_forget(engine, &large);
        CHECK(memory_bytes() < before + (2u << 20));
    }
    /* promised, and refused when applied */
    for (int i = 0; i < 500; i++)
        CHECK_EQ(hold_prepare(engine, &large), HF_OK);
    for (int i = 0; i < 500; i++)
        CHECK_EQ(apply_starved(&large)->code,
                 HOLD_OK); /* but for the first: again */
    CHECK(memory_bytes() < before + (2u << 20));
    CHECK_ENGINE();
}

/* The names lie apart from all else that a command needs. */
TEST(memory_of_names_that_came_back_is_not_counted)
{
    enum { COUNT = 3000 };
    char name[HOLD_NAME_MAX];

    memset(name, 'x', sizeof name);
    engine_start();
    struct hold_command c = made(HOLD_FENCE, "");
    c.name = hf_bytes(name, sizeof name);
    CHECK_EQ(hold_prepare(engine, &c), HF_OK);
    hold_forget(engine, &c);
    size_t before = memory_bytes();
    for (int i = 0; i < COUNT; i++)
        CHECK_EQ(hold_prepare(engine, &c), HF_OK);
    CHECK(memory_bytes() > before + COUNT * sizeof name * 2 / 3);
    for (int i = 0; i < COUNT; i++)
        hold_forget(engine, &c);
    CHECK(memory_bytes() < before + COUNT * sizeof name / 3);
    CHECK_ENGINE();
}

/* Survivor of a mutation: waiters that were taken beyond the limit. */
TEST(beyond_the_memory_limit_nobody_more_may_wait)
{
    char name[16];

    engine_start();
    for (int i = 0; i < 3000; i++) { /* room in all that others share */
        snprintf(name, sizeof name, "%d", i);
        engine_lock(name, "ann", 10, 0);
    }
    engine_now_us += 10 * MS;
    for (int i = 0; i < 12; i++)
        engine_tick();
    engine_lock("door", "ann", 100000, 0);
    engine_lock("door", "bob", 5, 50000);
    hold_set_memory_max(engine, memory_bytes());
    struct hold_command c = made(HOLD_LOCK, "door");
    c.owner = hf_bytes_text("bob");
    c.wait_ms = 5000;
    uint64_t waiting = 0;
    size_t limit = memory_bytes();
    while (would_fit(&c) == HF_OK) {
        CHECK_EQ(engine_apply(&c)->code, HOLD_WAITING);
        CHECK(++waiting < HOLD_QUEUE_MAX);
    }
    CHECK(waiting > 100 && waiting < 2900);
    CHECK_EQ(memory_bytes(), limit);
    c.wait_ms = 0; /* the others have room */
    CHECK_EQ(would_fit(&c), HF_OK);
}

/* Each part of what a command needs has room of its own: short texts fit, one
 * that is long where a short one would do does not. */
TEST(at_the_memory_limit_every_part_of_a_command_must_fit)
{
    static char text[100];
    struct hf_bytes lengthy = hf_bytes(text, sizeof text);

    memset(text, 'x', sizeof text);
    engine_start();
    engine_request = "q";
    engine_lock("door", "ann", 5000, 0);
    engine_request = "q2";
    engine_unlock("gate", 1);
    engine_request = NULL;
    engine_set("apple", 10);
    engine_fence("disk", 1);
    engine_reserve("r1", "apple 1", 5000);
    hold_set_memory_max(engine, 1);

    struct hold_command c = made(HOLD_LOCK, "gate");
    c.owner = hf_bytes_text("bob");
    CHECK_EQ(would_fit(&c), HF_OK);
    c.wait_ms = 5;
    CHECK_EQ(would_fit(&c), HF_NOMEM); /* nobody ever waited */
    c.wait_ms = 0;
    c.owner = lengthy;
    CHECK_EQ(would_fit(&c), HF_NOMEM);
    c.owner = hf_bytes_text("bob");
    c.name = lengthy;
    CHECK_EQ(would_fit(&c), HF_NOMEM);

    c = made(HOLD_UNLOCK, "gate");
    CHECK_EQ(would_fit(&c), HF_OK);
    c.request = hf_bytes_text("q3");
    CHECK_EQ(would_fit(&c), HF_OK);
    c.request = lengthy;
    CHECK_EQ(would_fit(&c), HF_NOMEM);
    c.request = hf_bytes_text("q3");
    c.name = lengthy; /* the reply is longer, too */
    CHECK_EQ(would_fit(&c), HF_NOMEM);

    c = made(HOLD_FENCE, "tape");
    CHECK_EQ(would_fit(&c), HF_OK);
    c.name = lengthy;
    CHECK_EQ(would_fit(&c), HF_NOMEM);
    c = made(HOLD_STOCK_SET, "pear");
    CHECK_EQ(would_fit(&c), HF_OK);
    c.name = lengthy;
    CHECK_EQ(would_fit(&c), HF_NOMEM);
    c = made(HOLD_CANCEL, "r1");
    CHECK_EQ(would_fit(&c), HF_OK);
    c.reason = lengthy;
    CHECK_EQ(would_fit(&c), HF_NOMEM);
    c = made(HOLD_RESERVE, "r2");
    CHECK_EQ(hold_add_item(&c, hf_bytes_text("apple"), 1), HF_OK);
    CHECK_EQ(would_fit(&c), HF_OK);
    CHECK_EQ(hold_add_item(&c, lengthy, 1), HF_OK);
    CHECK_EQ(would_fit(&c), HF_NOMEM);
}

TEST(at_the_memory_limit_the_last_free_place_is_used)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    engine_fence("disk", 1);
    struct hold_command c = made(HOLD_FENCE, "tape");
    hold_set_memory_max(engine, 1);
    while (hold_prepare(engine, &c) == HF_OK)
        continue;
    hold_set_memory_max(engine, 0);
    size_t before = memory_bytes();
    CHECK_EQ(hold_prepare(engine, &c), HF_OK);
    CHECK(memory_bytes() > before); /* what was refused needed new memory */
}

/* How many LOCKs can be prepared; all of them are given back. */
static unsigned count_prepared(void)
{
    struct hold_command c = made(HOLD_LOCK, "gate");
    unsigned prepared = 0;

    c.owner = hf_bytes_text("bob");
    size_t before = memory_bytes();
    while (hold_prepare(engine, &c) == HF_OK)
        CHECK(++prepared < 1000000);
    CHECK_EQ(memory_bytes(), before);
    for (unsigned i = 0; i < prepared; i++)
        hold_forget(engine, &c);
    return prepared;
}

/* The heap is full long before the locks and their names are. */
TEST(at_the_memory_limit_what_falls_due_must_fit_too)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    hold_set_memory_max(engine, 1);
    CHECK(count_prepared() > 0);
}

/* The lock and its name fit, the owner does not. */
TEST(promises_are_given_back_when_one_of_them_cannot_be_had)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    struct hold_command c = made(HOLD_LOCK, "gate");
    c.owner = hf_bytes_text("an owner with a name of more than 32 bytes");
    hf_memory_fail_after(0);
    unsigned prepared = count_prepared();
    for (int i = 0; i < 5000; i++)
        CHECK_EQ(hold_prepare(engine, &c), HF_NOMEM);
    CHECK_EQ(count_prepared(), prepared);
    hf_memory_fail_never();
}

TEST(memory_is_used_again)
{
    struct hold_counts after;
    size_t before = 0;
    char name[64];

    engine_start();
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 2000; i++) {
            snprintf(name, sizeof name, "round %02d lock %04d", round, i);
            engine_lock(name, "ann", 10, 0);
        }
        engine_now_us += 10 * MS;
        for (int i = 0; i < 8; i++)
            engine_tick();
        hold_count(engine, &after);
        if (round == 1)
            before = after.memory_bytes;
    }
    CHECK_EQ(after.locks, 0);
    CHECK_EQ(after.memory_bytes, before);
}
