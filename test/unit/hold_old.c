/* hold_old.c - tests of journals and images of earlier builds. */
#include <string.h>

#include "base/little.h"
#include "base/memory.h"
#include "support/old/products.h"
#include "support/old/records.h"
#include "support/old/seen.h"
#include "support/test.h"

TEST_ONE_THREAD;

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* The bytes that the digits stand for; the caller frees them. */
static struct hf_bytes bytes_of(const char *digits)
{
    size_t len = strlen(digits) / 2;
    char *out = hf_alloc(len);

    for (size_t i = 0; i < len; i++)
        out[i] = (char)(digit(digits[2 * i]) << 4 | digit(digits[2 * i + 1]));
    return hf_bytes(out, len);
}

static void drop(struct hf_bytes bytes)
{
    hf_free((void *)(uintptr_t)bytes.data);
}

static struct hold_engine *make(void)
{
    return hold_new((struct hf_hash_seed){{3, 4}});
}

static enum hf_status load_piece(void *context, const void *data, size_t len)
{
    return hold_load(context, hf_bytes(data, len));
}

static enum hold_code apply(struct hold_engine *e, struct hf_bytes record)
{
    static struct hold_command command;
    const struct hold_out *out;

    CHECK_EQ(hold_decode(record, &command), HF_OK);
    CHECK_EQ(hold_prepare(e, &command), HF_OK);
    do
        out = hold_apply(e, record);
    while (out->code == HOLD_AGAIN);
    return out->code;
}

/* Replays the old records from number `first` on. With `again` it goes on with
 * an engine that was loaded from its own image, after each of them. */
static struct hold_engine *replay(struct hold_engine *e, unsigned first,
                                  bool again)
{
    struct hf_bytes records = bytes_of(old_records);
    struct hf_bytes seen = bytes_of(old_seen);
    size_t at = 0;

    for (unsigned i = 0; i < OLD_RECORDS; i++) {
        size_t len = hf_get_u16(records.data + at);
        struct hf_bytes record = hf_bytes(records.data + at + 2, len);
        at += 2 + len;
        if (i < first)
            continue;
        enum hold_code code = apply(e, record);
        CHECK_EQ(seen_after(e, code), hf_get_u32(seen.data + 4 * (size_t)i));
        if (again) {
            struct hold_engine *other = make();
            CHECK_EQ(hold_save(e, load_piece, other), HF_OK);
            hold_free(e);
            e = other;
        }
    }
    CHECK_EQ(at, records.len);
    drop(records);
    drop(seen);
    return e;
}

TEST(an_old_journal_is_replayed_as_it_was_written)
{
    hold_free(replay(make(), 0, false));
}

TEST(an_image_within_an_old_journal_goes_on_as_it_does)
{
    hold_free(replay(make(), 0, true));
}

TEST(an_old_image_is_read_as_it_was_written)
{
    struct hf_bytes image = bytes_of(old_image);

    for (int again = 0; again < 2; again++) {
        struct hold_engine *e = make();
        CHECK_EQ(hold_load(e, image), HF_OK);
        hold_free(replay(e, OLD_IMAGE_AFTER, again));
    }
    drop(image);
}

TEST(an_old_image_that_was_cut_is_refused_or_ends_with_an_entry)
{
    struct hf_bytes image = bytes_of(old_image);

    for (size_t len = 0; len < image.len; len++) {
        struct hold_engine *e = make();
        enum hf_status status = hold_load(e, hf_bytes(image.data, len));
        CHECK(status == HF_OK || status == HF_CORRUPT);
        hold_free(e);
    }
    drop(image);
}

TEST(an_old_image_without_memory_is_refused)
{
    struct hf_bytes image = bytes_of(old_image);
    enum hf_status status = HF_NOMEM;

    for (uint64_t count = 0; status != HF_OK; count++) {
        struct hold_engine *e = make();
        hf_memory_fail_after(count);
        status = hold_load(e, image);
        hf_memory_fail_never();
        CHECK(status == HF_OK || status == HF_NOMEM);
        hold_free(e);
    }
    drop(image);
}

TEST(after_a_start_the_rules_of_today_hold)
{
    struct hold_engine *e = replay(make(), 0, false);
    static const char *const names[] = {"new-a", "new-b", "new-b", "new-a"};
    static const char *const owners[] = {"A", "B", "A", "B"};
    static char record[HOLD_RECORD_MAX];

    for (int old = 1; old >= 0; old--) {
        struct hold_command c = {.kind = HOLD_RESTART,
                                 .flags = old ? 0 : HOLD_GRAPH};
        enum hold_code code = HOLD_OK;
        (void)apply(e, hf_bytes(record, hold_encode(&c, record)));
        for (int i = 0; i < 4; i++) {
            c = (struct hold_command){.kind = HOLD_LOCK,
                                      .name = hf_bytes_text(names[i]),
                                      .owner = hf_bytes_text(owners[i]),
                                      .ttl_ms = 1000,
                                      .wait_ms = i < 2 ? 0 : 1000};
            code = apply(e, hf_bytes(record, hold_encode(&c, record)));
        }
        CHECK_EQ(code, old ? HOLD_WAITING : HOLD_DEADLOCK);
    }
    hold_free(e);
}

static enum hold_code lock_at(struct hold_engine *e, uint64_t now_us,
                              const char *name, const char *owner,
                              uint64_t ttl_ms, uint64_t wait_ms)
{
    static char record[HOLD_RECORD_MAX];
    static struct hold_command c;

    c = (struct hold_command){.kind = HOLD_LOCK,
                              .now_us = now_us,
                              .name = hf_bytes_text(name),
                              .owner = hf_bytes_text(owner),
                              .ttl_ms = ttl_ms,
                              .wait_ms = wait_ms};
    struct hf_bytes bytes = hf_bytes(record, hold_encode(&c, record));
    CHECK_EQ(hold_prepare(e, &c), HF_OK);
    const struct hold_out *out = hold_apply(e, bytes);
    enum hold_code code = out->code;
    while (out->code == HOLD_AGAIN)
        out = hold_apply(e, bytes);
    return code;
}

/* More is over than one step sweeps, and then waits for a lock are. */
TEST(behind_the_sweep_an_old_queue_is_as_it_was)
{
    struct hold_engine *e = make();
    static char record[HOLD_RECORD_MAX];
    static struct hold_command c;
    char text[16];

    c = (struct hold_command){.kind = HOLD_RESTART};
    (void)apply(e, hf_bytes(record, hold_encode(&c, record)));
    c = (struct hold_command){.kind = HOLD_BOUNDS};
    CHECK_EQ(hold_add_item(&c, hf_bytes_text("waiters_max"), 9), HF_OK);
    (void)apply(e, hf_bytes(record, hold_encode(&c, record)));
    for (unsigned i = 0; i < HOLD_STEP_MAX + 20; i++) {
        snprintf(text, sizeof text, "lock-%u", i);
        CHECK_EQ(lock_at(e, 1000, text, "A", 10, 0), HOLD_OK);
    }
    CHECK_EQ(lock_at(e, 1000, "door", "A", 10000, 0), HOLD_OK);
    for (unsigned i = 0; i < 9; i++) {
        snprintf(text, sizeof text, "%u", i);
        CHECK_EQ(lock_at(e, 1000, "door", text, 1, 11), HOLD_WAITING);
    }
    CHECK_EQ(lock_at(e, 20000, "door", "B", 1, 50), HOLD_OVERLOADED);
    CHECK_EQ(lock_at(e, 20000, "door", "B", 1, 50), HOLD_WAITING);
    hold_free(e);
}

/* Thresholds and attributes came with format 4. */
TEST(an_image_of_products_without_thresholds_is_read)
{
    struct hf_bytes image = bytes_of(old_products);
    struct hold_engine *e = make();
    char error[256];
    struct hold_command ask = {.kind = HOLD_STOCK_GET,
                               .now_us = 1000000000,
                               .item_count = 1,
                               .items = {{hf_bytes_text("apple"), 0}}};

    CHECK_EQ(hold_load(e, image), HF_OK);
    CHECK_EQ(hold_check(e, error), HF_OK);
    const struct hold_out *out = hold_ask(e, &ask);
    CHECK_EQ(reply_get_number(out->body, FIELD_TOTAL), 10);
    CHECK_EQ(reply_get_number(out->body, FIELD_RESERVED), 3);
    CHECK_EQ(reply_get_number(out->body, FIELD_SOLD), 2);
    CHECK_EQ(reply_get_number(out->body, FIELD_VERSION), 5);
    CHECK_EQ(reply_get_number(out->body, FIELD_UPDATED_MS), 1000000);
    CHECK_EQ(reply_get_number(out->body, FIELD_LOW), 0);
    struct hold_engine *other = make();
    CHECK_EQ(hold_save(e, load_piece, other), HF_OK);
    CHECK_EQ(hold_digest(other), hold_digest(e));
    hold_free(other);
    hold_free(e);
    drop(image);
}
