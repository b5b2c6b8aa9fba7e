/* snapshot.c - versions behind one link, old ones retired to an epoch.
 *
 * Telling listeners. One thread at a time is the teller; it holds the role,
 * not a lock, while it calls. Each listener has the number of the last version
 * that it knows. A change that finds the role taken leaves: the teller goes on
 * until every listener knows the current version, and gives the role up under
 * the mutex under which it saw that, so a later change finds it free.
 *
 * A change is made and then looks whether there are listeners. Listen counts
 * the new one, and who has listened then reads. All four are seq_cst: either
 * the change sees that there is a listener, or the reader sees the change.
 */
#include "holdfast/snapshot.h"

#include <assert.h>

#include "base/memory.h"
#include "sync/epoch.h"
#include "sync/listed.h"
#include "sync/mutex.h"

struct version {
    struct hf_epoch_node epoch_node;
    void *value;     /* (i) */
    uint64_t number; /* (i) */
};

struct listener {
    struct listener *next; /* (m) */
    void (*changed)(void *context, const struct hf_snapshot_view *view);
    void *context;  /* (i) */
    uint64_t id;    /* (i) */
    uint64_t known; /* (m) the version that it was told, or listened at */
};

struct hf_snapshot {
    struct hf_listed listed;
    struct hf_epoch *epoch;         /* (i) */
    struct hf_snapshot_opts opts;   /* (i) */
    struct hf_atomic_ptr current;   /* (a) struct version */
    struct hf_atomic_u64 retries;   /* (a) */
    struct hf_atomic_u64 told;      /* (a) calls of listeners */
    struct hf_atomic_u32 listeners; /* (a) how many; changed under mutex */
    struct hf_mutex mutex;          /* guards what follows */
    struct listener *first;         /* (m) by id */
    uint64_t last_id;               /* (m) */
    bool telling;                   /* (m) somebody is the teller */
    uint32_t teller;                /* (m) its slot */
    uint64_t calling;               /* (m) id of who is being told, or 0 */
    struct hf_event called;         /* (a) a listener has returned */
};

static void value_free(struct hf_snapshot *snapshot, void *value)
{
    if (snapshot->opts.free != NULL && value != NULL)
        snapshot->opts.free(snapshot->opts.context, value);
}

static void version_free(void *context, struct hf_epoch_node *node)
{
    struct version *version = (struct version *)node;

    value_free(context, version->value);
    hf_free(version);
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    struct hf_snapshot_stats stats = {0};

    /* `listed` is the first member of the snapshot, which is no constant. */
    hf_snapshot_stats((struct hf_snapshot *)(uintptr_t)listed, &stats);
    row->depth = stats.kept + 1;
}

enum hf_status hf_snapshot_open(struct hf_snapshot **out, void *value,
                                const struct hf_snapshot_opts *opts)
{
    if (out == NULL)
        return HF_INVALID;
    struct hf_snapshot *snapshot = hf_alloc_zeroed(sizeof *snapshot);
    struct version *version = hf_alloc(sizeof *version);
    struct hf_epoch_opts epoch_opts = {.name = opts == NULL ? NULL : opts->name,
                                       .free = version_free,
                                       .context = snapshot};
    if (snapshot == NULL || version == NULL ||
        hf_epoch_open(&snapshot->epoch, &epoch_opts) != HF_OK) {
        hf_free(snapshot);
        hf_free(version);
        return HF_NOMEM;
    }
    if (opts != NULL)
        snapshot->opts = *opts;
    /* Era 1 is the first: older than any reader. */
    *version = (struct version){{NULL, 1, 0}, value, 1};
    /* Relaxed: nobody else sees it yet. */
    hf_ptr_store(&snapshot->current, version, __ATOMIC_RELAXED);
    hf_listed_add(&snapshot->listed, "snapshot", snapshot->opts.name, fill);
    snapshot->opts.name = snapshot->listed.name;
    *out = snapshot;
    return HF_OK;
}

void hf_snapshot_close(struct hf_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    hf_listed_remove(&snapshot->listed);
    hf_epoch_close(snapshot->epoch);
    /* Acquire: made by another thread, perhaps. */
    struct version *version = hf_ptr_load(&snapshot->current, __ATOMIC_ACQUIRE);
    version_free(snapshot, &version->epoch_node);
    while (snapshot->first != NULL) {
        struct listener *listener = snapshot->first;
        snapshot->first = listener->next;
        hf_free(listener);
    }
    hf_free(snapshot);
}

enum hf_status hf_snapshot_read(struct hf_snapshot *snapshot,
                                struct hf_snapshot_view *view)
{
    if (snapshot == NULL || view == NULL)
        return HF_INVALID;
    struct hf_epoch_reader *reader = epoch_enter(snapshot->epoch);
    if (reader == NULL)
        return HF_NOMEM;
    const struct version *version = epoch_load(reader, &snapshot->current);
    view->value = version->value;
    view->version = version->number;
    view->reader = reader;
    return HF_OK;
}

void hf_snapshot_leave(struct hf_snapshot_view *view)
{
    if (view == NULL || view->reader == NULL)
        return;
    epoch_leave(view->reader);
    *view = (struct hf_snapshot_view){0};
}

void hf_snapshot_flush(struct hf_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    hf_epoch_flush(snapshot->epoch);
    /* What could not be freed yet goes to where a flush by any thread finds
     * it: this one may never change the snapshot again. */
    struct hf_epoch_reader *reader = epoch_reader_mine(snapshot->epoch);
    if (reader != NULL)
        hf_epoch_share(reader);
}

/* ---- Listeners. ---- */

/* The first with a higher id than `after` that does not know the version. */
static struct listener *outdated(struct hf_snapshot *snapshot, uint64_t after,
                                 uint64_t number)
{
    struct listener *at = snapshot->first;

    assert(hf_mutex_held(&snapshot->mutex));
    while (at != NULL && (at->id <= after || at->known >= number))
        at = at->next;
    return at;
}

/* Tells one listener of the version that is current: the next after `*last`,
 * who was told before, so that nobody is told twice before another once. False
 * if all know it. The caller is the teller and holds the mutex; while the
 * listener runs it does not, and the listener's record may go. */
static bool tell_next(struct hf_snapshot *snapshot, uint64_t *last)
{
    struct hf_snapshot_view view;
    enum hf_status status = hf_snapshot_read(snapshot, &view);

    assert(status == HF_OK); /* not its first: it has made a change */
    (void)status;
    struct listener *next = outdated(snapshot, *last, view.version);
    if (next == NULL)
        next = outdated(snapshot, 0, view.version);
    if (next == NULL) {
        hf_snapshot_leave(&view);
        return false;
    }
    const struct listener copy = *next;
    next->known = view.version;
    snapshot->calling = *last = copy.id;
    hf_mutex_unlock(&snapshot->mutex);

    hf_u64_add(&snapshot->told, 1, __ATOMIC_RELAXED); /* a figure */
    copy.changed(copy.context, &view);
    hf_snapshot_leave(&view); /* or all versions since would be kept */

    hf_mutex_lock(&snapshot->mutex);
    snapshot->calling = 0;
    hf_event_wake_all(&snapshot->called);
    return true;
}

/* After a change: see the top of the file. True if somebody was told. */
static bool tell(struct hf_snapshot *snapshot)
{
    uint64_t last = 0;

    /* seq_cst: see the top of the file. */
    if (hf_u32_load(&snapshot->listeners, __ATOMIC_SEQ_CST) == 0)
        return false;
    hf_mutex_lock(&snapshot->mutex);
    if (!snapshot->telling) {
        snapshot->telling = true;
        snapshot->teller = hf_thread_slot();
        while (tell_next(snapshot, &last))
            continue;
        snapshot->telling = false;
    }
    hf_mutex_unlock(&snapshot->mutex);
    return last != 0;
}

enum hf_status hf_snapshot_listen(
    struct hf_snapshot *snapshot,
    void (*changed)(void *context, const struct hf_snapshot_view *view),
    void *context, uint64_t *id)
{
    struct hf_snapshot_view view;

    if (snapshot == NULL || changed == NULL || id == NULL)
        return HF_INVALID;
    struct listener *listener = hf_alloc(sizeof *listener);
    if (listener == NULL)
        return HF_NOMEM;
    *listener = (struct listener){.changed = changed, .context = context};

    hf_mutex_lock(&snapshot->mutex);
    /* seq_cst: see the top of the file. */
    hf_u32_add(&snapshot->listeners, 1, __ATOMIC_SEQ_CST);
    if (hf_snapshot_read(snapshot, &view) != HF_OK) {
        /* Relaxed: to count one too many for a moment costs only time. */
        hf_u32_sub(&snapshot->listeners, 1, __ATOMIC_RELAXED);
        hf_mutex_unlock(&snapshot->mutex);
        hf_free(listener);
        return HF_NOMEM;
    }
    listener->known = view.version;
    hf_snapshot_leave(&view);
    struct listener **at = &snapshot->first;
    while (*at != NULL)
        at = &(*at)->next;
    *at = listener;
    *id = listener->id = ++snapshot->last_id;
    hf_mutex_unlock(&snapshot->mutex);
    return HF_OK;
}

/* The end of the one call that unlisten waits for. */
struct call {
    struct hf_snapshot *snapshot;
    uint64_t id;
};

static enum hf_status call_is_over(void *context)
{
    struct call *call = context;

    hf_mutex_lock(&call->snapshot->mutex);
    bool over = call->snapshot->calling != call->id;
    hf_mutex_unlock(&call->snapshot->mutex);
    return over ? HF_OK : HF_PENDING;
}

enum hf_status hf_snapshot_unlisten(struct hf_snapshot *snapshot, uint64_t id)
{
    struct call call = {snapshot, id};

    if (snapshot == NULL)
        return HF_INVALID;
    hf_mutex_lock(&snapshot->mutex);
    struct listener **at = &snapshot->first;
    while (*at != NULL && (*at)->id != id)
        at = &(*at)->next;
    struct listener *listener = *at;
    if (listener != NULL) {
        *at = listener->next;
        /* Relaxed: as in listen. */
        hf_u32_sub(&snapshot->listeners, 1, __ATOMIC_RELAXED);
    }
    /* A listener that unlistens itself does not wait for itself. */
    bool wait = snapshot->calling == id && snapshot->teller != hf_thread_slot();
    hf_mutex_unlock(&snapshot->mutex);
    hf_free(listener);
    if (wait)
        (void)hf_event_until(&snapshot->called, call_is_over, &call, NULL,
                             HF_FOREVER);
    return listener == NULL ? HF_NOTFOUND : HF_OK;
}

/* ---- Changes. ---- */

/* Puts `fresh` in the place of `old`; false if that is no longer current. */
static bool put(struct hf_snapshot *snapshot, struct hf_epoch_reader *reader,
                struct version *old, struct version *fresh)
{
    void *expected = old;

    fresh->number = old->number + 1;
    hf_epoch_born(reader, &fresh->epoch_node);
    /* seq_cst: it unlinks the old version, see epoch.h; and listeners are
     * looked for after. */
    if (!hf_ptr_cas(&snapshot->current, &expected, fresh, __ATOMIC_SEQ_CST)) {
        hf_u64_add(&snapshot->retries, 1, __ATOMIC_RELAXED); /* a figure */
        return false;
    }
    hf_epoch_retire(reader, &old->epoch_node);
    return true;
}

/* Ends a change. Values may be large: what nobody reads is freed at once, and
 * again after listeners were told, who may have taken their time. */
static void finish(struct hf_snapshot *snapshot, struct hf_epoch_reader *reader)
{
    epoch_leave(reader);
    hf_snapshot_flush(snapshot);
    if (tell(snapshot))
        hf_snapshot_flush(snapshot);
}

/* A version to be filled, and its maker as a reader; HF_NOMEM. */
static enum hf_status begin(struct hf_snapshot *snapshot,
                            struct version **fresh,
                            struct hf_epoch_reader **reader)
{
    *fresh = hf_alloc(sizeof **fresh);
    if (*fresh == NULL)
        return HF_NOMEM;
    *reader = epoch_enter(snapshot->epoch);
    if (*reader == NULL)
        hf_free(*fresh);
    return *reader == NULL ? HF_NOMEM : HF_OK;
}

enum hf_status hf_snapshot_set(struct hf_snapshot *snapshot, void *value)
{
    struct version *fresh;
    struct hf_epoch_reader *reader;

    if (snapshot == NULL)
        return HF_INVALID;
    if (begin(snapshot, &fresh, &reader) != HF_OK)
        return HF_NOMEM;
    fresh->value = value;
    while (
        !put(snapshot, reader, epoch_load(reader, &snapshot->current), fresh))
        continue;
    finish(snapshot, reader);
    return HF_OK;
}

enum hf_status hf_snapshot_update(struct hf_snapshot *snapshot,
                                  enum hf_status (*make)(void *context,
                                                         const void *old,
                                                         void **fresh),
                                  void *context)
{
    struct version *fresh;
    struct hf_epoch_reader *reader;

    if (snapshot == NULL || make == NULL)
        return HF_INVALID;
    if (begin(snapshot, &fresh, &reader) != HF_OK)
        return HF_NOMEM;
    for (;;) {
        struct version *old = epoch_load(reader, &snapshot->current);
        fresh->value = NULL;
        enum hf_status status = make(context, old->value, &fresh->value);
        if (status != HF_OK) {
            epoch_leave(reader);
            hf_free(fresh);
            return status;
        }
        if (put(snapshot, reader, old, fresh))
            break;
        value_free(snapshot, fresh->value); /* nobody else has seen it */
    }
    finish(snapshot, reader);
    return HF_OK;
}

void hf_snapshot_stats(struct hf_snapshot *snapshot,
                       struct hf_snapshot_stats *out)
{
    if (snapshot == NULL || out == NULL)
        return;
    struct hf_epoch_stats garbage = {0};

    hf_epoch_stats(snapshot->epoch, &garbage);
    /* One version is retired with each change. Relaxed: figures. */
    out->version = garbage.retired + 1;
    out->kept = garbage.retired - garbage.freed;
    out->retries = hf_u64_load(&snapshot->retries, __ATOMIC_RELAXED);
    out->told = hf_u64_load(&snapshot->told, __ATOMIC_RELAXED);
}
