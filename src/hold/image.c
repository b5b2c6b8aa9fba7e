/* image.c - saves and loads the whole state, and sums it up in a digest.
 *
 * One walk produces the entries in a fixed order; saving packs them into
 * pieces, the digest adds up their hashes. A sum does not depend on the order
 * of the walk, and that order depends on slab numbers; where the order is part
 * of the state (queues, the lists by time), the place goes into the hash.
 *
 *   H  format seq now class_last count bounds... locks products reservations
 *
 * The head; the entries of records are as their rows in `hold_subjects` say.
 */
#include "hold/image.h"

#include <assert.h>

#include "base/memory.h"
#include "hold/image_parts.h"
#include "hold/part.h"

/* The longest entry: a request with its stored reply. */
#define ENTRY_MAX (72u * 1024)

enum hf_status walk_give(struct walk *walk, const char *end, uint64_t place)
{
    const char *entry = walk->e->body.data;
    size_t len = (size_t)(end - entry);

    assert(len <= ENTRY_MAX);
    return walk->sink(walk->context, hf_bytes(entry, len), place);
}

static enum hf_status walk_head(struct walk *walk)
{
    struct hold_engine *e = walk->e;
    char *at = e->body.data;

    *at++ = IMAGE_HEAD;
    at = image_put(at, IMAGE_FORMAT | (e->old_queues ? IMAGE_OLD_QUEUES : 0) |
                           (e->old_waits ? IMAGE_OLD_WAITS : 0));
    at = image_put(at, e->seq);
    at = image_put(at, e->now_us);
    at = image_put(at, e->class_last);
    at = image_put(at, HOLD_BOUNDS_COUNT);
    for (size_t i = 0; i < HOLD_BOUNDS_COUNT; i++)
        at = image_put(at, *hold_bound(&e->bounds, i));
    at = image_put(at, hf_index_count(&e->locks));
    at = image_put(at, hf_index_count(&e->products));
    at = image_put(at, hf_index_count(&e->reservations));
    return walk_give(walk, at, 0);
}

static uint64_t number_of(const struct hold_engine *e,
                          const struct subject *subject, const void *record,
                          struct subject_number number)
{
    const char *place = (const char *)record + number.place;

    if (number.place == 0)
        return subject->link(e, record);
    return number.bytes == 8 ? *(const uint64_t *)(const void *)place
                             : *(const uint32_t *)(const void *)place;
}

static enum hf_status walk_record(struct walk *walk,
                                  const struct subject *subject,
                                  const void *record, uint64_t place)
{
    const struct hold_engine *e = walk->e;
    char *at = e->body.data;

    *at++ = subject->image;
    for (int i = 0; i < SUBJECT_NUMBERS && subject->numbers[i].bytes > 0; i++)
        at = image_put(at, number_of(e, subject, record, subject->numbers[i]));
    if (subject->named)
        at =
            hold_put_text(at, hf_index_name(subject_index(e, subject), record));
    for (int i = 0; i < SUBJECT_TEXTS && subject->texts[i] > 0; i++) {
        const char *text = (const char *)record + subject->texts[i];
        at = hold_put_text(
            at, hf_text_bytes(&e->texts,
                              *(const struct hf_text *)(const void *)text));
    }
    return walk_give(walk, at, place);
}

/* The first record of the list is at `place`. */
static enum hf_status walk_list(struct walk *walk,
                                const struct subject *subject,
                                const struct list *list, uint64_t place)
{
    const struct hf_index *index = subject_index(walk->e, subject);
    enum hf_status status = HF_OK;

    for (uint32_t i = list->first; status == HF_OK && i != 0;) {
        const struct listed *record = hf_index_at(index, i);
        status = walk_record(walk, subject, record, place++);
        i = record->links.next;
    }
    return status;
}

/* Those that are in a list come with it. */
static enum hf_status walk_index(struct walk *walk,
                                 const struct subject *subject)
{
    const struct hf_index *index = subject_index(walk->e, subject);
    enum hf_status status = HF_OK;

    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(index); i++) {
        const char *record = hf_index_used(index, i);
        if (record == NULL ||
            (subject->is_listed != NULL && subject->is_listed(record)))
            continue;
        status = walk_record(walk, subject, record, 0);
    }
    for (int i = 0; status == HF_OK && i < SUBJECT_LISTS; i++) {
        const char *list = (const char *)walk->e + subject->lists[i];
        if (subject->lists[i] > 0)
            status = walk_list(walk, subject, (const void *)list, 1);
    }
    return status;
}

static enum hf_status walk_all(struct walk *walk)
{
    enum hf_status status = walk_head(walk);

    for (size_t i = 0; status == HF_OK && i < SUBJECTS; i++) {
        const struct subject *subject = &hold_subjects[i];
        if (subject->walk != NULL)
            status = subject->walk(walk);
        else if (subject->image != '\0')
            status = walk_index(walk, subject);
    }
    return status;
}

struct packer {
    hold_sink *sink;
    void *context;
    struct hf_buf piece;
};

static enum hf_status pack(void *context, struct hf_bytes entry, uint64_t place)
{
    struct packer *packer = context;
    struct hf_buf *piece = &packer->piece;

    (void)place;
    if (piece->cap - piece->len < entry.len) {
        enum hf_status status =
            packer->sink(packer->context, piece->data, piece->len);
        if (status != HF_OK)
            return status;
        piece->len = 0;
    }
    memcpy(piece->data + piece->len, entry.data, entry.len);
    piece->len += entry.len;
    return HF_OK;
}

enum hf_status hold_save(struct hold_engine *e, hold_sink *sink, void *context)
{
    struct packer packer = {sink, context, {0}};
    struct walk walk = {e, pack, &packer};
    enum hf_status status;

    packer.piece.data = hf_alloc(HOLD_PIECE_MAX);
    if (packer.piece.data == NULL)
        return HF_NOMEM;
    packer.piece.cap = HOLD_PIECE_MAX;
    status = walk_all(&walk);
    if (status == HF_OK)
        status = sink(context, packer.piece.data, packer.piece.len);
    hf_free(packer.piece.data);
    return status;
}

static enum hf_status add_hash(void *context, struct hf_bytes entry,
                               uint64_t place)
{
    struct hf_hash_seed seed = {{0x646967657374u, place}};

    *(uint64_t *)context += hf_hash(seed, entry);
    return HF_OK;
}

uint64_t hold_digest(struct hold_engine *e)
{
    uint64_t digest = 0;
    struct walk walk = {e, add_hash, &digest};

    (void)walk_all(&walk);
    return digest;
}

enum hf_status hold_each_lock(const struct hold_engine *e, hold_visit *visit,
                              void *context)
{
    enum hf_status status = HF_OK;

    for (uint32_t i = 1; i < hf_index_top(&e->locks); i++) {
        const struct lock *lock = hf_index_used(&e->locks, i);
        uint32_t n = lock == NULL ? 0 : lock->grants.first;
        for (; status == HF_OK && n != 0; n = part_at(e, n)->place.next) {
            const struct part *part = part_at(e, n);
            struct hold_held held = {
                .name = hf_index_name(&e->locks, lock),
                .token = part_token(e, part),
                .expires_us = part_expires_us(e, part),
                .count = part->count,
                .mode = part->mode,
            };
            if (part->group != 0) /* the first name counts for the set */
                held.count = set_at(e, part->group)->first == n
                                 ? set_at(e, part->group)->count
                                 : 1;
            status = visit(context, &held);
        }
    }
    return status;
}
