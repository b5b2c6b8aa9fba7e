/* epoch.c - interval-based reclamation: retire, scan, and threads that end.
 *
 * Who frees. A thread keeps what it retired in a list of its own. When the
 * list has grown enough, it reads every reader's span once and frees the nodes
 * that touch none. What stays makes the next scan come later in proportion, so
 * that a stalled reader costs a constant per retired node, not a walk over all
 * garbage each time. A thread that ends leaves its list to the next scan of
 * anybody.
 *
 * How large garbage can get: a scan leaves only nodes whose life touches a
 * reader's span, and comes at latest after SCAN_EVERY + twice what the last
 * one left.
 */
#include "sync/epoch.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"

#define SCAN_EVERY    64 /* retired nodes */
#define BIRTHS_AN_ERA 64 /* by one thread */

#define STALLED_NS_DEFAULT 1000000000u

static struct hf_mutex all_mutex;  /* guards the list of all epochs */
static struct hf_epoch *all_first; /* (d) */

static void free_node(void *context, struct hf_epoch_node *node)
{
    (void)context;
    hf_free(node);
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    struct hf_epoch_stats stats = {0};

    /* `listed` is the first member of the epoch, which is no constant. */
    hf_epoch_stats((struct hf_epoch *)(uintptr_t)listed, &stats);
    row->depth = stats.retired - stats.freed;
}

static struct hf_epoch_reader *reader_at(const struct hf_epoch *epoch,
                                         uint32_t slot)
{
    return hf_locals_find(&epoch->readers, slot,
                          sizeof(struct hf_epoch_reader));
}

void hf_epoch_share(struct hf_epoch_reader *reader)
{
    if (reader->list == NULL)
        return;
    struct hf_atomic_ptr *orphans = &reader->epoch->orphans;
    void *head = hf_ptr_load(orphans, __ATOMIC_RELAXED);
    do { /* release: the nodes, for whoever takes the list */
        reader->last->next = head;
    } while (!hf_ptr_cas(orphans, &head, reader->list, __ATOMIC_RELEASE));
    reader->list = NULL;
    reader->listed = 0;
    reader->scan_at = SCAN_EVERY;
}

/* A thread ends: what it retired goes to whoever scans next. Frees nothing,
 * since a user's callback must not run under the lock. */
static void leave_orphans(uint32_t slot)
{
    hf_mutex_lock(&all_mutex);
    for (struct hf_epoch *at = all_first; at != NULL; at = at->next) {
        struct hf_epoch_reader *reader = reader_at(at, slot);
        if (reader == NULL)
            continue;
        assert(reader->depth == 0); /* it ended between enter and leave */
        hf_epoch_share(reader);
        /* Relaxed: the slot's next owner comes after us by the slot's lock. */
        hf_u32_store(&reader->thread_id, 0, __ATOMIC_RELAXED);
    }
    hf_mutex_unlock(&all_mutex);
}

static void watch_threads(void)
{
    hf_thread_at_exit(leave_orphans);
}

enum hf_status hf_epoch_open(struct hf_epoch **out,
                             const struct hf_epoch_opts *opts)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (out == NULL)
        return HF_INVALID;
    struct hf_epoch *epoch = hf_alloc_lines(sizeof *epoch);
    if (epoch == NULL)
        return HF_NOMEM;
    if (hf_locals_init(&epoch->readers, sizeof(struct hf_epoch_reader))) {
        hf_free(epoch);
        return HF_NOMEM;
    }
    if (opts != NULL)
        epoch->opts = *opts;
    if (epoch->opts.free == NULL)
        epoch->opts.free = free_node;
    if (epoch->opts.clock == NULL)
        epoch->opts.clock = hf_clock_system();
    if (epoch->opts.stalled_ns == 0)
        epoch->opts.stalled_ns = STALLED_NS_DEFAULT;
    hf_u64_store(&epoch->era, 1, __ATOMIC_RELAXED); /* nobody sees it yet */

    pthread_once(&once, watch_threads);
    hf_mutex_lock(&all_mutex);
    epoch->next = all_first;
    if (all_first != NULL)
        all_first->prev = epoch;
    all_first = epoch;
    hf_mutex_unlock(&all_mutex);
    hf_listed_add(&epoch->listed, "epoch", epoch->opts.name, fill);
    epoch->opts.name = epoch->listed.name;
    *out = epoch;
    return HF_OK;
}

static void free_list(struct hf_epoch *epoch, struct hf_epoch_node *list)
{
    while (list != NULL) {
        struct hf_epoch_node *node = list;
        list = node->next;
        epoch->opts.free(epoch->opts.context, node);
    }
}

void hf_epoch_close(struct hf_epoch *epoch)
{
    if (epoch == NULL)
        return;
    hf_listed_remove(&epoch->listed);
    hf_mutex_lock(&all_mutex);
    *(epoch->prev == NULL ? &all_first : &epoch->prev->next) = epoch->next;
    if (epoch->next != NULL)
        epoch->next->prev = epoch->prev;
    hf_mutex_unlock(&all_mutex);

    /* Nobody is inside; acquire: what those who were wrote. */
    free_list(epoch, hf_ptr_load(&epoch->orphans, __ATOMIC_ACQUIRE));
    uint32_t slot = 0;
    struct hf_epoch_reader *reader;
    while ((reader = hf_locals_next(&epoch->readers, &slot)) != NULL)
        free_list(epoch, reader->list);
    hf_locals_destroy(&epoch->readers);
    hf_free(epoch);
}

void hf_epoch_reader_adopt(struct hf_epoch *epoch,
                           struct hf_epoch_reader *reader)
{
    uint64_t name[2] = {0};

    reader->epoch = epoch;
    reader->scan_at = SCAN_EVERY;
    (void)pthread_getname_np(pthread_self(), (char *)name, sizeof name);
    /* Relaxed: for people to read, and each word for itself. */
    for (int i = 0; i < 2; i++)
        hf_u64_store(&reader->name[i], name[i], __ATOMIC_RELAXED);
    hf_u32_store(&reader->thread_id, (uint32_t)syscall(SYS_gettid),
                 __ATOMIC_RELAXED);
}

struct hf_epoch_reader *hf_epoch_enter(struct hf_epoch *epoch)
{
    return epoch == NULL ? NULL : epoch_enter(epoch);
}

void hf_epoch_leave(struct hf_epoch_reader *reader)
{
    if (reader != NULL)
        epoch_leave(reader);
}

void *hf_epoch_load(struct hf_epoch_reader *reader,
                    const struct hf_atomic_ptr *link)
{
    return reader == NULL || link == NULL ? NULL : epoch_load(reader, link);
}

bool hf_epoch_change(struct hf_atomic_ptr *link, void **expected, void *value)
{
    return link != NULL && expected != NULL &&
           hf_ptr_cas(link, expected, value, __ATOMIC_SEQ_CST);
}

void hf_epoch_born(struct hf_epoch_reader *reader, struct hf_epoch_node *node)
{
    if (reader == NULL || node == NULL)
        return;
    struct hf_epoch *epoch = reader->epoch;

    if (++reader->births >= BIRTHS_AN_ERA) {
        reader->births = 0;
        hf_u64_add(&epoch->era, 1, __ATOMIC_SEQ_CST);
    }
    node->born = hf_u64_load(&epoch->era, __ATOMIC_SEQ_CST);
}

/* Counts that only the owner changes and anybody may read. */
static void count(struct hf_atomic_u64 *word, uint64_t more)
{
    hf_u64_store(word, hf_u64_load(word, __ATOMIC_RELAXED) + more,
                 __ATOMIC_RELAXED);
}

/* The spans of all who are inside. More than fit are taken as one. */
#define SPANS_MAX 128
struct span {
    uint64_t lower;
    uint64_t upper;
    uint32_t slot;
};
struct spans {
    struct span at[SPANS_MAX];
    uint32_t count;
};

static void spans_add(struct spans *spans, struct span span)
{
    if (spans->count < SPANS_MAX) {
        spans->at[spans->count++] = span;
        return;
    }
    struct span *last = &spans->at[SPANS_MAX - 1];
    if (span.lower < last->lower) {
        last->lower = span.lower;
        last->slot = span.slot;
    }
    if (span.upper > last->upper)
        last->upper = span.upper;
}

static void spans_read(struct hf_epoch *epoch, struct spans *spans)
{
    struct hf_epoch_reader *reader;
    uint32_t slot = 0;

    spans->count = 0;
    while ((reader = hf_locals_next(&epoch->readers, &slot)) != NULL) {
        /* seq_cst: see epoch.h. `lower` first: with it the reader has
         * announced an `upper` that is no less. */
        uint64_t lower = hf_u64_load(&reader->lower, __ATOMIC_SEQ_CST);
        if (lower == EPOCH_OUTSIDE)
            continue;
        uint64_t upper = hf_u64_load(&reader->upper, __ATOMIC_SEQ_CST);
        spans_add(spans, (struct span){lower, upper < lower ? lower : upper,
                                       slot - 1});
    }
}

/* The oldest span that the node's life touches, NULL if it may go. */
static const struct span *spans_touched(const struct spans *spans,
                                        const struct hf_epoch_node *node)
{
    const struct span *oldest = NULL;

    for (uint32_t i = 0; i < spans->count; i++) {
        const struct span *span = &spans->at[i];
        if (node->retired >= span->lower && node->born <= span->upper &&
            (oldest == NULL || span->lower < oldest->lower))
            oldest = span;
    }
    return oldest;
}

/* A reader and its stay, as one word. Eras stay below 2^48. */
static uint64_t stay_of(uint32_t slot, uint64_t lower)
{
    return lower << 16 | slot;
}

/* Is the reader still where it was when the word was made? Relaxed, here and
 * below: figures for people, each for itself. */
static bool is_still_there(struct hf_epoch *epoch, uint64_t stay)
{
    if (stay == 0)
        return false;
    struct hf_epoch_reader *reader = reader_at(epoch, (uint32_t)stay & 0xffff);
    return hf_u64_load(&reader->lower, __ATOMIC_RELAXED) == stay >> 16;
}

static void describe(struct hf_epoch *epoch, struct hf_epoch_stall *out)
{
    const struct epoch_watch *watch = &epoch->watch;
    uint64_t stay = hf_u64_load(&watch->reader, __ATOMIC_RELAXED);
    uint64_t now_ns = hf_clock_now_ns(epoch->opts.clock);
    uint64_t since_ns = hf_u64_load(&watch->since_ns, __ATOMIC_RELAXED);
    uint64_t name[2];

    *out = (struct hf_epoch_stall){0};
    if (!is_still_there(epoch, stay)) /* it has moved on: nobody is */
        return;
    out->slot = (uint32_t)stay & 0xffff;
    struct hf_epoch_reader *reader = reader_at(epoch, out->slot);
    for (int i = 0; i < 2; i++)
        name[i] = hf_u64_load(&reader->name[i], __ATOMIC_RELAXED);
    memcpy(out->thread, name, sizeof out->thread);
    out->thread[sizeof out->thread - 1] = '\0';
    out->thread_id = (int32_t)hf_u32_load(&reader->thread_id, __ATOMIC_RELAXED);
    out->seen_ns = now_ns > since_ns ? now_ns - since_ns : 0;
    out->garbage = hf_u64_load(&watch->garbage, __ATOMIC_RELAXED);
}

/* A scan could not free all: `blamed` is the oldest span in the way. */
static void note_stall(struct hf_epoch *epoch, const struct span *blamed,
                       uint64_t garbage)
{
    struct epoch_watch *watch = &epoch->watch;
    uint64_t stay = stay_of(blamed->slot, blamed->lower);
    uint64_t seen = hf_u64_load(&watch->reader, __ATOMIC_RELAXED);
    struct hf_epoch_stall stall;

    if (seen != stay && (!is_still_there(epoch, seen) || stay < seen)) {
        hf_u64_store(&watch->since_ns, hf_clock_now_ns(epoch->opts.clock),
                     __ATOMIC_RELAXED);
        hf_u64_store(&watch->reader, stay, __ATOMIC_RELAXED);
        seen = stay;
    }
    if (seen != stay) /* another has been in the way for longer */
        return;
    hf_u64_store(&watch->garbage, garbage, __ATOMIC_RELAXED);
    describe(epoch, &stall);
    uint64_t told = hf_u64_load(&watch->told, __ATOMIC_RELAXED);
    if (stall.thread_id == 0 || stall.seen_ns < epoch->opts.stalled_ns ||
        told == stay ||
        !hf_u64_cas(&watch->told, &told, stay, __ATOMIC_RELAXED))
        return;
    hf_u64_add(&watch->stalls, 1, __ATOMIC_RELAXED);
    if (epoch->opts.stalled != NULL)
        epoch->opts.stalled(epoch->opts.context, &stall);
}

static void keep(struct hf_epoch_reader *reader, struct hf_epoch_node *node)
{
    node->next = reader->list;
    if (reader->list == NULL)
        reader->last = node;
    reader->list = node;
    reader->listed++;
}

static void scan(struct hf_epoch_reader *reader)
{
    struct hf_epoch *epoch = reader->epoch;
    struct spans spans;
    const struct span *blamed = NULL;
    uint64_t freed = 0;

    if (reader->scanning) /* a free() that retires */
        return;
    reader->scanning = 1;
    hf_u64_add(&epoch->era, 1, __ATOMIC_SEQ_CST);
    struct hf_epoch_node *own = reader->list;
    /* Acquire: the nodes in the list. */
    struct hf_epoch_node *left =
        hf_ptr_load(&epoch->orphans, __ATOMIC_RELAXED) == NULL
            ? NULL
            : hf_ptr_swap(&epoch->orphans, NULL, __ATOMIC_ACQUIRE);
    reader->list = NULL;
    reader->listed = 0;
    spans_read(epoch, &spans); /* after the lists were taken */

    while (own != NULL || left != NULL) {
        struct hf_epoch_node **from = own != NULL ? &own : &left;
        struct hf_epoch_node *node = *from;
        *from = node->next;
        const struct span *span = spans_touched(&spans, node);
        if (span == NULL) {
            epoch->opts.free(epoch->opts.context, node);
            freed++;
            continue;
        }
        keep(reader, node);
        if (blamed == NULL || span->lower < blamed->lower)
            blamed = span;
    }
    count(&reader->freed, freed);
    reader->scan_at = SCAN_EVERY + 2 * reader->listed;
    reader->scanning = 0;
    if (blamed != NULL && blamed->slot != hf_thread_slot())
        note_stall(epoch, blamed, reader->listed);
}

void hf_epoch_retire(struct hf_epoch_reader *reader, struct hf_epoch_node *node)
{
    if (reader == NULL || node == NULL)
        return;
    /* seq_cst: after the unlinking, in the one order; see epoch.h. */
    node->retired = hf_u64_load(&reader->epoch->era, __ATOMIC_SEQ_CST);
    keep(reader, node);
    count(&reader->retired, 1);
    if (reader->listed >= reader->scan_at)
        scan(reader);
}

void hf_epoch_flush(struct hf_epoch *epoch)
{
    if (epoch == NULL)
        return;
    struct hf_epoch_reader *reader = epoch_reader_mine(epoch);

    if (reader == NULL)
        return;
    if (hf_u32_load(&reader->thread_id, __ATOMIC_RELAXED) == 0)
        hf_epoch_reader_adopt(epoch, reader);
    scan(reader);
}

void hf_epoch_stats(struct hf_epoch *epoch, struct hf_epoch_stats *out)
{
    if (epoch == NULL || out == NULL)
        return;
    struct hf_epoch_stats stats = {0};
    struct hf_epoch_reader *reader;
    uint32_t slot = 0;

    /* Relaxed: figures, each for itself. */
    stats.era = hf_u64_load(&epoch->era, __ATOMIC_RELAXED);
    while ((reader = hf_locals_next(&epoch->readers, &slot)) != NULL) {
        /* Freed first: it never is ahead of retired. */
        stats.freed += hf_u64_load(&reader->freed, __ATOMIC_RELAXED);
        stats.retired += hf_u64_load(&reader->retired, __ATOMIC_RELAXED);
    }
    if (stats.freed > stats.retired) /* read while lists changed hands */
        stats.freed = stats.retired;
    stats.stalls = hf_u64_load(&epoch->watch.stalls, __ATOMIC_RELAXED);
    describe(epoch, &stats.stall);
    *out = stats;
}
