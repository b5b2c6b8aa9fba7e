/* tail.c - tests of which last lines are kept. */
#include "cli/tail.h"

#include "support/test.h"

static struct tail tail;

/* What is kept of `text`, handed over in pieces of `step` bytes. */
static struct hf_bytes kept(const char *text, size_t step)
{
    size_t len = strlen(text);

    tail = (struct tail){.fd = -1};
    for (size_t at = 0; at < len; at += step)
        tail_keep(&tail, text + at, len - at < step ? len - at : step);
    return tail_lines(&tail);
}

TEST(what_fits_is_kept_whole_without_the_last_line_break)
{
    CHECK(hf_bytes_is(kept("", 1), ""));
    CHECK(hf_bytes_is(kept("\n", 1), ""));
    CHECK(hf_bytes_is(kept("one\ntwo\n", 3), "one\ntwo"));
    CHECK(hf_bytes_is(kept("one\ntwo", 100), "one\ntwo"));
    CHECK(hf_bytes_is(kept("one\n\n", 100), "one\n"));
}

/* Lines of every length around the limit, against a plain search. */
TEST(as_many_whole_lines_as_fit_are_kept)
{
    char text[4 * TAIL_MAX];

    for (size_t first = 0; first < 2 * TAIL_MAX; first++) {
        for (size_t last = 0; last < TAIL_MAX + 3; last += 1 + last / 8) {
            size_t len = 0;
            memset(text, 'a', first);
            len += first;
            text[len++] = '\n';
            memset(text + len, 'b', last);
            len += last;
            text[len] = '\0';
            const char *want = text;
            size_t whole = last > 0 ? len : len - 1;
            while (strlen(want) - (len - whole) > TAIL_MAX) {
                const char *next = strchr(want, '\n');
                want = next != NULL && next < text + whole
                           ? next + 1
                           : text + whole - TAIL_MAX;
            }
            struct hf_bytes wanted =
                hf_bytes(want, (size_t)(text + whole - want));
            for (size_t step = 1; step <= 512; step *= 8) {
                struct hf_bytes found = kept(text, step);
                CHECK(found.len == wanted.len &&
                      memcmp(found.data, wanted.data, found.len) == 0);
            }
        }
    }
}

TEST(of_a_line_that_does_not_fit_the_end_is_kept)
{
    char text[TAIL_MAX + 3];

    memset(text, 'x', sizeof text);
    text[0] = 'a';
    text[sizeof text - 2] = 'z';
    text[sizeof text - 1] = '\0';
    struct hf_bytes found = kept(text, 7);
    CHECK_EQ(found.len, TAIL_MAX);
    CHECK_EQ(found.data[0], 'x');
    CHECK_EQ(found.data[found.len - 1], 'z');
}
