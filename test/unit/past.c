/* past.c - tests of the numbers of the past, from events. */
#include "feed/past.h"

#include "base/random.h"
#include "feed/event.h"
#include "support/engine.h"

TEST_ONE_THREAD;

/* What happened: all events, and the numbers of apples after each number. */
#define STEPS_MAX 600u
static char events[STEPS_MAX][400];
static size_t event_count;
static struct hold_numbers numbers[STEPS_MAX];
static struct hf_bytes sku;

static struct hold_book *book;

static void take(const struct hold_out *out)
{
    CHECK(out != NULL);
    for (size_t i = 0; i < out->event_count; i++) {
        const struct hold_event *event = &out->events[i];
        bool changed = hold_event_change(event, sku).effect != EFFECT_NONE;
        CHECK(event->seq < STEPS_MAX);
        CHECK(event_bytes(event) <= sizeof events[0]);
        event_encode(event, engine_now_us, events[event_count++]);
        CHECK_EQ(hold_book_event(book, event), HF_OK);
        struct hold_numbers *had = &numbers[event->seq];
        *had = hold_book_numbers(book, sku);
        had->version = changed ? event->seq : had[-1].version;
        had->updated_us = changed ? engine_now_us : had[-1].updated_us;
    }
}

static void start(void)
{
    engine_start();
    CHECK_EQ(hold_tell(engine), HF_OK);
    event_count = 0;
    sku = hf_bytes_text("apple");
    numbers[0] = (struct hold_numbers){.exists = false};
    hold_book_free(book);
    book = hold_book_new((struct hf_hash_seed){{1, 2}}, hf_bytes("", 0));
    CHECK(book != NULL);
}

/* Asks for the numbers at `at`, if what is above `from` and up to `to` is
 * missing. */
static enum hf_status ask(uint64_t at, uint64_t from, uint64_t to,
                          struct hold_numbers *out, uint64_t *known_from)
{
    struct hold_numbers now = hold_numbers(engine, sku);
    struct past past;
    bool gap = false;

    past_init(&past, sku, at);
    for (size_t i = 0; i < event_count; i++) {
        struct hold_event event;
        uint64_t now_us;
        uint64_t seq = event_seq(events[i]);
        if (seq > from && !gap && to > from) {
            past_gap(&past, from, to);
            gap = true;
        }
        if (seq > from && seq <= to)
            continue;
        CHECK(event_decode(hf_bytes(events[i], sizeof events[i]), &event,
                           &now_us) > 0);
        past_event(&past, &event, now_us);
    }
    enum hf_status status = past_numbers(&past, &now, out);
    *known_from = past_known_from(&past);
    return status;
}

static void check_numbers(uint64_t at, const struct hold_numbers *found)
{
    const struct hold_numbers *had = &numbers[at];

    CHECK_EQ(found->exists, had->exists);
    if (!had->exists)
        return;
    CHECK_EQ(found->total, had->total);
    CHECK_EQ(found->reserved, had->reserved);
    CHECK_EQ(found->sold, had->sold);
    if (found->version == 0) /* older than what is kept */
        return;
    CHECK_EQ(found->version, had->version);
    CHECK_EQ(found->updated_us, had->updated_us);
}

/* At each number: right, or not known and told from where on it is. */
static void check_all(uint64_t from, uint64_t to, uint64_t *unknown)
{
    struct hold_numbers found;
    uint64_t known_from;
    uint64_t other;

    for (uint64_t at = 0; at <= hold_seq(engine); at++) {
        if (ask(at, from, to, &found, &known_from) == HF_OK) {
            check_numbers(at, &found);
            continue;
        }
        ++*unknown;
        CHECK(known_from > at && known_from <= hold_seq(engine));
        CHECK_EQ(ask(known_from, from, to, &found, &other), HF_OK);
        check_numbers(known_from, &found);
        for (uint64_t next = at + 1; next < known_from; next++)
            CHECK_EQ(ask(next, from, to, &found, &other), HF_NOTFOUND);
    }
}

static void step(struct hf_random *random, int i)
{
    static const char *const ids[] = {"a", "b", "c", "d", "e"};
    const char *id = ids[hf_random_below(random, 5)];
    const char *name = hf_random_below(random, 3) == 0 ? "pear" : "apple";

    switch (hf_random_below(random, 12)) {
    case 0:
        take(engine_set(name, (int64_t)hf_random_below(random, 30)));
        break;
    case 1:
        take(engine_add(name, (int64_t)hf_random_below(random, 5) + 1));
        break;
    case 2:
        if (i % 5 == 0)
            take(engine_delete(name));
        break;
    case 3:
        engine_now_us += 300 * MS;
        take(engine_tick());
        break;
    case 4:
        take(engine_confirm(id));
        break;
    case 5:
        take(engine_cancel(id, "why"));
        break;
    case 6:
        take(engine_extend(id, 800));
        break;
    case 7:
        if (i % 40 == 0)
            take(engine_flush());
        break;
    default:
        take(engine_reserve("", i % 2 ? "apple 2" : "pear 1 apple 1", 700));
        take(engine_reserve(id, "apple 1", 500));
        break;
    }
}

TEST(the_past_is_known_or_told_from_where_on)
{
    uint64_t unknown = 0;

    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct hf_random random;
        hf_random_init(&random, test_seed() + seed);
        start();
        take(engine_set("apple", 20));
        take(engine_set("pear", 20));
        for (int i = 0; i < 60; i++)
            step(&random, i);
        uint64_t last = hold_seq(engine);
        uint64_t to = hf_random_below(&random, last);
        check_all(0, 0, &unknown); /* all of it is kept */
        CHECK_EQ(unknown * (seed == 1), 0);
        check_all(0, to, &unknown); /* retention */
        check_all(hf_random_below(&random, to + 1), to, &unknown); /* a loss */
        check_all(0, last, &unknown);
    }
    CHECK(unknown > 100);
}

TEST(a_product_that_did_not_change_is_known_whatever_is_missing)
{
    struct hold_numbers found;
    uint64_t from;

    start();
    take(engine_set("apple", 20));
    take(engine_reserve("a", "apple 3", 1000));
    take(engine_set("pear", 20));
    take(engine_set("pear", 21));
    CHECK_EQ(ask(3, 0, 3, &found, &from), HF_OK);
    CHECK_EQ(found.total, 20);
    CHECK_EQ(found.reserved, 3);
    CHECK_EQ(found.version, 2); /* that of now */
    CHECK_EQ(ask(2, 0, 3, &found, &from), HF_NOTFOUND);
    CHECK_EQ(from, 3);
}

TEST(a_total_that_was_set_since_is_not_guessed)
{
    struct hold_numbers found;
    uint64_t from;

    start();
    take(engine_set("apple", 20));
    take(engine_reserve("a", "apple 3", 1000));
    take(engine_confirm("a"));
    take(engine_add("apple", 5));
    CHECK_EQ(ask(2, 0, 1, &found, &from), HF_NOTFOUND);
    CHECK_EQ(from, 4);
    CHECK_EQ(ask(4, 0, 1, &found, &from), HF_OK);
    CHECK_EQ(found.sold, 3);
    CHECK_EQ(ask(3, 1, 2, &found, &from), HF_NOTFOUND);
    CHECK_EQ(ask(1, 1, 2, &found, &from), HF_OK); /* before the loss */
    CHECK_EQ(found.total, 20);
}
