/* text.c - tests of the store of short byte strings. */
#include "base/text.h"

#include "base/memory.h"
#include "base/random.h"
#include "support/test.h"

static char content[HF_TEXT_MAX];

static struct hf_bytes make(size_t len, unsigned kind)
{
    for (size_t i = 0; i < len; i++)
        content[i] = (char)(kind + i * 7);
    return hf_bytes(content, len);
}

TEST(the_empty_text_takes_nothing)
{
    struct hf_texts texts;
    struct hf_text text;
    size_t bytes = 0;

    hf_texts_init(&texts, &bytes);
    hf_memory_fail_after(0);
    CHECK_EQ(hf_texts_promise(&texts, 0), HF_OK);
    CHECK_EQ(hf_texts_put(&texts, hf_bytes(NULL, 0), 0, &text), HF_OK);
    CHECK_EQ(hf_texts_put(&texts, hf_bytes("", 0), 500, &text), HF_OK);
    hf_memory_fail_never();
    CHECK_EQ(hf_text_bytes(&texts, text).len, 0);
    hf_texts_drop(&texts, text);
    hf_texts_unpromise(&texts, 0);
    CHECK_EQ(bytes, 0);
    hf_texts_destroy(&texts);
}

TEST(every_length_around_a_size_comes_back_as_it_was)
{
    struct hf_texts texts;
    struct hf_text kept[300];
    size_t lens[300];
    unsigned count = 0;

    hf_texts_init(&texts, NULL);
    for (size_t size = 16; size <= 65536; size += size < 512 ? 16 : size) {
        for (size_t len = size - 1; len <= size + 1; len++) {
            if (len > HF_TEXT_MAX)
                continue;
            lens[count] = len;
            CHECK_EQ(hf_texts_put(&texts, make(len, count), len, &kept[count]),
                     HF_OK);
            count++;
        }
    }
    for (unsigned i = 0; i < count; i++)
        CHECK(hf_bytes_equal(hf_text_bytes(&texts, kept[i]), make(lens[i], i)));
    for (unsigned i = 0; i < count; i++)
        hf_texts_drop(&texts, kept[i]);
    for (unsigned i = 0; i < HF_TEXT_CLASSES; i++)
        CHECK_EQ(texts.slabs[i].used, 0);
    hf_texts_destroy(&texts);
}

#define TEXTS 500

TEST(random_texts_keep_their_content)
{
    struct hf_texts texts;
    struct hf_random random;
    static struct {
        struct hf_text text;
        size_t len;
        unsigned kind;
    } kept[TEXTS];
    unsigned count = 0;

    hf_random_init(&random, test_seed());
    hf_texts_init(&texts, NULL);
    for (unsigned step = 0; step < 30000; step++) {
        if (count < TEXTS && hf_random_below(&random, 2) == 0) {
            size_t len = hf_random_below(&random, 1ull << (step % 11));
            size_t bound = len + hf_random_below(&random, 600);
            kept[count].len = len;
            kept[count].kind = step;
            CHECK_EQ(
                hf_texts_put(&texts, make(len, step), bound, &kept[count].text),
                HF_OK);
            count++;
        } else if (count > 0) {
            unsigned at = (unsigned)hf_random_below(&random, count);
            CHECK(hf_bytes_equal(hf_text_bytes(&texts, kept[at].text),
                                 make(kept[at].len, kept[at].kind)));
            hf_texts_drop(&texts, kept[at].text);
            kept[at] = kept[--count];
        }
    }
    hf_texts_destroy(&texts);
}

/* A text that turns out shorter than promised must not take the slot that
 * another was promised. */
TEST(promises_hold_also_when_the_texts_turn_out_shorter)
{
    struct hf_texts texts;
    struct hf_random random;
    struct hf_text kept[64];
    size_t bounds[64];

    hf_random_init(&random, test_seed());
    hf_texts_init(&texts, NULL);
    for (int round = 0; round < 2000; round++) {
        unsigned count = 1 + (unsigned)hf_random_below(&random, 64);
        for (unsigned i = 0; i < count; i++) {
            bounds[i] = hf_random_below(&random, round % 2 ? 2000 : 60);
            CHECK_EQ(hf_texts_promise(&texts, bounds[i]), HF_OK);
        }
        hf_memory_fail_after(0);
        for (unsigned i = 0; i < count; i++) {
            size_t len = hf_random_below(&random, bounds[i] + 1);
            CHECK_EQ(hf_texts_put(&texts, make(len, i), bounds[i], &kept[i]),
                     HF_OK);
            CHECK(hf_bytes_equal(hf_text_bytes(&texts, kept[i]), make(len, i)));
            hf_texts_unpromise(&texts, bounds[i]);
        }
        hf_memory_fail_never();
        for (unsigned i = 0; i < count; i++)
            hf_texts_drop(&texts, kept[i]);
    }
    hf_texts_destroy(&texts);
}

TEST(without_memory_nothing_is_put)
{
    struct hf_texts texts;
    struct hf_text text;

    hf_texts_init(&texts, NULL);
    for (uint64_t allowed = 0; allowed < 2; allowed++) {
        hf_memory_fail_after(allowed);
        CHECK_EQ(hf_texts_promise(&texts, 100), HF_NOMEM);
        CHECK_EQ(hf_texts_put(&texts, make(100, 0), 100, &text), HF_NOMEM);
        hf_memory_fail_never();
    }
    CHECK_EQ(hf_texts_put(&texts, make(100, 0), 100, &text), HF_OK);
    hf_texts_destroy(&texts);
}

TEST(cleared_texts_make_room_for_others)
{
    struct hf_texts texts;
    struct hf_text text;
    size_t bytes = 0;

    hf_texts_init(&texts, &bytes);
    for (size_t len = 1; len < 3000; len++)
        CHECK_EQ(hf_texts_put(&texts, make(len, 1), len, &text), HF_OK);
    CHECK_EQ(hf_texts_promise(&texts, 40000), HF_OK);
    hf_texts_clear(&texts);
    hf_memory_fail_after(0);
    for (size_t len = 1; len < 3000; len++)
        CHECK_EQ(hf_texts_put(&texts, make(len, 1), len, &text), HF_OK);
    CHECK_EQ(hf_texts_put(&texts, make(9000, 1), 40000, &text), HF_OK);
    hf_memory_fail_never();
    CHECK(hf_bytes_equal(hf_text_bytes(&texts, text), make(9000, 1)));
    hf_texts_destroy(&texts);
}

TEST(a_length_has_the_smallest_size_that_takes_it)
{
    CHECK_EQ(hf_texts_class(1), 0);
    for (uint32_t i = 0; i < HF_TEXT_CLASSES; i++) {
        size_t most = hf_texts_class_max(i);
        CHECK_EQ(hf_texts_class(most), i);
        if (i + 1 < HF_TEXT_CLASSES)
            CHECK_EQ(hf_texts_class(most + 1), i + 1);
    }
    CHECK_EQ(hf_texts_class_max(HF_TEXT_CLASSES - 1), HF_TEXT_MAX);
}

TEST(promised_memory_that_was_not_used_is_given_back)
{
    struct hf_texts texts;
    size_t bytes = 0;

    hf_texts_init(&texts, &bytes);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(hf_texts_promise(&texts, 40000), HF_OK);
    CHECK(bytes > 100 * 40000);
    for (int i = 0; i < 100; i++) {
        hf_texts_unpromise(&texts, 40000);
        hf_slab_trim(hf_texts_slab(&texts, 40000));
    }
    CHECK(bytes <= 3 * 128 * 1024);
    hf_texts_destroy(&texts);
}

/* What is taken back must leave no memory behind. */
TEST(where_it_may_be_taken_back_a_short_text_takes_what_was_promised)
{
    struct hf_texts texts;
    struct hf_text text;
    struct hf_undo undo = {.on = false};
    size_t bytes = 0;

    hf_texts_init(&texts, &bytes);
    for (size_t i = 0; i < HF_TEXT_CLASSES; i++)
        texts.slabs[i].undo = &undo;
    CHECK_EQ(hf_texts_promise(&texts, 1000), HF_OK);
    hf_texts_unpromise(&texts, 1000);
    CHECK_EQ(hf_undo_reserve(&undo, 1 << 16), HF_OK);
    size_t before = bytes;
    hf_undo_begin(&undo);
    CHECK_EQ(hf_texts_put(&texts, hf_bytes("abc", 3), 1000, &text), HF_OK);
    CHECK_EQ(text.size_class, hf_texts_class(1000));
    CHECK_EQ(bytes, before);
    hf_undo_back(&undo);
    CHECK_EQ(hf_texts_put(&texts, hf_bytes("abc", 3), 1000, &text), HF_OK);
    CHECK_EQ(text.size_class, hf_texts_class(3)); /* else memory is made */
    hf_texts_destroy(&texts);
    hf_undo_destroy(&undo);
}
