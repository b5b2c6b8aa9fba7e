/* undo.c - tests of changes that can be taken back. */
#include "base/undo.h"

#include "base/heap.h"
#include "base/index.h"
#include "base/memory.h"
#include "base/random.h"
#include "support/test.h"

TEST_ONE_THREAD;

TEST(what_was_noted_comes_back_the_oldest_bytes_last)
{
    struct hf_undo undo = {0};
    char text[16] = "abcdefgh";

    hf_undo_begin(&undo);
    memcpy(hf_undo_keep(&undo, text, 3), "xyz", 3);
    memcpy(hf_undo_keep(&undo, text + 2, 4), "1234", 4);
    memcpy(hf_undo_keep(&undo, text, 8), "--------", 8);
    hf_undo_back(&undo);
    CHECK_TEXT(text, 8, "abcdefgh");
    CHECK(!undo.on);
    hf_undo_destroy(&undo);
}

TEST(what_ended_stays_and_is_forgotten)
{
    struct hf_undo undo = {0};
    char text[8] = "old";

    hf_undo_begin(&undo);
    memcpy(hf_undo_keep(&undo, text, 3), "new", 3);
    hf_undo_end(&undo);
    CHECK_TEXT(text, 3, "new");
    hf_undo_begin(&undo);
    hf_undo_back(&undo); /* nothing was noted since */
    CHECK_TEXT(text, 3, "new");
    hf_undo_destroy(&undo);
}

TEST(nothing_is_noted_while_it_is_off)
{
    struct hf_undo undo = {0};
    int number = 1;

    CHECK(hf_undo_keep(&undo, &number, sizeof number) == &number);
    CHECK(hf_undo_keep(&hf_undo_none, &number, sizeof number) == &number);
    CHECK(undo.log == NULL);
}

TEST(what_was_reserved_needs_no_memory)
{
    struct hf_undo undo = {0};
    char bytes[100] = "before";

    CHECK_EQ(hf_undo_reserve(&undo, 3 * HF_UNDO_NOTE_BYTES(100)), HF_OK);
    hf_memory_fail_after(0);
    CHECK_EQ(hf_undo_reserve(&undo, 100000), HF_NOMEM);
    hf_undo_begin(&undo);
    for (int i = 0; i < 3; i++)
        memset(hf_undo_keep(&undo, bytes, 100), i, 100);
    hf_memory_fail_never();
    hf_undo_back(&undo);
    CHECK_TEXT(bytes, 6, "before");
    hf_undo_destroy(&undo);
}

/* An index, its texts and a heap, all of whose changes are noted. */
struct record {
    struct hf_named named;
    uint64_t value;
    uint32_t place;
};
static struct hf_undo undo;
static struct hf_texts texts;
static struct hf_index records;
static struct hf_heap heap;
static size_t bytes;

static struct record *edit(uint32_t number)
{
    return hf_undo_keep(&undo, hf_index_at(&records, number),
                        sizeof(struct record));
}

static void moved(void *context, uint32_t ref, uint32_t position)
{
    (void)context;
    edit(ref)->place = position;
}

static void start(void)
{
    hf_texts_init(&texts, &bytes);
    CHECK_EQ(hf_index_init(&records, sizeof(struct record), &texts,
                           (struct hf_hash_seed){{1, 2}}, &bytes),
             HF_OK);
    hf_heap_init(&heap, moved, NULL, &bytes);
    records.slab.undo = heap.undo = &undo;
    for (size_t i = 0; i < HF_TEXT_CLASSES; i++)
        texts.slabs[i].undo = &undo;
}

static void stop(void)
{
    hf_index_destroy(&records);
    hf_texts_destroy(&texts);
    hf_heap_destroy(&heap);
    hf_undo_destroy(&undo);
}

static struct hf_bytes name_of(uint64_t i, char out[64])
{
    int len =
        snprintf(out, 64, "%llu%.*s", (unsigned long long)i, (int)(i % 40),
                 "----------------------------------------");

    return hf_bytes(out, (size_t)len);
}

static void change(uint64_t i, uint64_t value)
{
    char text[64];
    struct hf_bytes name = name_of(i, text);
    uint32_t number = hf_index_find(&records, name);

    if (number != 0 && value % 3 == 0) {
        hf_heap_remove(&heap, edit(number)->place);
        hf_index_remove(&records, number);
    } else if (number != 0) {
        edit(number)->value = value;
        hf_heap_change(&heap, edit(number)->place, value, i);
    } else {
        number = hf_index_add(&records, name);
        edit(number)->value = value;
        CHECK_EQ(hf_heap_add(&heap, (struct hf_heap_entry){value, i, number}),
                 HF_OK);
    }
}

/* All that can be seen of them. */
static uint64_t digest(void)
{
    uint64_t sum = hf_index_count(&records) * 31 + heap.count;
    char text[64];

    for (uint64_t i = 0; i < 200; i++) {
        uint32_t number = hf_index_find(&records, name_of(i, text));
        if (number != 0) {
            const struct record *record = hf_index_at(&records, number);
            CHECK(record->place >= 1 && record->place <= heap.count);
            CHECK_EQ(heap.entries[record->place].ref, number);
            sum = sum * 1000003 + record->value * 7 + i;
        }
    }
    for (uint32_t i = 1; i <= heap.count; i++)
        sum = sum * 1000003 + heap.entries[i].when + heap.entries[i].ref;
    return sum;
}

/* Headers are plain memory: whoever uses them notes them. */
static void note_headers(void)
{
    hf_undo_note(&undo, &texts, sizeof texts);
    hf_undo_note(&undo, &records, sizeof records);
    hf_undo_note(&undo, &heap, sizeof heap);
}

TEST(tables_texts_and_heaps_are_as_they_were)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    start();
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < 20; i++)
            change(hf_random_below(&random, 200), hf_random_below(&random, 99));
        for (size_t i = 0; i < HF_TEXT_CLASSES; i++)
            CHECK_EQ(hf_slab_promise(&texts.slabs[i], 40), HF_OK);
        CHECK_EQ(hf_slab_promise(&records.slab, 40), HF_OK);
        for (int i = 0; i < 40; i++)
            CHECK_EQ(hf_heap_promise(&heap), HF_OK);
        uint64_t before = digest();
        hf_undo_begin(&undo);
        note_headers();
        for (int i = 0; i < 40; i++)
            change(hf_random_below(&random, 200), hf_random_below(&random, 99));
        if (round % 3 == 0) {
            hf_undo_end(&undo);
        } else {
            hf_undo_back(&undo);
            CHECK(digest() == before);
        }
        for (size_t i = 0; i < HF_TEXT_CLASSES; i++)
            hf_slab_unpromise(&texts.slabs[i], 40);
        hf_slab_unpromise(&records.slab, 40);
        for (int i = 0; i < 40; i++)
            hf_heap_unpromise(&heap);
    }
    stop();
}
