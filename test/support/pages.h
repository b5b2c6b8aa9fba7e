/* pages.h - all that EVENTS tells, page by page, for tests. */
#ifndef TEST_SUPPORT_PAGES_H
#define TEST_SUPPORT_PAGES_H

#include <inttypes.h>
#include <stdlib.h>

#include "resp/resp.h"
#include "support/test.h"
#include "support/wire.h"

struct pages {
    struct hf_buf bytes; /* the events as they came, one behind the other */
    struct hf_buf seqs;  /* their numbers: int64_t */
    size_t count;
    size_t pages;
    size_t gaps; /* told */
    int64_t gap; /* the last one, or 0 */
    int64_t next;
};

static inline int64_t pages_seq(const struct pages *pages, size_t index)
{
    CHECK(index < pages->count);
    return ((const int64_t *)(const void *)pages->seqs.data)[index];
}

/* Back to the start, which is where they go on from. */
static inline void pages_clear(struct pages *pages, int64_t from)
{
    pages->bytes.len = pages->seqs.len = 0;
    pages->count = pages->pages = pages->gaps = 0;
    pages->gap = 0;
    pages->next = from;
}

/* Adds a reply to EVENTS FROM pages->next, which must be as it is to be. */
static inline void pages_add(struct pages *pages, struct hf_bytes reply)
{
    int64_t from = pages->next;
    int64_t gap = test_number(reply, "gap");

    if (gap == TEST_NO_NUMBER)
        test_fail(__FILE__, __LINE__, "no page: %.*s", HF_SHOW(reply));
    CHECK(gap == 0 || gap > from);
    if (gap > 0) {
        pages->gaps++;
        pages->gap = from = gap;
    }
    struct hf_bytes events = test_part(reply, "events");
    size_t count = test_length(events);
    size_t at = 0;
    struct resp_value head;
    if (count > 0)
        CHECK_EQ(resp_read(events, &at, &head), HF_OK);
    for (size_t i = 0; i < count; i++) {
        size_t start = at;
        CHECK_EQ(resp_skip(events, &at), HF_OK);
        struct hf_bytes event = hf_bytes(events.data + start, at - start);
        int64_t seq = test_number(event, "seq");
        CHECK(seq > from);
        from = seq;
        CHECK_EQ(hf_buf_append(&pages->bytes, event.data, event.len), HF_OK);
        CHECK_EQ(hf_buf_append(&pages->seqs, &seq, sizeof seq), HF_OK);
    }
    pages->count += count;
    pages->pages++;
    CHECK(test_number(reply, "next") >= from);
    pages->next = test_number(reply, "next");
}

/* Asks for what comes next until there is no more; `more` are options. */
static inline void pages_read(struct pages *pages, struct test_wire *wire,
                              const char *more)
{
    int64_t from;
    size_t before;

    do {
        from = pages->next;
        before = pages->count;
        pages_add(pages, test_ask(wire, "EVENTS FROM %" PRId64 "%s%s", from,
                                  more[0] == '\0' ? "" : " ", more));
    } while (pages->next > from || pages->count > before);
}

static inline void pages_free(struct pages *pages)
{
    hf_buf_destroy(&pages->bytes);
    hf_buf_destroy(&pages->seqs);
}

#endif
