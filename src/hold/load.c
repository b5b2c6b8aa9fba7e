/* load.c - rebuilds the state from an image's entries.
 *
 * The bytes have passed the journal's checksum; what is checked here guards
 * against an image from another version, not against chance.
 */
#include <assert.h>

#include "hold/bundle.h"
#include "hold/expect.h"
#include "hold/image.h"
#include "hold/image_parts.h"
#include "hold/locks.h"
#include "hold/waitlist.h"

uint64_t read_number(struct reader *in)
{
    if (in->bad || in->piece.len - in->at < 8) {
        in->bad = true;
        return 0;
    }
    in->at += 8;
    return hf_get_u64(in->piece.data + in->at - 8);
}

struct hf_bytes read_text(struct reader *in)
{
    size_t left = in->piece.len - in->at;
    size_t len = left < 2 ? left : hf_get_u16(in->piece.data + in->at);

    if (in->bad || left < 2 + len) {
        in->bad = true;
        return hf_bytes("", 0);
    }
    in->at += 2 + len;
    return hf_bytes(in->piece.data + in->at - len, len);
}

/* A new record under a new name. */
static enum hf_status add_named(struct reader *in, struct hf_index *index,
                                struct hf_bytes name, uint32_t *number)
{
    if (in->bad || name.len == 0 || hf_index_find(index, name) != 0)
        return HF_CORRUPT;
    *number = hf_index_add(index, name);
    return *number == 0 ? HF_NOMEM : HF_OK;
}

static enum hf_status load_head(struct hold_engine *e, struct reader *in)
{
    uint64_t format = read_number(in);
    uint64_t count = format == IMAGE_OLD ? OLD_BOUNDS : GRAPH_BOUNDS;

    if (e->loading || format < IMAGE_OLD ||
        (format > IMAGE_UNENDED && format < IMAGE_FORMAT) ||
        format > (IMAGE_FORMAT | IMAGE_OLD_QUEUES | IMAGE_OLD_WAITS))
        return HF_CORRUPT;
    e->loading = true;
    e->load_format = format;
    e->seq = read_number(in);
    e->now_us = read_number(in);
    if (format >= IMAGE_COUNTED) {
        e->class_last = (uint32_t)read_number(in);
        count = read_number(in);
    }
    if (count > HOLD_BOUNDS_COUNT)
        return HF_CORRUPT;
    for (size_t i = 0; i < count; i++)
        *hold_bound(&e->bounds, i) = read_number(in);
    hf_index_expect(&e->locks, read_number(in));
    hf_index_expect(&e->products, read_number(in));
    hf_index_expect(&e->reservations, read_number(in));
    e->old_queues = (format & IMAGE_OLD_QUEUES) != 0;
    e->old_waits = format < IMAGE_FORMAT || (format & IMAGE_OLD_WAITS) != 0;
    classes_changed(e);
    return HF_OK;
}

/* Sets a number of a record. */
static void put_number(char *place, unsigned bytes, uint64_t number)
{
    if (bytes == 8)
        *(uint64_t *)(void *)place = number;
    else
        *(uint32_t *)(void *)place = (uint32_t)number;
}

/* How many numbers and texts the entry has. */
static void count_fields(const struct hold_engine *e,
                         const struct subject *subject, int *numbers,
                         int *texts)
{
    size_t age = e->load_format > IMAGE_BEFORE;
    bool before =
        e->load_format <= IMAGE_UNENDED && subject->before[age].numbers > 0;
    int number_max = before ? subject->before[age].numbers : SUBJECT_NUMBERS;
    int text_max = before ? subject->before[age].texts : SUBJECT_TEXTS;

    *numbers = *texts = 0;
    while (*numbers < number_max && subject->numbers[*numbers].bytes > 0)
        ++*numbers;
    while (*texts < text_max && subject->texts[*texts] > 0)
        ++*texts;
}

static enum hf_status load_record(struct hold_engine *e, struct reader *in,
                                  const struct subject *subject)
{
    struct hf_index *index = subject_index(e, subject);
    uint64_t numbers[SUBJECT_NUMBERS] = {0};
    struct hf_bytes texts[SUBJECT_TEXTS];
    char id[8];
    struct hf_bytes name = hf_bytes(id, sizeof id);
    uint64_t link = 0;
    uint32_t number;
    int number_count;
    int text_count;

    count_fields(e, subject, &number_count, &text_count);

    for (int i = 0; i < number_count; i++)
        numbers[i] = read_number(in);
    if (subject->named)
        name = read_text(in);
    else
        hf_put_u64(id, numbers[0]);
    for (int i = 0; i < text_count; i++)
        texts[i] = read_text(in);
    enum hf_status status = add_named(in, index, name, &number);
    if (status != HF_OK)
        return status;
    char *record = hf_index_at(index, number);
    for (int i = 0; i < number_count; i++) {
        if (subject->numbers[i].place == 0)
            link = numbers[i];
        else
            put_number(record + subject->numbers[i].place,
                       subject->numbers[i].bytes, numbers[i]);
    }
    for (int i = 0; i < text_count; i++) {
        if (hf_texts_put(&e->texts, texts[i], texts[i].len,
                         (void *)(record + subject->texts[i])) != HF_OK)
            return HF_NOMEM;
    }
    return subject->loaded == NULL ? HF_OK : subject->loaded(e, number, link);
}

static enum hf_status load_entry(struct hold_engine *e, struct reader *in,
                                 char kind)
{
    static const struct {
        char kind;
        subject_load_fn *load;
    } own[] = {
        {IMAGE_HEAD, load_head}, {'G', grant_load},  {'T', set_load},
        {'W', waiter_load},      {'M', mark_load},   {'B', buyer_load},
        {'U', bundle_load},      {'E', expect_load}, {'K', booking_load}};

    if (e->loading && e->load_format == IMAGE_OLD &&
        (kind == 'L' || kind == 'W'))
        return kind == 'L' ? old_lock_load(e, in) : old_waiter_load(e, in);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (own[i].kind == kind && (e->loading || i == 0))
            return own[i].load(e, in);
    }
    for (size_t i = 0; i < SUBJECTS && e->loading; i++) {
        if (hold_subjects[i].image == kind)
            return load_record(e, in, &hold_subjects[i]);
    }
    return HF_CORRUPT;
}

enum hf_status hold_load(struct hold_engine *e, struct hf_bytes piece)
{
    struct reader in = {piece, 0, false};
    enum hf_status status = HF_OK;

    while (status == HF_OK && in.at < piece.len) {
        char kind = piece.data[in.at++];
        status = load_entry(e, &in, kind);
        if (in.bad)
            status = HF_CORRUPT;
    }
    return status;
}
