/* index.c - linear hashing over the records of a slab. */
#include "base/index.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

#define SEGMENT_SHIFT   12
#define SEGMENT_BUCKETS (1u << SEGMENT_SHIFT)
#define BUCKETS_MAX     (1u << 30)

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

static enum hf_status add_segment(struct hf_index *index)
{
    size_t bytes = SEGMENT_BUCKETS * sizeof(uint32_t);

    if (index->segment_count == index->segment_cap) {
        uint32_t cap = index->segment_cap ? index->segment_cap * 2 : 4;
        uint32_t **segments =
            hf_realloc(index->segments, cap * sizeof *segments);
        if (segments == NULL)
            return HF_NOMEM;
        index->segments = segments;
        index->segment_cap = cap;
    }
    uint32_t *segment = hf_alloc_zeroed(bytes);
    if (segment == NULL)
        return HF_NOMEM;
    index->segments[index->segment_count++] = segment;
    *index->account += bytes;
    return HF_OK;
}

enum hf_status hf_index_init(struct hf_index *index, size_t record_bytes,
                             struct hf_texts *texts, struct hf_hash_seed seed,
                             size_t *account)
{
    *index = (struct hf_index){.texts = texts,
                               .seed = seed,
                               .buckets = 1,
                               .low = 1,
                               .account = account};
    hf_slab_init(&index->slab, record_bytes, account);
    enum hf_status status = add_segment(index);
    if (status != HF_OK)
        hf_index_release(index);
    return status;
}

void hf_index_release(struct hf_index *index)
{
    for (uint32_t i = 0; i < index->segment_count; i++)
        hf_free(index->segments[i]);
    hf_free(index->segments);
    index->segments = NULL;
    index->segment_count = 0;
    index->segment_cap = 0;
    hf_slab_release(&index->slab);
}

void hf_index_clear(struct hf_index *index)
{
    for (uint32_t i = 0; i < index->segment_count; i++)
        memset(index->segments[i], 0, SEGMENT_BUCKETS * sizeof(uint32_t));
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

    if (fresh >= BUCKETS_MAX)
        return;
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
    *bucket = number;
    return number;
}

void hf_index_remove(struct hf_index *index, uint32_t number)
{
    struct hf_named *named = hf_slab_at(&index->slab, number);
    uint32_t *link = bucket_of(index, named->hash);

    while (*link != number) {
        assert(*link != 0);
        link = &((struct hf_named *)hf_slab_at(&index->slab, *link))->next;
    }
    *link = named->next;
    hf_texts_drop(index->texts, named->name);
    hf_slab_give(&index->slab, number);
}
