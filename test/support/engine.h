/* engine.h - an engine under test, driven in one line per command.
 *
 *   engine_start();
 *   EXPECT(engine_lock("door", "ann", 500, 0),
 *          "OK token=1 safe_ms=500 count=1 waited_ms=0");
 *   engine_now_us += 500 * MS;
 *   EXPECT_EVENTS(engine_tick(), "2 LOCK_EXPIRED door");
 *
 * There is one engine per program; each command prepares, encodes and applies
 * at engine_now_us. What is returned lasts until the next command.
 */
#ifndef TEST_SUPPORT_ENGINE_H
#define TEST_SUPPORT_ENGINE_H

#include "hold/engine.h"
#include "hold/image.h"
#include "support/test.h"

#define MS 1000ull

extern struct hold_engine *engine;
extern uint64_t engine_now_us;
/* REQ of the next commands; NULL for none. */
extern const char *engine_request;

/* A new engine at second 1000; the one before is freed. */
void engine_start(void);
void engine_stop(void);
/* Replaces the engine by one that was loaded from its image. */
void engine_reload(void);

const struct hold_out *engine_lock(const char *name, const char *owner,
                                   uint64_t ttl_ms, uint64_t wait_ms);
const struct hold_out *engine_unlock(const char *name, uint64_t token);
const struct hold_out *engine_renew(const char *name, uint64_t token,
                                    uint64_t ttl_ms);
const struct hold_out *engine_fence(const char *name, uint64_t token);
const struct hold_out *engine_fence_delete(const char *name);
const struct hold_out *engine_set(const char *sku, int64_t total);
const struct hold_out *engine_add(const char *sku, int64_t amount);
const struct hold_out *engine_delete(const char *sku);
/* `items` is "apple 2 pear 1"; id "" makes one. */
const struct hold_out *engine_reserve(const char *id, const char *items,
                                      uint64_t ttl_ms);
const struct hold_out *engine_confirm(const char *id);
const struct hold_out *engine_cancel(const char *id, const char *reason);
const struct hold_out *engine_extend(const char *id, uint64_t ttl_ms);
const struct hold_out *engine_tick(void);
const struct hold_out *engine_abandon(uint64_t ticket);
/* lock "", token 0 and request "" for none. */
const struct hold_out *engine_timeout(const char *lock, uint64_t token,
                                      const char *request);
/* A LOCK whose client was told TIMEOUT. */
const struct hold_out *engine_told(const char *name, const char *owner,
                                   uint64_t ttl_ms, uint64_t wait_ms);
const struct hold_out *engine_restart(int64_t amount);
const struct hold_out *engine_bound(const char *name, uint64_t value);
const struct hold_out *engine_flush(void);

const struct hold_out *engine_info(const char *name);
const struct hold_out *engine_locks(const char *pattern, uint64_t cursor,
                                    uint64_t count);
/* `skus` is "apple pear". */
const struct hold_out *engine_get(const char *skus);
/* Fails unless these are the numbers of a product. */
void engine_has(const char *sku, int available, int reserved, int sold);
const struct hold_out *engine_products(const char *pattern, uint64_t cursor,
                                       uint64_t count);
const struct hold_out *engine_reservation(const char *id);

/* A command as clients write it, its words parted by one space each:
 * engine_do("LOCK %s OWNER ann SHARED", name). What is a question is asked. The
 * REQ, if any, stands among the words. */
const struct hold_out *engine_do(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* The same, not yet applied; its texts last until the next one. */
const struct hold_command *engine_parse(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* Commands as one, parted by "; ", to be applied; its texts last until the next
 * one. `request` NULL: without a REQ. */
const struct hold_command *engine_group_of(const char *request,
                                           const char *commands);
/* The same, applied. */
const struct hold_out *engine_group(const char *request, const char *commands);
/* The connection is gone that had opened or kept a bound session by the event
 * of that number. */
const struct hold_out *engine_left(uint64_t session, uint64_t number);
/* Opens a session; returns its id. */
uint64_t engine_session(uint64_t ttl_ms);
/* The token in the last reply that was a grant; it must be one. */
uint64_t engine_token(const struct hold_out *out);

/* The command that the last call above made, and any command as it is. */
const struct hold_command *engine_last(void);
const struct hold_out *engine_apply(const struct hold_command *command);
/* Applies the last record once more, after HOLD_AGAIN. */
const struct hold_out *engine_again(void);

/* As text: "BUSY name=a waiting=1", "7:OK token=9 ...; 8:MOVED",
 * "9 LOCK_GRANTED a; 10 LOCK_EXPIRED b +5us". Lasts for a few calls. A question
 * that comes too early (NULL) is "EARLY". */
const char *engine_reply_text(const struct hold_out *out);
const char *engine_answers_text(const struct hold_out *out);
const char *engine_events_text(const struct hold_out *out);

#define EXPECT(out, expected)                                                  \
    do {                                                                       \
        const char *text_ = engine_reply_text(out);                            \
        test_check_text(__FILE__, __LINE__, text_, strlen(text_), (expected)); \
    } while (0)

/* The reply begins so. */
#define EXPECT_BEGINS(out, expected)                                        \
    do {                                                                    \
        const char *text_ = engine_reply_text(out);                         \
        size_t len_ = strlen(expected);                                     \
        size_t found_len_ = strlen(text_);                                  \
        test_check_text(__FILE__, __LINE__, text_,                          \
                        found_len_ < len_ ? found_len_ : len_, (expected)); \
    } while (0)

#define EXPECT_ANSWERS(out, expected)                                          \
    do {                                                                       \
        const char *text_ = engine_answers_text(out);                          \
        test_check_text(__FILE__, __LINE__, text_, strlen(text_), (expected)); \
    } while (0)

#define EXPECT_EVENTS(out, expected)                                           \
    do {                                                                       \
        const char *text_ = engine_events_text(out);                           \
        test_check_text(__FILE__, __LINE__, text_, strlen(text_), (expected)); \
    } while (0)

/* hold_check() finds something wrong, and says so in these words. */
#define BROKEN(expected)                                  \
    do {                                                  \
        char error_[256] = "";                            \
        CHECK_EQ(hold_check(engine, error_), HF_CORRUPT); \
        CHECK_TEXT(error_, strlen(error_), (expected));   \
    } while (0)

/* Every invariant holds. */
#define CHECK_ENGINE()                                           \
    do {                                                         \
        char error_[256] = "";                                   \
        if (hold_check(engine, error_) != HF_OK)                 \
            test_fail(__FILE__, __LINE__, "broken: %s", error_); \
    } while (0)

#endif
