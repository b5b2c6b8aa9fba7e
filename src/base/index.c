/* index.c - linear hashing over the records of a slab. */
#include "base/index.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

#define SEGMENT_SHIFT   12
#define SEGMENT_BUCKETS (1u << SEGMENT_SHIFT)
#define BUCKETS_MAX     (1u << 30)
#define SEGMENT_BYTES   (SEGMENT_BUCKETS * sizeof(uint32_t))

/* Segments that are allocated one by one; from then on a huge block is cut
 * into segments. */
#define SINGLE_SEGMENTS 64u
#define BLOCK_SEGMENTS  (HF_HUGE_BYTES / SEGMENT_BYTES)

/* Marks a hash as in use; the buckets are chosen by the bits below it. */
#define IN_USE 0x80000000u

static uint32_t *bucket_at(const struct hf_index *index, uint32_t bucket)
{
    return &index->segments[bucket >> SEGMENT_SHIFT]
                           [bucket & (SEGMENT_BUCKETS - 1)];
}

static uint32_t *bucket_of(const struct hf_index *index, uint32_t hash)
{
    uint32_t bucket = hash & (2 * index->low - 1);

    if (bucket >= index->buckets)
        bucket = hash & (index->low - 1);
    return bucket_at(index, bucket);
}

static uint32_t block_segments(uint32_t first)
{
    return first < SINGLE_SEGMENTS ? 1 : (uint32_t)BLOCK_SEGMENTS;
}

static enum hf_status add_segment(struct hf_index *index)
{
    uint32_t more = block_segments(index->segment_count);
    uint32_t count = index->segment_count + more;
    size_t bytes = more * SEGMENT_BYTES;

    if (count > index->segment_cap) {
        uint32_t cap = index->segment_cap ? index->segment_cap : 4;
        while (cap < count)
            cap *= 2;
        uint32_t **segments =
            hf_realloc(index->segments, cap * sizeof *segments);
        if (segments == NULL)
            return HF_NOMEM;
        index->segments = segments;
        index->segment_cap = cap;
    }
    uint32_t *block = more == 1 ? hf_alloc(bytes) : hf_alloc_huge();
    if (block == NULL)
        return HF_NOMEM;
    memset(block, 0, bytes);
    for (uint32_t i = 0; i < more; i++)
        index->segments[index->segment_count + i] = block + i * SEGMENT_BUCKETS;
    index->segment_count = count;
    *index->account += bytes;
    return HF_OK;
}

enum hf_status hf_index_init(struct hf_index *index, size_t record_bytes,
                             struct hf_texts *texts, struct hf_hash_seed seed,
                             size_t *account)
{
    *index = (struct hf_index){
        .texts = texts, .buckets = 1, .low = 1, .account = account};
    hf_hasher_init(&index->hasher, seed);
    hf_slab_init(&index->slab, record_bytes, account);
    enum hf_status status = add_segment(index);
    if (status != HF_OK)
        hf_index_destroy(index);
    return status;
}

void hf_index_destroy(struct hf_index *index)
{
    for (uint32_t i = 0; i < index->segment_count; i += block_segments(i))
        hf_free(index->segments[i]);
    hf_free(index->segments);
    index->segments = NULL;
    index->segment_count = 0;
    index->segment_cap = 0;
    hf_slab_destroy(&index->slab);
}

void hf_index_expect(struct hf_index *index, uint64_t count)
{
    assert(index->slab.used == 0);
    if (count > HF_INDEX_EXPECT_MAX)
        count = HF_INDEX_EXPECT_MAX;
    while ((uint64_t)index->segment_count << SEGMENT_SHIFT < count) {
        if (add_segment(index) != HF_OK)
            break;
    }
    uint64_t room = (uint64_t)index->segment_count << SEGMENT_SHIFT;
    if (count > room)
        count = room;
    if (count <= index->buckets)
        return;
    index->buckets = (uint32_t)count;
    while (2 * (uint64_t)index->low <= count)
        index->low *= 2;
}

void hf_index_clear(struct hf_index *index)
{
    for (uint32_t i = 0; i < index->segment_count; i++)
        memset(index->segments[i], 0, SEGMENT_BYTES);
    hf_slab_clear(&index->slab);
}

enum hf_status hf_index_promise(struct hf_index *index, size_t name_len)
{
    enum hf_status status = hf_slab_promise(&index->slab, 1);

    if (status != HF_OK)
        return status;
    status = hf_texts_promise(index->texts, name_len);
    if (status != HF_OK)
        hf_slab_unpromise(&index->slab, 1);
    return status;
}

void hf_index_unpromise(struct hf_index *index, size_t name_len)
{
    hf_slab_unpromise(&index->slab, 1);
    hf_texts_unpromise(index->texts, name_len);
}

uint32_t hf_index_find(const struct hf_index *index, struct hf_bytes name)
{
    return hf_index_find_hashed(index, hf_index_hash(index, name), name);
}

uint32_t hf_index_find_hashed(const struct hf_index *index, uint32_t hash,
                              struct hf_bytes name)
{
    hash |= IN_USE;
    for (uint32_t number = *bucket_of(index, hash); number != 0;) {
        struct hf_named *named = hf_slab_at(&index->slab, number);
        if (named->hash == hash &&
            hf_bytes_equal(hf_text_bytes(index->texts, named->name), name))
            return number;
        number = named->next;
    }
    return 0;
}

/* Splits the bucket whose turn it is. Skipped without memory: correct, only
 * slower. */
static void grow(struct hf_index *index)
{
    uint32_t fresh = index->buckets;

    if (fresh >= BUCKETS_MAX || index->slab.undo->on)
        return; /* what may be taken back is not moved */
    if (fresh >> SEGMENT_SHIFT == index->segment_count &&
        add_segment(index) != HF_OK)
        return;
    if (fresh == 2 * index->low)
        index->low *= 2;
    uint32_t *from = bucket_at(index, fresh - index->low);
    uint32_t *into = bucket_at(index, fresh);
    assert(*into == 0);
    index->buckets++;
    while (*from != 0) {
        struct hf_named *named = hf_slab_at(&index->slab, *from);
        if ((named->hash & (2 * index->low - 1)) == fresh) {
            uint32_t moved = *from;
            *from = named->next;
            named->next = 0;
            *into = moved;
            into = &named->next;
        } else {
            from = &named->next;
        }
    }
}

static inline void set_link(struct hf_index *index, uint32_t *link,
                            uint32_t number)
{
    *(uint32_t *)hf_undo_keep(index->slab.undo, link, sizeof *link) = number;
}

uint32_t hf_index_add(struct hf_index *index, struct hf_bytes name)
{
    return hf_index_add_hashed(index, hf_index_hash(index, name), name);
}

uint32_t hf_index_add_hashed(struct hf_index *index, uint32_t hash,
                             struct hf_bytes name)
{
    struct hf_text text;
    uint32_t number;

    if (hf_texts_put(index->texts, name, name.len, &text) != HF_OK)
        return 0;
    number = hf_slab_take(&index->slab);
    if (number == 0) {
        hf_texts_drop(index->texts, text);
        return 0;
    }
    if (index->slab.used > index->buckets)
        grow(index);
    struct hf_named *named = hf_slab_at(&index->slab, number);
    named->hash = hash | IN_USE;
    named->name = text;
    uint32_t *bucket = bucket_of(index, named->hash);
    named->next = *bucket;
    set_link(index, bucket, number);
    return number;
}

void hf_index_catch_up(struct hf_index *index)
{
    uint32_t before = 0;

    while (index->slab.used > index->buckets && index->buckets != before) {
        before = index->buckets;
        grow(index);
    }
}

void hf_index_remove(struct hf_index *index, uint32_t number)
{
    struct hf_named *named = hf_slab_at(&index->slab, number);
    uint32_t *link = bucket_of(index, named->hash);

    while (*link != number) {
        assert(*link != 0);
        link = &((struct hf_named *)hf_slab_at(&index->slab, *link))->next;
    }
    set_link(index, link, named->next);
    hf_texts_drop(index->texts, named->name);
    hf_slab_give_at(&index->slab, number, named);
}
