/* Tests of hf_inspect: every open object is listed, in both forms. */
#include "holdfast/inspect.h"

#include "base/memory.h"
#include "support/test.h"
#include "support/threads.h"
#include "sync/listed.h"

struct thing {
    struct hf_listed listed;
    struct hf_inspect_row figures;
};

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    const struct thing *thing = (const struct thing *)(const void *)listed;

    row->depth = thing->figures.depth;
    row->capacity = thing->figures.capacity;
    row->oldest_ns = thing->figures.oldest_ns;
}

static const char *text(enum hf_inspect_form form)
{
    static char out[8192];
    CHECK(hf_inspect_text(form, out, sizeof out) < sizeof out);
    return out;
}

TEST(an_object_is_listed_from_open_to_close)
{
    struct thing thing = {.figures = {.depth = 7, .capacity = 9}};

    thing.figures.oldest_ns = 5000000;
    hf_listed_add(&thing.listed, "thing", "seven", fill);
    CHECK(strstr(text(HF_INSPECT_TEXT), "seven") != NULL);
    const char *found = strstr(text(HF_INSPECT_TEXT), "thing");
    char kind[16];
    char name[16];
    unsigned depth;
    unsigned capacity;
    unsigned oldest_ms;
    char rejected[8];
    CHECK(found != NULL);
    CHECK_EQ(sscanf(found, "%15s %15s %u %u %u %7s", kind, name, &depth,
                    &capacity, &oldest_ms, rejected),
             6);
    CHECK_EQ(depth, 7);
    CHECK_EQ(capacity, 9);
    CHECK_EQ(oldest_ms, 5);
    CHECK_TEXT(rejected, strlen(rejected), "-"); /* it has no such figure */
    hf_listed_remove(&thing.listed);
    CHECK(strstr(text(HF_INSPECT_TEXT), "seven") == NULL);
}

TEST(prometheus_gets_base_units_types_and_escaped_names)
{
    struct thing thing = {.figures = {.depth = 3, .capacity = 4}};

    thing.figures.oldest_ns = 1500000000;
    hf_listed_add(&thing.listed, "thing", "a\"b\\c\nd", fill);
    const char *out = text(HF_INSPECT_PROMETHEUS);
    CHECK(strstr(out, "# TYPE holdfast_object_depth gauge\n") != NULL);
    CHECK(strstr(out, "# TYPE holdfast_object_rejected_total counter\n"));
    CHECK(strstr(out, "holdfast_object_oldest_seconds{kind=\"thing\","
                      "name=\"a\\\"b\\\\c\\nd\",index=\"0\"} 1.5\n"));
    CHECK(strstr(out, "holdfast_object_wait_p99_seconds{") == NULL);
    hf_listed_remove(&thing.listed);
}

TEST(long_names_are_cut_and_none_is_shown_as_none)
{
    struct thing a = {.figures = {.depth = 1}};
    struct thing b = {.figures = {.depth = 2}};

    hf_listed_add(&a.listed, "a", "0123456789012345678901234567890123456789",
                  fill);
    hf_listed_add(&b.listed, "b", NULL, fill);
    CHECK_EQ(strlen(a.listed.name), HF_NAME_BYTES - 1);
    CHECK_EQ(strlen(b.listed.name), 0);
    hf_listed_remove(&a.listed);
    CHECK(strstr(text(HF_INSPECT_TEXT), "b            -") != NULL);
    hf_listed_remove(&b.listed);
}

TEST(a_buffer_that_is_too_small_is_filled_and_terminated)
{
    char out[10];

    memset(out, 'x', sizeof out);
    size_t whole = hf_inspect_text(HF_INSPECT_TEXT, NULL, 0);
    CHECK(whole > sizeof out);
    CHECK_EQ(hf_inspect_text(HF_INSPECT_TEXT, out, sizeof out), whole);
    CHECK_EQ(strlen(out), sizeof out - 1);
}

static void count_row(void *context, const struct hf_inspect_row *row)
{
    (void)row;
    ++*(unsigned *)context;
}

TEST(bad_input_and_no_memory_are_told)
{
    unsigned count = 0;

    CHECK_EQ(hf_inspect(NULL, NULL), HF_INVALID);
    hf_memory_fail_after(0);
    CHECK_EQ(hf_inspect(count_row, &count), HF_NOMEM);
    CHECK_EQ(hf_inspect_text(HF_INSPECT_TEXT, NULL, 0), 0);
    hf_memory_fail_never();
    CHECK_EQ(hf_inspect(count_row, &count), HF_OK);
    CHECK_EQ(count, 0);
}

static void open_and_look(void *context, int index)
{
    struct thing thing = {.figures = {.depth = (uint64_t)index}};
    unsigned count = 0;

    (void)context;
    for (int i = 0; i < 200; i++) {
        hf_listed_add(&thing.listed, "thing", "busy", fill);
        (void)hf_inspect(count_row, &count);
        hf_listed_remove(&thing.listed);
    }
}

TEST(objects_come_and_go_while_others_look)
{
    unsigned left = 0;

    test_threads(4, open_and_look, NULL);
    CHECK_EQ(hf_inspect(count_row, &left), HF_OK);
    CHECK_EQ(left, 0);
}
