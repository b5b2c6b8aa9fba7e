/* hold_expiry.c - a million reservations that are over at one instant: no
 * number that is told is wrong, who waits is served in order, and no step is
 * long.
 */
#include "support/engine.h"
#include "support/server.h"

TEST_ONE_THREAD;

enum {
    PRODUCTS = 1000,
    WAITERS = 3000, /* of the first product, every third one connected */
    TTL_MS = 60000,
};

static uint64_t many(void)
{
    return test_is_sanitized() ? 100000 : 1000000;
}

static uint64_t of_each(void)
{
    return many() / PRODUCTS;
}

/* Of every product all units are reserved, one each. */
static void sell_all(void)
{
    char id[32], item[32];

    engine_start();
    for (unsigned i = 0; i < PRODUCTS; i++) {
        snprintf(item, sizeof item, "p%u", i);
        engine_set(item, (int64_t)of_each());
    }
    for (unsigned i = 0; i < many(); i++) {
        snprintf(id, sizeof id, "r%u", i);
        snprintf(item, sizeof item, "p%u 1", i % PRODUCTS);
        CHECK_EQ(engine_reserve(id, item, TTL_MS)->code, HOLD_OK);
    }
}

/* Their names begin with their place in the queue: by priority, then by age. */
static void queue_up(void)
{
    for (unsigned i = 0; i < WAITERS; i++) {
        unsigned place = i % 2 * (WAITERS / 2) + i / 2;
        if (i % 3 == 0)
            engine_do("RESERVE w%u ITEM p0 1 TTL %u WAIT 999999 PRIORITY %u",
                      place, 2 * TTL_MS, i % 2);
        else
            engine_do("WAITLIST JOIN p0 1 OWNER o ID w%u TTL %u PRIORITY %u",
                      place, 2 * TTL_MS, i % 2);
    }
}

static unsigned number_of(struct hf_bytes name)
{
    unsigned number = 0;

    for (size_t i = 1; i < name.len; i++)
        number = number * 10 + (unsigned)(name.data[i] - '0');
    return number;
}

/* What was told of the steps so far. */
struct told {
    uint64_t expired;
    uint64_t served;
    unsigned steps;
};

/* Whoever is served is the next one in the queue, and there is a unit. */
static void hear(struct told *told, const struct hold_out *out)
{
    size_t served = 0;

    for (size_t i = 0; i < out->event_count; i++) {
        const struct hold_event *event = &out->events[i];
        if (event->kind == EVENT_RESERVATION_EXPIRED) {
            CHECK_EQ(number_of(event->name), told->expired);
            CHECK_EQ(event->lag_us, 0);
            told->expired++;
            continue;
        }
        CHECK_EQ(number_of(event->name), told->served);
        told->served++;
        served++;
    }
    CHECK(told->served <= (told->expired + PRODUCTS - 1) / PRODUCTS);
    CHECK(out->event_count - served <= HOLD_STEP_MAX);
    CHECK(served <= HOLD_STEP_MAX);
    CHECK(out->work <= 4 * HOLD_STEP_MAX);
    told->steps++;
}

/* A number is told when it is right, and else not at all. */
static void read_all(uint64_t served)
{
    char sku[16];
    bool behind = hold_is_behind(engine);

    for (unsigned i = 0; i < PRODUCTS; i += PRODUCTS / 2) {
        snprintf(sku, sizeof sku, "p%u", i);
        const struct hold_out *out = engine_get(sku);
        if (behind) {
            CHECK(out == NULL);
            continue;
        }
        int64_t reserved = i == 0 ? (int64_t)served : 0;
        CHECK_EQ(reply_get_number(out->body, FIELD_RESERVED), reserved);
        CHECK_EQ(reply_get_number(out->body, FIELD_AVAILABLE),
                 (int64_t)of_each() - reserved);
    }
    EXPECT(engine_confirm("r0"), "EXPIRED id=r0 expires_ms=0");
}

TEST(a_million_that_expire_at_once_are_swept_in_short_steps)
{
    struct told told = {0};
    uint64_t left = many();

    sell_all();
    engine_now_us += TTL_MS * MS - 1;
    CHECK_EQ(engine_tick()->event_count, 0);
    engine_now_us++;
    CHECK(engine_get("p0") == NULL); /* from the first moment */
    CHECK(engine_get("p500") == NULL);
    do {
        hear(&told, engine_tick());
        left = many() - told.expired;
        CHECK_EQ(hold_is_behind(engine), left > 0);
        if (told.steps % 256 == 1)
            CHECK(engine_get("p1") == NULL || left == 0);
    } while (left > 0);
    CHECK_EQ(told.steps, (many() + HOLD_STEP_MAX - 1) / HOLD_STEP_MAX);
    read_all(0);
    CHECK_ENGINE();
    engine_stop();
}

TEST(who_waits_for_what_a_million_had_is_served_in_order)
{
    struct told told = {0};
    uint64_t served = of_each() < WAITERS ? of_each() : WAITERS;

    sell_all();
    queue_up();
    engine_now_us += TTL_MS * MS;
    CHECK(engine_get("p0") == NULL);
    do {
        hear(&told, engine_tick());
    } while (hold_is_behind(engine));
    CHECK_EQ(told.expired, many());
    CHECK_EQ(told.served, served);
    read_all(served);
    EXPECT_BEGINS(engine_do("RESERVE late ITEM p0 1 TTL 5"),
                  "SHORT sku=p0 requested=1 available=0 waiting=");
    CHECK_ENGINE();
    engine_stop();
}

/* A product of which nothing is due is sold until all others have expired. */
TEST(another_product_is_sold_meanwhile_in_one_step_each)
{
    uint64_t expired = 0;
    unsigned sold = 0;

    sell_all();
    engine_set("other", 100000);
    engine_now_us += TTL_MS * MS;
    do {
        const struct hold_out *out =
            engine_do("RESERVE o%u ITEM other 1 TTL 5", ++sold);
        CHECK_EQ(out->code, HOLD_OK);
        CHECK(out->event_count <= HOLD_STEP_MAX + 1);
        expired += out->event_count - 1;
        out = engine_get("other");
        CHECK_EQ(reply_get_number(out->body, FIELD_RESERVED), sold);
        CHECK_EQ(reply_get_number(out->body, FIELD_AVAILABLE), 100000 - sold);
        CHECK_EQ(engine_get("p999") == NULL, expired < many());
    } while (hold_is_behind(engine));
    CHECK_EQ(expired, many());
    CHECK_EQ(sold, (many() + HOLD_STEP_MAX - 1) / HOLD_STEP_MAX);
    CHECK_ENGINE();
    engine_stop();
}

/* It need not be read: a change that depends on it is exact as well. */
TEST(a_reserve_at_that_instant_finds_the_units_of_all)
{
    struct told told = {0};

    sell_all();
    engine_now_us += TTL_MS * MS;
    const struct hold_out *out =
        engine_do("RESERVE all ITEM p0 %llu ITEM p999 %llu TTL 5",
                  (unsigned long long)of_each(), (unsigned long long)of_each());
    for (; out->code == HOLD_AGAIN; out = engine_again())
        hear(&told, out);
    EXPECT_BEGINS(out, "OK id=all status=PENDING");
    CHECK(told.expired + HOLD_STEP_MAX >= many());
    CHECK(!hold_is_behind(engine));
    CHECK_ENGINE();
    engine_stop();
}
