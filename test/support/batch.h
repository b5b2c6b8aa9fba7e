/* batch.h - a real server whose clients are not: what goes into a batch, and
 * what becomes of it, step by step.
 */
#ifndef TEST_SUPPORT_BATCH_H
#define TEST_SUPPORT_BATCH_H

#include "base/memory.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/server.h"
#include "support/clock.h"
#include "support/disk.h"
#include "support/test.h"

#define NAME_BYTES 500

static struct server server;
static struct test_disk disk;
static struct hold_command command;

static inline void start_with(enum journal_sync durability)
{
    struct config config = config_default();
    char error[JOURNAL_ERROR_MAX];

    test_folder_in_memory();
    config.dir = test_folder();
    config.port = 0;
    config.segment_bytes = 1u << 20;
    config.durability = durability;
    config.log_level = HF_LOG_ERROR;
    config.io = test_disk_quick(&disk);
    CHECK_EQ(server_open(&server, &config, error), HF_OK);
}

static inline void start(void)
{
    start_with(JOURNAL_NONE);
}

static inline void stop(void)
{
    server_close(&server);
    test_disk_destroy(&disk);
}

/* A client that went: it counts, and is told nothing. */
static inline struct conn gone(void)
{
    return (struct conn){.server = &server, .closing = true};
}

/* Without the journal, which has nothing to do with what is tested. */
static inline const struct hold_out *apply(void)
{
    char record[HOLD_RECORD_MAX];
    const struct hold_out *out;

    command.now_us = server_now_us(&server);
    size_t len = hold_encode(&command, record);
    CHECK_EQ(hold_prepare(server.engine, &command), HF_OK);
    do
        out = hold_apply(server.engine, hf_bytes(record, len));
    while (out->code == HOLD_AGAIN);
    return out;
}

static inline struct hold_counts counts(void)
{
    struct hold_counts found;

    hold_count(server.engine, &found);
    return found;
}

static inline void submit(struct conn *conn)
{
    answer_read_begin(&server);
    submit_command(&server, conn, &command);
}

/* Many names, the last of this length. As HOLD_BOUNDS, a setting that is none,
 * it is as long as a record may be. */
static inline void submit_long(struct conn *conn, enum hold_kind kind,
                               uint32_t items, size_t last)
{
    static char names[HOLD_ITEMS_MAX][HOLD_SKU_MAX];

    command = (struct hold_command){.kind = kind};
    for (uint32_t i = 0; i < items; i++) {
        memset(names[i], 'a', sizeof names[i]);
        names[i][0] = (char)i;
        CHECK_EQ(hold_add_item(
                     &command,
                     hf_bytes(names[i], i + 1 < items ? sizeof names[i] : last),
                     1),
                 HF_OK);
    }
    submit(conn);
}

/* In the 64 KiB that the journal has for a batch there is no room for a LOCK
 * behind these. */
static inline void submit_all_but_a_lock(struct conn *conn)
{
    submit_long(conn, HOLD_BOUNDS, HOLD_ITEMS_MAX, 10);
    submit_long(conn, HOLD_BOUNDS, HOLD_ITEMS_MAX - 9, HOLD_SKU_MAX);
}

/* The batch that hung is written, and the next one hangs. */
static inline void write_one(void)
{
    test_disk_let_go(&disk);
    test_disk_hold(&disk, TEST_DISK_BATCH);
    commit_poll(&server);
    server_turn(&server);
}

/* A client that is told what it is owed, and keeps it: nothing is sent. */
static inline void listening(struct conn *conn)
{
    *conn = (struct conn){.server = &server,
                          .reply = {.out = &conn->out, .codec = &resp2_codec},
                          .dirty = true};
}

static inline void lock_and_wait(struct conn *conn)
{
    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes_text("door"),
                                    .owner = hf_bytes_text("me"),
                                    .request = hf_bytes_text("q"),
                                    .ttl_ms = HOLD_TTL_MAX_MS,
                                    .wait_ms = 60};
    submit(conn);
}

/* `request` is "" for none. */
static inline void lock_at_once(struct conn *conn, const char *request)
{
    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes_text("door"),
                                    .owner = hf_bytes_text("me"),
                                    .request = hf_bytes_text(request),
                                    .ttl_ms = HOLD_TTL_MAX_MS};
    submit(conn);
}

static inline bool was_told(struct conn *conn, const char *start)
{
    size_t len = strlen(start);
    bool found =
        conn->out.len >= len && memcmp(conn->out.data, start, len) == 0;

    hf_buf_destroy(&conn->out);
    return found;
}

/* Its end is due, and was not swept yet. */
static inline void let_a_lock_expire(struct test_clock *clock)
{
    clock->now_ns = hf_clock_now_ns(server.clock);
    server.clock = test_clock(clock);
    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes_text("door"),
                                    .owner = hf_bytes_text("me"),
                                    .ttl_ms = 5};
    CHECK_EQ(apply()->code, HOLD_OK);
    test_clock_advance(clock, 6 * 1000000);
}

#endif
