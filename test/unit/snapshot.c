/* Tests of hf_snapshot: versions, who frees them and when, bad input. What
 * listeners are told is in snapshot_tell.c. */
#include "holdfast/snapshot.h"

#include <pthread.h>

#include "base/memory.h"
#include "base/thread.h"
#include "holdfast/inspect.h"
#include "support/test.h"
#include "support/threads.h"

static int values[16];
static int frees[16];

static void value_free(void *context, void *value)
{
    CHECK(context == frees);
    frees[(int *)value - values]++;
}

static struct hf_snapshot *open_first(void)
{
    const struct hf_snapshot_opts opts = {
        .name = "limits", .free = value_free, .context = frees};
    struct hf_snapshot *snapshot;

    memset(frees, 0, sizeof frees);
    CHECK_EQ(hf_snapshot_open(&snapshot, &values[0], &opts), HF_OK);
    return snapshot;
}

static void check_current(struct hf_snapshot *snapshot, const void *value,
                          uint64_t version)
{
    struct hf_snapshot_view view;

    CHECK_EQ(hf_snapshot_read(snapshot, &view), HF_OK);
    CHECK(view.value == value);
    CHECK_EQ(view.version, version);
    hf_snapshot_leave(&view);
    hf_snapshot_leave(&view); /* harmless */
}

static uint64_t kept(struct hf_snapshot *snapshot)
{
    struct hf_snapshot_stats stats;

    hf_snapshot_stats(snapshot, &stats);
    return stats.kept;
}

static enum hf_status make_status(void *context, const void *old, void **fresh)
{
    (void)old;
    (void)fresh;
    return *(enum hf_status *)context;
}

TEST(bad_input_is_refused)
{
    struct hf_snapshot *snapshot = open_first();
    struct hf_snapshot_view view;
    enum hf_status status = HF_OK;

    CHECK_EQ(hf_snapshot_open(NULL, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_snapshot_read(NULL, &view), HF_INVALID);
    CHECK_EQ(hf_snapshot_read(snapshot, NULL), HF_INVALID);
    CHECK_EQ(hf_snapshot_set(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_snapshot_update(NULL, make_status, &status), HF_INVALID);
    CHECK_EQ(hf_snapshot_update(snapshot, NULL, &status), HF_INVALID);
    hf_snapshot_leave(NULL);
    hf_snapshot_flush(NULL);
    hf_snapshot_close(NULL);
    check_current(snapshot, &values[0], 1);
    hf_snapshot_close(snapshot);
    CHECK_EQ(frees[0], 1);
}

TEST(set_replaces_the_value_and_frees_the_old_one)
{
    struct hf_snapshot *snapshot = open_first();

    check_current(snapshot, &values[0], 1);
    CHECK_EQ(hf_snapshot_set(snapshot, &values[1]), HF_OK);
    check_current(snapshot, &values[1], 2);
    CHECK_EQ(frees[0], 1);
    CHECK_EQ(frees[1], 0);
    CHECK_EQ(hf_snapshot_set(snapshot, NULL), HF_OK); /* no value is one too */
    check_current(snapshot, NULL, 3);
    CHECK_EQ(frees[1], 1);
    CHECK_EQ(hf_snapshot_set(snapshot, &values[2]), HF_OK);
    hf_snapshot_close(snapshot);
    CHECK_EQ(frees[2], 1);
}

TEST(without_free_values_are_the_callers)
{
    struct hf_snapshot *snapshot;

    CHECK_EQ(hf_snapshot_open(&snapshot, &values[0], NULL), HF_OK);
    CHECK_EQ(hf_snapshot_set(snapshot, &values[1]), HF_OK);
    CHECK_EQ(hf_snapshot_set(snapshot, &values[0]), HF_OK); /* again */
    check_current(snapshot, &values[0], 3);
    hf_snapshot_close(snapshot);
}

TEST(a_view_keeps_its_version_and_no_later_one)
{
    struct hf_snapshot *snapshot = open_first();
    struct hf_snapshot_view view, inner;

    CHECK_EQ(hf_snapshot_read(snapshot, &view), HF_OK);
    CHECK_EQ(hf_snapshot_set(snapshot, &values[1]), HF_OK);
    CHECK_EQ(hf_snapshot_read(snapshot, &inner), HF_OK); /* views nest */
    CHECK(inner.value == &values[1]);
    hf_snapshot_leave(&inner);
    CHECK(view.value == &values[0]);
    CHECK_EQ(frees[0], 0);
    CHECK_EQ(kept(snapshot), 1);
    hf_snapshot_leave(&view);
    CHECK_EQ(frees[0], 0); /* leaving costs nothing */
    hf_snapshot_flush(snapshot);
    CHECK_EQ(frees[0], 1);
    CHECK_EQ(kept(snapshot), 0);
    hf_snapshot_close(snapshot);
}

/* A thread that makes one change and lives on. */
struct changer {
    struct hf_snapshot *snapshot;
    pthread_barrier_t changed;
    pthread_barrier_t over;
};

static void *change_once(void *context)
{
    struct changer *changer = context;

    (void)hf_snapshot_set(changer->snapshot, &values[1]);
    pthread_barrier_wait(&changer->changed);
    pthread_barrier_wait(&changer->over);
    return NULL;
}

TEST(any_thread_frees_what_another_replaced)
{
    struct changer changer = {.snapshot = open_first()};
    struct hf_snapshot_view view;
    pthread_t thread;

    pthread_barrier_init(&changer.changed, NULL, 2);
    pthread_barrier_init(&changer.over, NULL, 2);
    CHECK_EQ(hf_snapshot_read(changer.snapshot, &view), HF_OK);
    CHECK_EQ(pthread_create(&thread, NULL, change_once, &changer), 0);
    pthread_barrier_wait(&changer.changed);
    CHECK(view.value == &values[0]);
    CHECK_EQ(frees[0], 0);
    CHECK_EQ(kept(changer.snapshot), 1);
    hf_snapshot_leave(&view);
    CHECK_EQ(hf_snapshot_set(changer.snapshot, &values[2]), HF_OK);
    CHECK_EQ(frees[0], 1);
    CHECK_EQ(frees[1], 1);
    CHECK_EQ(kept(changer.snapshot), 0);
    pthread_barrier_wait(&changer.over);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&changer.changed);
    pthread_barrier_destroy(&changer.over);
    hf_snapshot_close(changer.snapshot);
    CHECK_EQ(frees[2], 1);
}

TEST(a_view_that_stays_keeps_few_versions)
{
    static int spare[1000];
    struct hf_snapshot *snapshot;
    struct hf_snapshot_view view;

    CHECK_EQ(hf_snapshot_open(&snapshot, NULL, NULL), HF_OK);
    CHECK_EQ(hf_snapshot_read(snapshot, &view), HF_OK);
    struct changer changer = {.snapshot = snapshot};
    pthread_barrier_init(&changer.changed, NULL, 2);
    pthread_barrier_init(&changer.over, NULL, 2);
    pthread_t thread;
    /* By another thread: a change in our own would move our view's era. */
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(pthread_create(&thread, NULL, change_once, &changer), 0);
        pthread_barrier_wait(&changer.changed);
        pthread_barrier_wait(&changer.over);
        pthread_join(thread, NULL);
    }
    CHECK(kept(snapshot) <= 2);
    hf_snapshot_leave(&view);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(hf_snapshot_set(snapshot, &spare[i]), HF_OK);
    CHECK_EQ(kept(snapshot), 0);
    pthread_barrier_destroy(&changer.changed);
    pthread_barrier_destroy(&changer.over);
    hf_snapshot_close(snapshot);
}

/* ---- Updates. ---- */

static struct {
    struct hf_snapshot *snapshot;
    int runs;
    int disturb; /* so many runs find that another change came first */
} maker;

static enum hf_status make_next(void *context, const void *old, void **fresh)
{
    (void)context;
    maker.runs++;
    if (maker.disturb > 0) {
        maker.disturb--;
        if (hf_snapshot_set(maker.snapshot, &values[10 + maker.disturb]))
            return HF_CORRUPT;
    }
    *fresh = &values[(const int *)old - values + 1];
    return HF_OK;
}

TEST(an_update_makes_a_value_of_the_one_before)
{
    maker.snapshot = open_first();
    maker.runs = maker.disturb = 0;
    CHECK_EQ(hf_snapshot_update(maker.snapshot, make_next, NULL), HF_OK);
    CHECK_EQ(hf_snapshot_update(maker.snapshot, make_next, NULL), HF_OK);
    check_current(maker.snapshot, &values[2], 3);
    CHECK_EQ(maker.runs, 2);
    CHECK_EQ(frees[0] + frees[1], 2);
    hf_snapshot_close(maker.snapshot);
    CHECK_EQ(frees[2], 1);
}

TEST(an_update_whose_maker_changes_the_snapshot_runs_again)
{
    struct hf_snapshot_stats stats;

    maker.snapshot = open_first();
    maker.runs = 0;
    maker.disturb = 2;
    CHECK_EQ(hf_snapshot_update(maker.snapshot, make_next, NULL), HF_OK);
    CHECK_EQ(maker.runs, 3);
    check_current(maker.snapshot, &values[11], 4);
    hf_snapshot_stats(maker.snapshot, &stats);
    CHECK_EQ(stats.version, 4);
    CHECK_EQ(stats.retries, 2);
    CHECK_EQ(stats.kept, 0);
    CHECK_EQ(frees[0], 1);
    CHECK_EQ(frees[1], 1);  /* made of 0, in vain */
    CHECK_EQ(frees[12], 1); /* made of 11, in vain */
    CHECK_EQ(frees[10], 1);
    /* 11 was set, replaced by 10, and made of that anew: as if two values. */
    CHECK_EQ(frees[11], 1);
    hf_snapshot_close(maker.snapshot);
    CHECK_EQ(frees[11], 2);
}

TEST(an_update_that_fails_changes_nothing)
{
    struct hf_snapshot *snapshot = open_first();
    enum hf_status status = HF_NOTFOUND;

    CHECK_EQ(hf_snapshot_update(snapshot, make_status, &status), HF_NOTFOUND);
    check_current(snapshot, &values[0], 1);
    status = HF_OK; /* and makes nothing: that is a NULL */
    CHECK_EQ(hf_snapshot_update(snapshot, make_status, &status), HF_OK);
    check_current(snapshot, NULL, 2);
    hf_snapshot_close(snapshot);
    CHECK_EQ(frees[0], 1);
}

/* ---- Without memory, and seen from outside. ---- */

TEST(without_memory_nothing_changes)
{
    struct hf_snapshot *snapshot = NULL;
    enum hf_status status = HF_OK;
    uint64_t failed = 0;

    for (;; failed++) {
        hf_memory_fail_after(failed);
        status = hf_snapshot_open(&snapshot, &values[0], NULL);
        hf_memory_fail_never();
        if (status == HF_OK)
            break;
        CHECK_EQ(status, HF_NOMEM);
        CHECK(snapshot == NULL);
    }
    CHECK(failed >= 3);
    hf_snapshot_close(snapshot);

    snapshot = open_first();
    hf_memory_fail_after(0);
    CHECK_EQ(hf_snapshot_set(snapshot, &values[1]), HF_NOMEM);
    CHECK_EQ(hf_snapshot_update(snapshot, make_status, &status), HF_NOMEM);
    hf_memory_fail_never();
    check_current(snapshot, &values[0], 1);
    hf_snapshot_close(snapshot);
    CHECK_EQ(frees[0], 1);
    CHECK_EQ(frees[1], 0);
}

/* More threads than the snapshot has records for, at first without memory. */
#define CROWD 24
static pthread_barrier_t together;
static int refused[CROWD]; /* calls that gave HF_NOMEM */
static int accepted[CROWD];

static void never(void *context, const struct hf_snapshot_view *view)
{
    (void)context;
    (void)view;
}

static void count(int index, enum hf_status status)
{
    if (status == HF_NOMEM)
        refused[index]++;
    if (status == HF_OK)
        accepted[index]++;
}

static void use_without_memory(void *context, int index)
{
    struct hf_snapshot *snapshot = context;
    struct hf_snapshot_view view = {0};
    uint64_t id;

    (void)hf_thread_slot();
    pthread_barrier_wait(&together); /* all slots are taken */
    hf_memory_fail_after(0);
    count(index, hf_snapshot_read(snapshot, &view));
    hf_snapshot_leave(&view);
    hf_memory_fail_after(1);
    enum hf_status status = hf_snapshot_listen(snapshot, never, NULL, &id);
    count(index, status);
    if (status == HF_OK)
        count(index, hf_snapshot_unlisten(snapshot, id));
    hf_memory_fail_after(1);
    count(index, hf_snapshot_set(snapshot, NULL));
    hf_memory_fail_never();
    pthread_barrier_wait(&together);
    count(index, hf_snapshot_read(snapshot, &view));
    hf_snapshot_leave(&view);
}

TEST(a_thread_without_a_record_is_refused_until_there_is_memory)
{
    struct hf_snapshot *snapshot;
    struct hf_snapshot_stats stats;
    unsigned poor = 0;

    CHECK_EQ(hf_snapshot_open(&snapshot, NULL, NULL), HF_OK);
    pthread_barrier_init(&together, NULL, CROWD);
    test_threads(CROWD, use_without_memory, snapshot);
    pthread_barrier_destroy(&together);
    for (int i = 0; i < CROWD; i++) {
        CHECK(refused[i] == 0 || refused[i] == 3);
        CHECK_EQ(accepted[i], refused[i] == 0 ? 5 : 1);
        poor += refused[i] == 3;
    }
    CHECK_EQ(poor, CROWD - 15); /* we ourselves are the sixteenth */
    hf_snapshot_stats(snapshot, &stats);
    CHECK_EQ(stats.version, 1 + CROWD - poor);
    hf_snapshot_close(snapshot);
}

static struct hf_inspect_row found;

static void find_row(void *context, const struct hf_inspect_row *row)
{
    if (strcmp(row->kind, context) == 0 && strcmp(row->name, "limits") == 0)
        found = *row;
}

TEST(it_is_listed_with_the_versions_it_keeps)
{
    struct hf_snapshot *snapshot = open_first();
    struct hf_snapshot_view view;
    char kind[] = "snapshot";

    CHECK_EQ(hf_snapshot_read(snapshot, &view), HF_OK);
    CHECK_EQ(hf_snapshot_set(snapshot, &values[1]), HF_OK);
    memset(&found, 0, sizeof found);
    CHECK_EQ(hf_inspect(find_row, kind), HF_OK);
    CHECK_EQ(found.depth, 2);
    hf_snapshot_leave(&view);
    hf_snapshot_close(snapshot);
    memset(&found, 0, sizeof found);
    CHECK_EQ(hf_inspect(find_row, kind), HF_OK);
    CHECK_EQ(found.depth, 0);
}
