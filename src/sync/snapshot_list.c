/* snapshot_list.c - arrays of items as the values of a snapshot.
 *
 * When an item may be freed. The snapshot frees arrays, in no certain order,
 * when nobody reads them. Each item has a count of the arrays that hold it; the
 * last of them to be freed frees the item. A copy that lost against another
 * change is freed by the snapshot like any other array.
 *
 * An item that was not in the list has its count made for the copy. If the copy
 * loses, its arrays are gone and the item must not be freed: so the one who
 * adds holds the count as well until it is done.
 */
#include "holdfast/snapshot_list.h"

#include "base/atomic.h"
#include "base/memory.h"
#include "holdfast/snapshot.h"
#include "sync/listed.h"

struct holders {
    struct hf_atomic_u64 count; /* (a) arrays that hold the item, and add */
};

struct entry {
    void *item;
    struct holders *holders;
};

struct array { /* NULL stands for an empty one; (i) all once published */
    size_t count;
    struct entry entries[];
};

struct hf_snapshot_list {
    struct hf_listed listed;
    struct hf_snapshot *snapshot;      /* (i) of struct array */
    struct hf_snapshot_list_opts opts; /* (i) */
    struct hf_atomic_u64 count;        /* (a) a figure */
};

/* The place of the item; `count` if it is not there. */
static size_t find(const struct array *array, const void *item)
{
    size_t at = 0;

    while (at < array->count && array->entries[at].item != item)
        at++;
    return at;
}

static const struct array *array_of(const void *value)
{
    static const struct array empty;
    return value == NULL ? &empty : value;
}

/* One array fewer holds the item; true if that was the last. Release: we read
 * the item no more. Acquire: the last one frees after all others have. */
static bool let_go(struct holders *holders)
{
    if (hf_u64_sub(&holders->count, 1, __ATOMIC_ACQ_REL) != 1)
        return false;
    hf_free(holders);
    return true;
}

static void array_free(void *context, void *value)
{
    struct hf_snapshot_list *list = context;
    struct array *array = value;

    for (size_t i = 0; i < array->count; i++)
        if (let_go(array->entries[i].holders) && list->opts.free != NULL)
            list->opts.free(list->opts.context, array->entries[i].item);
    hf_free(array);
}

/* A figure, so relaxed. Below 0 for a moment if an item is removed before the
 * add that brought it has counted it. */
static uint64_t counted(const struct hf_snapshot_list *list)
{
    uint64_t count = hf_u64_load(&list->count, __ATOMIC_RELAXED);
    return (int64_t)count < 0 ? 0 : count;
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    /* `listed` is the first member of the list. */
    row->depth = counted((const struct hf_snapshot_list *)listed);
}

enum hf_status hf_snapshot_list_open(struct hf_snapshot_list **out,
                                     const struct hf_snapshot_list_opts *opts)
{
    if (out == NULL)
        return HF_INVALID;
    struct hf_snapshot_list *list = hf_alloc_zeroed(sizeof *list);
    if (list == NULL)
        return HF_NOMEM;
    if (opts != NULL)
        list->opts = *opts;
    struct hf_snapshot_opts snapshot_opts = {
        .name = list->opts.name, .free = array_free, .context = list};
    if (hf_snapshot_open(&list->snapshot, NULL, &snapshot_opts) != HF_OK) {
        hf_free(list);
        return HF_NOMEM;
    }
    hf_listed_add(&list->listed, "snapshot_list", list->opts.name, fill);
    list->opts.name = list->listed.name;
    *out = list;
    return HF_OK;
}

void hf_snapshot_list_close(struct hf_snapshot_list *list)
{
    if (list == NULL)
        return;
    hf_listed_remove(&list->listed);
    hf_snapshot_close(list->snapshot);
    hf_free(list);
}

/* ---- Changes. ---- */

struct change {
    void *item;
    struct holders *holders; /* of an item that is added */
};

/* A copy of the array without the entry at `skip`, and with room for one at
 * the end if `more` is 1. Every item gets one more holder. */
static struct array *copy(const struct array *old, size_t skip, size_t more)
{
    struct array *fresh =
        hf_alloc(sizeof *fresh + (old->count + more) * sizeof(struct entry));
    if (fresh == NULL)
        return NULL;
    fresh->count = 0;
    for (size_t i = 0; i < old->count; i++) {
        if (i == skip)
            continue;
        fresh->entries[fresh->count++] = old->entries[i];
        /* Relaxed: the old array, which we read, holds it too. */
        hf_u64_add(&old->entries[i].holders->count, 1, __ATOMIC_RELAXED);
    }
    return fresh;
}

static enum hf_status make_longer(void *context, const void *old_value,
                                  void **fresh)
{
    const struct change *change = context;
    const struct array *old = array_of(old_value);

    if (find(old, change->item) < old->count)
        return HF_EXISTS;
    struct array *array = copy(old, old->count, 1);
    if (array == NULL)
        return HF_NOMEM;
    /* Relaxed: whoever adds holds it. */
    hf_u64_add(&change->holders->count, 1, __ATOMIC_RELAXED);
    array->entries[array->count++] =
        (struct entry){change->item, change->holders};
    *fresh = array;
    return HF_OK;
}

enum hf_status hf_snapshot_list_add(struct hf_snapshot_list *list, void *item)
{
    if (list == NULL || item == NULL)
        return HF_INVALID;
    struct change change = {item, hf_alloc(sizeof(struct holders))};
    if (change.holders == NULL)
        return HF_NOMEM;
    /* Relaxed: nobody else sees it yet. */
    hf_u64_store(&change.holders->count, 1, __ATOMIC_RELAXED);
    enum hf_status status =
        hf_snapshot_update(list->snapshot, make_longer, &change);
    if (status == HF_OK)
        hf_u64_add(&list->count, 1, __ATOMIC_RELAXED); /* a figure */
    /* It may have been removed since. */
    if (let_go(change.holders) && status == HF_OK && list->opts.free != NULL)
        list->opts.free(list->opts.context, item);
    return status;
}

static enum hf_status make_shorter(void *context, const void *old_value,
                                   void **fresh)
{
    const struct change *change = context;
    const struct array *old = array_of(old_value);
    size_t at = find(old, change->item);

    if (at == old->count)
        return HF_NOTFOUND;
    if (old->count == 1) {
        *fresh = NULL;
        return HF_OK;
    }
    *fresh = copy(old, at, 0);
    return *fresh == NULL ? HF_NOMEM : HF_OK;
}

enum hf_status hf_snapshot_list_remove(struct hf_snapshot_list *list,
                                       void *item)
{
    struct change change = {.item = item};

    if (list == NULL || item == NULL)
        return HF_INVALID;
    enum hf_status status =
        hf_snapshot_update(list->snapshot, make_shorter, &change);
    if (status == HF_OK)
        hf_u64_sub(&list->count, 1, __ATOMIC_RELAXED); /* a figure */
    return status;
}

/* ---- Reading. ---- */

enum hf_status hf_snapshot_list_visit(struct hf_snapshot_list *list,
                                      bool (*visit)(void *context, void *item),
                                      void *context)
{
    struct hf_snapshot_view view;

    if (list == NULL || visit == NULL)
        return HF_INVALID;
    enum hf_status status = hf_snapshot_read(list->snapshot, &view);
    if (status != HF_OK)
        return status;
    const struct array *array = array_of(view.value);
    for (size_t i = 0; i < array->count; i++)
        if (!visit(context, array->entries[i].item))
            break;
    hf_snapshot_leave(&view);
    return HF_OK;
}

enum hf_status hf_snapshot_list_contains(struct hf_snapshot_list *list,
                                         const void *item)
{
    struct hf_snapshot_view view;

    if (list == NULL || item == NULL)
        return HF_INVALID;
    enum hf_status status = hf_snapshot_read(list->snapshot, &view);
    if (status != HF_OK)
        return status;
    const struct array *array = array_of(view.value);
    bool found = find(array, item) < array->count;
    hf_snapshot_leave(&view);
    return found ? HF_OK : HF_NOTFOUND;
}

enum hf_status hf_snapshot_list_count(struct hf_snapshot_list *list,
                                      size_t *count)
{
    struct hf_snapshot_view view;

    if (list == NULL || count == NULL)
        return HF_INVALID;
    enum hf_status status = hf_snapshot_read(list->snapshot, &view);
    if (status != HF_OK)
        return status;
    *count = array_of(view.value)->count;
    hf_snapshot_leave(&view);
    return HF_OK;
}

void hf_snapshot_list_flush(struct hf_snapshot_list *list)
{
    if (list != NULL)
        hf_snapshot_flush(list->snapshot);
}

void hf_snapshot_list_stats(struct hf_snapshot_list *list,
                            struct hf_snapshot_list_stats *out)
{
    if (list == NULL || out == NULL)
        return;
    struct hf_snapshot_stats stats = {0};

    hf_snapshot_stats(list->snapshot, &stats);
    out->count = counted(list);
    out->changes = stats.version - 1;
    out->retries = stats.retries;
    out->kept = stats.kept;
}
