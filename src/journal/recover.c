/* recover.c - reads batches in order and decides whether the place where they
 * stop is a torn tail or damage. */
#include "journal/recover.h"

#include <stdarg.h>

#include "journal/snapshot.h"

/* Applies the records of one batch. */
static enum hf_status apply_batch(struct walk *walk, const struct batch *batch,
                                  uint64_t offset, char *error)
{
    const char *path = walk->folder->path;
    char name[FOLDER_NAME_MAX];
    struct hf_bytes record;
    size_t at = 0;

    while (batch_record(batch->records, &at, &record) == HF_OK) {
        enum hf_status status = HF_OK;
        if (walk->machine != NULL)
            status = snapshot_unwanted(walk->machine)
                         ? HF_CANCELLED
                         : walk->machine->apply(walk->state, record);
        if (status != HF_OK) {
            folder_segment_name(name, walk->tail.header.first);
            return journal_say(
                error, status,
                "%s/%s: a record of batch %llu at offset %llu cannot be "
                "applied: %s",
                path, name, (unsigned long long)batch->number,
                (unsigned long long)offset, hf_status_text(status));
        }
        walk->records++;
    }
    return HF_OK;
}

/* Reads batches of the open segment from its start until no valid next batch
 * follows, or the next one is the first of segment `next`. HF_OK: moved to the
 * end, `last` says how far; HF_CORRUPT only from apply. */
static enum hf_status walk_segment(struct walk *walk,
                                   struct segment_reader *reader, uint64_t next,
                                   char *error)
{
    uint64_t expected = reader->header.first;
    struct batch batch;

    walk->tail =
        (struct segment){-1, reader->bytes, JOURNAL_BLOCK, reader->header};
    while (expected != next && expected - 1 < walk->until) {
        uint64_t offset = walk->tail.offset;
        enum hf_status status =
            segment_reader_batch(reader, offset, &batch, error);
        if (status == HF_EMPTY || status == HF_CORRUPT)
            break;
        if (status != HF_OK)
            return status;
        if (batch.number != expected)
            break;
        status = apply_batch(walk, &batch, offset, error);
        if (status != HF_OK)
            return status;
        walk->last = expected++;
        walk->tail.offset += batch.disk_bytes;
    }
    return HF_OK;
}

/* Looks at every block of the open segment from `offset` for valid batches
 * from `expected` on. */
static enum hf_status look_ahead(struct walk *walk,
                                 struct segment_reader *reader, uint64_t offset,
                                 uint64_t expected, bool *durable, char *error)
{
    struct batch batch;

    for (;;) {
        enum hf_status status =
            segment_reader_batch(reader, offset, &batch, error);
        if (status == HF_EMPTY)
            return HF_OK;
        if (status != HF_OK && status != HF_CORRUPT)
            return status;
        if (status != HF_OK || batch.number < expected) {
            offset += JOURNAL_BLOCK;
            continue;
        }
        walk->later_count++;
        walk->later_records += batch.count;
        if (batch.synced >= expected && !*durable) {
            *durable = true;
            walk->proof = batch.number;
        }
        offset += batch.disk_bytes;
        if (reader->header.first == walk->tail.header.first) {
            walk->stale = true;
            walk->cut_bytes = offset - walk->tail.offset;
        }
    }
}

/* folder_damaged() of a segment. */
__attribute__((format(printf, 4, 5))) static enum hf_status
damaged(struct walk *walk, uint64_t segment, char *error, const char *format,
        ...)
{
    char name[FOLDER_NAME_MAX];
    char what[200];
    va_list args;

    folder_segment_name(name, segment);
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return folder_damaged(walk->folder, error, "/%s%s", name, what);
}

static enum hf_status damaged_batch(struct walk *walk, uint64_t number,
                                    char *error)
{
    char proof[64] = "a later segment";

    if (walk->proof != 0)
        snprintf(proof, sizeof proof, "batch %llu",
                 (unsigned long long)walk->proof);
    else if (walk->known != NULL && walk->known->synced >= number)
        snprintf(proof, sizeof proof, "the manifest");
    return damaged(walk, walk->tail.header.first, error,
                   ": batch %llu at offset %llu is damaged or missing (%s says "
                   "that it was on disk); ",
                   (unsigned long long)number,
                   (unsigned long long)walk->tail.offset, proof);
}

static enum hf_status damaged_header(struct walk *walk, uint64_t segment,
                                     char *error)
{
    return damaged(walk, segment, error,
                   ": the header at offset 0, before batch %llu, is damaged; ",
                   (unsigned long long)segment);
}

static enum hf_status missing(struct walk *walk, uint64_t segment, char *error)
{
    return damaged(walk, segment, error, " is missing; put it back, or ");
}

/* What the segments behind the tail tell. */
struct later {
    bool durable;     /* the batch that is not there was on disk */
    uint64_t bad;     /* first one whose header is damaged; 0: none */
    uint64_t missing; /* first one that should be there; 0: none */
};

/* Opens the segment number `i` of the list. Of those that the manifest knows,
 * each names the one before it. */
static enum hf_status open_later(struct walk *walk, size_t i,
                                 struct segment_reader *reader,
                                 struct later *later, char *error)
{
    const uint64_t *segments = walk->list->segments;
    enum hf_status status = segment_reader_open(reader, segments[i], error);
    const struct segment_header *header = &reader->header;

    if (status == HF_CORRUPT && later->bad == 0)
        later->bad = segments[i];
    if (status != HF_OK)
        return status;
    walk->modern = walk->modern || header->bytes != 0;
    if (later->missing == 0 && walk->known != NULL &&
        segments[i] <= walk->known->segment &&
        header->previous > segments[i - 1])
        later->missing = header->previous;
    return HF_OK;
}

static enum hf_status look_later(struct walk *walk,
                                 struct segment_reader *reader,
                                 uint64_t expected, struct later *later,
                                 char *error)
{
    enum hf_status status = HF_OK;

    for (size_t i = walk->tail_index + 1;
         i < walk->list->segment_count && status == HF_OK; i++) {
        status = open_later(walk, i, reader, later, error);
        if (status == HF_CORRUPT) {
            status = HF_OK;
            continue;
        }
        if (status != HF_OK)
            break;
        later->durable = later->durable || reader->header.synced >= expected;
        walk->cut_bytes += reader->bytes;
        status = look_ahead(walk, reader, JOURNAL_BLOCK, expected,
                            &later->durable, error);
    }
    return status;
}

/* Where in the list the segment is; SIZE_MAX: nowhere. */
static size_t find_segment(const struct folder_list *list, uint64_t first)
{
    for (size_t i = 0; i < list->segment_count; i++) {
        if (list->segments[i] == first)
            return i;
    }
    return SIZE_MAX;
}

/* The segment that the manifest names is there, or a snapshot stands for it. */
static bool newest_is_there(const struct walk *walk)
{
    return walk->known == NULL || walk->known->segment <= walk->after ||
           find_segment(walk->list, walk->known->segment) != SIZE_MAX;
}

/* No valid batch `expected` at the tail: torn, or damaged? */
static enum hf_status judge(struct walk *walk, struct segment_reader *reader,
                            uint64_t expected, char *error)
{
    uint64_t offset = walk->tail.offset;
    const struct segment_header *header = &walk->tail.header;
    struct later later = {.durable = walk->known != NULL &&
                                     walk->known->synced >= expected};
    size_t claim_bytes = 0;

    if (segment_reader_claim(reader, offset, &claim_bytes) == expected)
        walk->cut_bytes = claim_bytes;
    enum hf_status status =
        look_ahead(walk, reader, offset, expected, &later.durable, error);
    if (status == HF_OK)
        status = look_later(walk, reader, expected, &later, error);
    if (status != HF_OK)
        return status;
    if (later.missing == 0 && !newest_is_there(walk))
        later.missing = walk->known->segment;
    if (header->bytes != 0 && walk->tail.bytes != header->bytes)
        return damaged(walk, header->first, error,
                       " has %llu bytes and was made with %llu; put a copy "
                       "back, or ",
                       (unsigned long long)walk->tail.bytes,
                       (unsigned long long)header->bytes);
    if (later.missing != 0)
        return missing(walk, later.missing, error);
    if (later.durable)
        return damaged_batch(walk, expected, error);
    if (later.bad != 0)
        return damaged_header(walk, later.bad, error);
    return HF_OK;
}

static enum hf_status no_start(struct walk *walk, char *error)
{
    char name[FOLDER_NAME_MAX];

    if (walk->after == 0 && walk->list->segment_count == 0 &&
        newest_is_there(walk))
        return HF_EMPTY;
    if (walk->after > 0 || walk->known != NULL)
        return missing(walk, walk->after + 1, error);
    folder_segment_name(name, walk->list->segments[0]);
    return folder_damaged(
        walk->folder, error,
        ": the snapshot before %s is missing; put it back, or ", name);
}

/* From segment to segment, beginning with tail_index. */
static enum hf_status walk_from(struct walk *walk,
                                struct segment_reader *reader, char *error)
{
    const struct folder_list *list = walk->list;

    for (;;) {
        uint64_t first = list->segments[walk->tail_index];
        bool more = walk->tail_index + 1 < list->segment_count;
        uint64_t next = more ? list->segments[walk->tail_index + 1] : 0;
        enum hf_status status = segment_reader_open(reader, first, error);
        if (status == HF_CORRUPT) {
            walk->tail =
                (struct segment){-1, reader->bytes, 0, {.first = first}};
            return damaged_header(walk, first, error);
        }
        if (status == HF_OK) {
            walk->modern = walk->modern || reader->header.bytes != 0;
            status = walk_segment(walk, reader, next, error);
        }
        if (status != HF_OK || walk->last >= walk->until)
            return status;
        if (!more || walk->last + 1 != next)
            return judge(walk, reader, walk->last + 1, error);
        walk->tail_index++;
    }
}

enum hf_status walk_run(struct walk *walk, char *error)
{
    struct segment_reader reader;

    walk->last = walk->after;
    /* There is one: a snapshot is only made once the segment behind it
     * exists. */
    walk->tail_index = find_segment(walk->list, walk->after + 1);
    if (walk->tail_index == SIZE_MAX)
        return no_start(walk, error);
    segment_reader_init(&reader, walk->folder);
    enum hf_status status = walk_from(walk, &reader, error);
    segment_reader_destroy(&reader);
    return status;
}

bool walk_is_clean(const struct walk *walk)
{
    return walk->known != NULL && walk->known->clean &&
           walk->known->synced == walk->last && walk->cut_bytes == 0;
}

uint64_t walk_previous(const struct walk *walk)
{
    const struct folder_list *list = walk->list;
    uint64_t previous = 0;

    for (size_t i = 0; i < list->segment_count; i++) {
        if (list->segments[i] <= walk->last)
            previous = list->segments[i];
    }
    return previous;
}
