/* dedup_run.c - what a full table becomes on disk: sorted pages behind a
 * filter.
 *
 *   file   | page | page | page | ...      entries sorted by `high`, as many
 *             ^      ^                     as fit whole; the last page has
 *   firsts   high   high  ...              fewer
 *
 * A page is found by the first `high` of each, so a look costs one read. Pages
 * come from the system's cache while they are in use; nothing is synced, for
 * the file does not outlive the process.
 *
 * The filter is a Bloom filter in blocks of one cache line: a line is chosen by
 * the upper half of `low`, seven bits in it by a product of its whole.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/disk.h"
#include "base/memory.h"
#include "keep/dedup_state.h"

#define BLOCK_WORDS 8u /* a cache line */
#define BLOCK_BITS  512u
#define FILTER_ONES 7u /* bits set by one entry */

/* Where an entry's bits are. */
struct filter_bits {
    uint64_t *block;
    uint64_t bits; /* nine of them choose a bit */
};

static struct filter_bits filter_at(const struct dedup_run *run, uint64_t low)
{
    uint64_t block = ((low >> 32) * run->block_count) >> 32;

    return (struct filter_bits){
        .block = run->filter + block * BLOCK_WORDS,
        .bits = low * UINT64_C(0x9e3779b97f4a7c15),
    };
}

static void filter_add(struct dedup_run *run, uint64_t low)
{
    struct filter_bits at = filter_at(run, low);

    for (unsigned i = 0; i < FILTER_ONES; i++, at.bits >>= 9)
        at.block[at.bits % BLOCK_BITS / 64] |= UINT64_C(1) << (at.bits % 64);
}

static bool filter_perhaps(const struct dedup_run *run, uint64_t low)
{
    struct filter_bits at = filter_at(run, low);

    for (unsigned i = 0; i < FILTER_ONES; i++, at.bits >>= 9) {
        if (!(at.block[at.bits % BLOCK_BITS / 64] >> (at.bits % 64) & 1))
            return false;
    }
    return true;
}

/* ---- Making a run. ---- */

static uint64_t run_bytes(const struct dedup_run *run)
{
    return run->block_count * BLOCK_WORDS * sizeof(uint64_t) +
           run->page_count * sizeof(uint64_t);
}

static void run_free(struct dedup_run *run)
{
    hf_free(run->filter);
    hf_free(run->firsts);
}

/* Gives the space back; the place is for the next run. */
static void run_vacate(struct hf_dedup *dedup, struct dedup_shard *shard,
                       const struct dedup_run *run)
{
    assert(shard->spare_count < shard->run_room);
    /* Where holes cannot be made the next run takes the space. */
    (void)fallocate(dedup->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)run->offset,
                    (off_t)(run->page_count * DEDUP_PAGE_BYTES));
    shard->spares[shard->spare_count++] = run->offset;
}

void hf_dedup_run_expire(struct hf_dedup *dedup, struct dedup_shard *shard)
{
    size_t kept = 0;

    /* The first expires first: time does not go back. */
    if (shard->run_count == 0 || shard->now_ns < shard->runs[0].latest_ns)
        return;
    for (size_t i = 0; i < shard->run_count; i++) {
        struct dedup_run *run = &shard->runs[i];
        uint64_t disk = run->page_count * DEDUP_PAGE_BYTES;
        if (shard->now_ns < run->latest_ns) {
            shard->runs[kept++] = *run;
            continue;
        }
        run_vacate(dedup, shard, run);
        dedup_count(&shard->memory_bytes, -(int64_t)run_bytes(run));
        dedup_count(&shard->disk_bytes, -(int64_t)disk);
        dedup_count(&shard->disk_items, -(int64_t)run->count);
        dedup_count(&shard->run_total, -1);
        run_free(run);
    }
    shard->run_count = kept;
}

static int by_high(const void *a, const void *b)
{
    const struct dedup_entry *const *left = a, *const *right = b;

    return ((*left)->high > (*right)->high) - ((*left)->high < (*right)->high);
}

/* All entries of the table, sorted; NULL without memory. */
static struct dedup_entry **sorted(const struct hf_dedup *dedup,
                                   const struct dedup_table *table)
{
    struct dedup_entry **list = hf_alloc(table->count * sizeof *list);
    uint64_t count = 0;

    for (uint64_t i = 0; list != NULL && i < table->slot_count; i++) {
        struct dedup_entry *entry = hf_dedup_table_at(dedup, table, i);
        if (entry->until_ns != 0)
            list[count++] = entry;
    }
    if (list != NULL)
        qsort(list, count, sizeof list[0], by_high);
    return list;
}

static bool run_alloc(const struct hf_dedup *dedup, struct dedup_run *run)
{
    uint64_t bits = run->count * dedup->filter_bits;

    run->block_count = bits / BLOCK_BITS + 1;
    run->page_count =
        (run->count + dedup->page_entries - 1) / dedup->page_entries;
    /* A block is one line of the cache. */
    run->filter =
        hf_alloc_aligned(BLOCK_WORDS * sizeof(uint64_t),
                         run->block_count * BLOCK_WORDS * sizeof(uint64_t));
    run->firsts = hf_alloc(run->page_count * sizeof(uint64_t));
    return run->filter != NULL && run->firsts != NULL;
}

/* Fills the filter, the page index and `pages` from the sorted entries. */
static void run_fill(const struct hf_dedup *dedup, struct dedup_run *run,
                     struct dedup_entry **list, unsigned char *pages)
{
    memset(run->filter, 0, run->block_count * BLOCK_WORDS * sizeof(uint64_t));
    memset(pages, 0, run->page_count * DEDUP_PAGE_BYTES);
    for (uint64_t i = 0; i < run->count; i++) {
        uint64_t page = i / dedup->page_entries;
        uint64_t place = i % dedup->page_entries;
        memcpy(pages + page * DEDUP_PAGE_BYTES + place * dedup->stride, list[i],
               dedup->stride);
        if (place == 0)
            run->firsts[page] = list[i]->high;
        if (list[i]->until_ns > run->latest_ns)
            run->latest_ns = list[i]->until_ns;
        filter_add(run, list[i]->low);
    }
}

static bool runs_have_room(struct dedup_shard *shard)
{
    if (shard->run_count < shard->run_room)
        return true;
    size_t room = shard->run_room == 0 ? 8 : 2 * shard->run_room;
    struct dedup_run *runs =
        hf_realloc(shard->runs, room * sizeof shard->runs[0]);
    if (runs == NULL)
        return false;
    shard->runs = runs;
    uint64_t *spares =
        hf_realloc(shard->spares, room * sizeof shard->spares[0]);
    if (spares == NULL)
        return false;
    shard->spares = spares;
    shard->run_room = room;
    return true;
}

/* Where a run goes: the file does not grow while there are free places. */
static uint64_t run_place(struct hf_dedup *dedup, struct dedup_shard *shard,
                          const struct dedup_run *run)
{
    assert(run->count == dedup->shard_items);
    if (shard->spare_count > 0)
        return shard->spares[--shard->spare_count];
    /* Relaxed: shares out places of the file, nothing else. */
    return hf_u64_add(&dedup->file_end, run->page_count * DEDUP_PAGE_BYTES,
                      __ATOMIC_RELAXED);
}

static void run_take(struct hf_dedup *dedup, struct dedup_shard *shard,
                     const struct dedup_run *run)
{
    shard->runs[shard->run_count++] = *run;
    dedup_count(&shard->memory_bytes, (int64_t)run_bytes(run));
    dedup_count(&shard->disk_bytes,
                (int64_t)(run->page_count * DEDUP_PAGE_BYTES));
    dedup_count(&shard->disk_items, (int64_t)run->count);
    dedup_count(&shard->run_total, 1);
    hf_dedup_table_clear(dedup, shard);
}

enum hf_status hf_dedup_run_write(struct hf_dedup *dedup,
                                  struct dedup_shard *shard)
{
    struct dedup_run run = {.count = shard->table.count};
    enum hf_status status = HF_NOMEM;
    unsigned char *pages = NULL;

    if (hf_u64_load(&shard->disk_items, __ATOMIC_RELAXED) + run.count >
        dedup->shard_disk_items)
        return HF_FULL;
    struct dedup_entry **list = sorted(dedup, &shard->table);
    if (list == NULL || !run_alloc(dedup, &run) || !runs_have_room(shard))
        goto out;
    pages = hf_alloc(run.page_count * DEDUP_PAGE_BYTES);
    if (pages == NULL)
        goto out;
    run_fill(dedup, &run, list, pages);
    run.offset = run_place(dedup, shard, &run);
    status = HF_IO;
    if (hf_disk_write(NULL, dedup->fd, pages, run.page_count * DEDUP_PAGE_BYTES,
                      run.offset) == 0) {
        run_take(dedup, shard, &run);
        status = HF_OK;
    } else {
        run_vacate(dedup, shard, &run); /* a part of it may be there */
    }
out:
    if (status != HF_OK)
        run_free(&run);
    hf_free(pages);
    hf_free(list);
    return status;
}

/* ---- Looking. ---- */

/* The last page that begins before `high`, for an equal one may be its last
 * entry; the first page if none does. */
static uint64_t first_page(const struct dedup_run *run, uint64_t high)
{
    uint64_t low = 0, above = run->page_count;

    while (above - low > 1) {
        uint64_t middle = low + (above - low) / 2;
        if (run->firsts[middle] < high)
            low = middle;
        else
            above = middle;
    }
    return low;
}

static enum dedup_answer look(struct hf_dedup *dedup, struct dedup_shard *shard,
                              const struct dedup_run *run, uint64_t high,
                              uint64_t low, struct dedup_entry **out,
                              uint64_t *offset)
{
    for (uint64_t page = first_page(run, high);
         page < run->page_count && run->firsts[page] <= high; page++) {
        uint64_t at = run->offset + page * DEDUP_PAGE_BYTES;
        size_t got;
        dedup_count(&shard->page_reads, 1);
        if (hf_disk_read(NULL, dedup->fd, shard->page, DEDUP_PAGE_BYTES, at,
                         &got) != 0 ||
            got != DEDUP_PAGE_BYTES)
            return DEDUP_BROKEN;
        for (uint64_t i = 0; i < dedup->page_entries; i++) {
            struct dedup_entry *entry =
                (struct dedup_entry *)(shard->page + i * dedup->stride);
            if (entry->high != high || entry->low != low ||
                entry->until_ns <= shard->now_ns)
                continue;
            *out = entry;
            *offset = at + i * dedup->stride;
            return DEDUP_YES;
        }
    }
    return DEDUP_NO;
}

enum dedup_answer hf_dedup_run_find(struct hf_dedup *dedup,
                                    struct dedup_shard *shard, uint64_t high,
                                    uint64_t low, struct dedup_entry **out,
                                    uint64_t *offset)
{
    for (size_t i = shard->run_count; i-- > 0;) {
        const struct dedup_run *run = &shard->runs[i];
        if (run->latest_ns <= shard->now_ns || !filter_perhaps(run, low))
            continue;
        enum dedup_answer answer =
            look(dedup, shard, run, high, low, out, offset);
        if (answer != DEDUP_NO)
            return answer;
        dedup_count(&shard->filter_errors, 1);
    }
    return DEDUP_NO;
}

enum hf_status hf_dedup_run_forget(struct hf_dedup *dedup, uint64_t offset)
{
    uint64_t never = 0;
    uint64_t at = offset + offsetof(struct dedup_entry, until_ns);

    return hf_disk_write(NULL, dedup->fd, &never, sizeof never, at) == 0
               ? HF_OK
               : HF_IO;
}

void hf_dedup_run_destroy(struct dedup_shard *shard)
{
    for (size_t i = 0; i < shard->run_count; i++)
        run_free(&shard->runs[i]);
    hf_free(shard->runs);
    hf_free(shard->spares);
    hf_free(shard->page);
}
