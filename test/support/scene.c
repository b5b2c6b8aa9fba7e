/* scene.c - a server with something in it, which bad clients must not change.
 */
#include "support/scene.h"

#include <inttypes.h>

#include "support/test.h"

/* A sanitizer keeps freed memory for a while, and shadows of all. */
#define SANITIZER_GROWTH_KB (1024u * 1024)

static struct test_scene scene;

static void show_fields(struct hf_buf *out, struct hf_bytes map,
                        const char *const *texts, const char *const *numbers)
{
    enum hf_status status = HF_OK;

    for (; *texts != NULL && status == HF_OK; texts++) {
        struct hf_bytes text = test_text(map, *texts);
        status =
            hf_buf_format(out, "%s %.*s ", *texts, (int)text.len, text.data);
    }
    for (; *numbers != NULL && status == HF_OK; numbers++)
        status = hf_buf_format(out, "%s %" PRId64 " ", *numbers,
                               test_number(map, *numbers));
    if (status == HF_OK)
        status = hf_buf_append(out, "\n", 1);
    CHECK_EQ(status, HF_OK);
}

/* All pages of a listing. */
static void show_list(struct test_wire *wire, struct hf_buf *out,
                      const char *command, const char *field,
                      const char *const *texts, const char *const *numbers)
{
    int64_t cursor = 0;

    do {
        struct hf_bytes reply = test_ask(
            wire, "%s * CURSOR %" PRId64 " COUNT 1000", command, cursor);
        struct hf_bytes list = test_part(reply, field);
        size_t count = test_length(list);
        cursor = test_number(reply, "cursor");
        if (cursor < 0)
            test_fail(__FILE__, __LINE__, "%s answered %.*s", command,
                      (int)(reply.len < 200 ? reply.len : 200), reply.data);
        for (size_t i = 0; i < count; i++)
            show_fields(out, test_element(list, i), texts, numbers);
    } while (cursor != 0);
}

void test_show(struct test_wire *wire, struct hf_buf *out)
{
    static const char *const lock_texts[] = {"name", "owner", NULL};
    static const char *const lock_numbers[] = {"token", "count", "waiting",
                                               NULL};
    static const char *const sku_texts[] = {"sku", NULL};
    static const char *const sku_numbers[] = {"total", "available", "reserved",
                                              "sold",  "version",   NULL};

    show_list(wire, out, "LOCKS", "locks", lock_texts, lock_numbers);
    show_list(wire, out, "STOCK LIST", "products", sku_texts, sku_numbers);
}

static void show_all(struct hf_buf *out)
{
    static const char *const texts[] = {"id", "status", NULL};
    static const char *const numbers[] = {NULL};

    test_show(&scene.good, out);
    show_fields(out, test_ask(&scene.good, "RESERVATION order"), texts,
                numbers);
}

struct test_scene *test_scene_open(void)
{
    hf_buf_destroy(&scene.before); /* what a failed test left */
    scene.growth_kb = TEST_SCENE_GROWTH_KB;
    test_server_begin(&scene.server, &scene.good,
                      &(struct test_server_opts){.dir = NULL});
    scene.token = (uint64_t)test_number(
        test_ask(&scene.good, "LOCK held OWNER keeper TTL 86400000"), "token");
    CHECK_DONE(test_ask(&scene.good, "STOCK SET bolt 100"));
    CHECK_DONE(test_ask(&scene.good, "STOCK SET nut 50"));
    CHECK_DONE(test_ask(&scene.good, "RESERVE order ITEM bolt 7 ITEM nut 3 "
                                     "TTL 86400000"));
    show_all(&scene.before);
    scene.memory_kb = test_server_memory_kb(&scene.server);
    return &scene;
}

void test_scene_check(struct test_scene *one)
{
    CHECK_REPLY(test_ask(&one->good, "PING"), "+PONG");
    uint64_t now_kb = test_server_memory_kb(&one->server);
    uint64_t limit_kb = one->memory_kb + one->growth_kb +
                        (test_is_sanitized() ? SANITIZER_GROWTH_KB : 0);
    if (now_kb > limit_kb)
        test_fail(__FILE__, __LINE__,
                  "the server grew from %" PRIu64 " to %" PRIu64 " KiB",
                  one->memory_kb, now_kb);
}

void test_scene_await(struct test_scene *one, const char *lock, int count)
{
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;
    int64_t found;

    do {
        found =
            test_number(test_ask(&one->good, "LOCKINFO %s", lock), "waiting");
        if (test_now_ms() > end_ms)
            test_fail(__FILE__, __LINE__, "%s: %d should wait, found %" PRId64,
                      lock, count, found);
    } while (found != count);
}

void test_scene_close(struct test_scene *one)
{
    struct hf_buf after = {0};

    test_scene_check(one);
    show_all(&after);
    if (!hf_bytes_equal(hf_buf_bytes(&after), hf_buf_bytes(&one->before)))
        test_fail(__FILE__, __LINE__, "it showed %.*s, and now %.*s",
                  (int)one->before.len, one->before.data, (int)after.len,
                  after.data);
    hf_buf_destroy(&after);
    test_server_finish(&one->server, &one->good);
    hf_buf_destroy(&one->before);
}
