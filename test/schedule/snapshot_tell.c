/* snapshot_tell.c - listeners: nobody is told late, twice, at once, or never.
 *
 * For every listener: versions only rise; never two calls at a time; after all
 * changes have returned it knows the last one; after unlisten has returned it
 * is not called. A teller that never ends or an unlisten that never returns is
 * a livelock or a deadlock, which the scheduler tells.
 */
#include "base/atomic.h"
#include "base/thread.h"
#include "holdfast/snapshot.h"
#include "support/schedule.h"
#include "support/test.h"

#define EARS 3

struct ear {
    uint64_t id;
    struct hf_atomic_u64 told;  /* (a) the last version, 0: none */
    struct hf_atomic_u32 gone;  /* (a) unlisten has returned */
    struct hf_atomic_u64 least; /* (a) only later versions may be told */
    uint64_t current;           /* after listen: later ones must be told */
    void (*act)(struct ear *ear);
    unsigned acts; /* so many times */
};

static struct {
    unsigned changers;
    unsigned changes; /* of each */
    void (*other)(void);
    struct hf_snapshot *snapshot;
    struct hf_atomic_u32 running; /* (a) calls of listeners */
    struct ear ears[EARS];
    unsigned first_ears; /* that listen before all */
} rig;

static void hear(void *context, const struct hf_snapshot_view *view)
{
    struct ear *ear = context;

    if (hf_u32_add(&rig.running, 1, __ATOMIC_ACQ_REL) != 0)
        schedule_wrong("two listeners are called at a time");
    if (hf_u32_load(&ear->gone, __ATOMIC_ACQUIRE) != 0)
        schedule_wrong("one who has unlistened is told");
    if (view->version <= hf_u64_load(&ear->told, __ATOMIC_RELAXED) ||
        view->version <= hf_u64_load(&ear->least, __ATOMIC_RELAXED))
        schedule_wrong("told of %llu, which is old",
                       (unsigned long long)view->version);
    hf_u64_store(&ear->told, view->version, __ATOMIC_RELAXED);
    if (ear->act != NULL && ear->acts > 0) {
        ear->acts--;
        ear->act(ear);
    }
    hf_thread_pause();
    if (ear->act == NULL && hf_u32_load(&ear->gone, __ATOMIC_ACQUIRE) != 0)
        schedule_wrong("unlisten did not wait");
    hf_u32_sub(&rig.running, 1, __ATOMIC_ACQ_REL);
}

static void set(void)
{
    if (hf_snapshot_set(rig.snapshot, NULL) != HF_OK)
        schedule_wrong("set failed");
}

static uint64_t version(void)
{
    struct hf_snapshot_view view;

    if (hf_snapshot_read(rig.snapshot, &view) != HF_OK)
        schedule_wrong("read failed");
    uint64_t number = view.version;
    hf_snapshot_leave(&view);
    return number;
}

static void listen(struct ear *ear)
{
    hf_u64_store(&ear->least, version(), __ATOMIC_SEQ_CST);
    if (hf_snapshot_listen(rig.snapshot, hear, ear, &ear->id) != HF_OK)
        schedule_wrong("listen failed");
    ear->current = version();
}

static void setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    for (unsigned i = 0; i < EARS; i++) {
        rig.ears[i].told.value = rig.ears[i].least.value = 0;
        rig.ears[i].gone.value = 0;
        rig.ears[i].acts = 2;
        rig.ears[i].current = UINT64_MAX; /* does not listen */
    }
    rig.running.value = 0;
    CHECK_EQ(hf_snapshot_open(&rig.snapshot, NULL, NULL), HF_OK);
    for (unsigned i = 0; i < rig.first_ears; i++)
        listen(&rig.ears[i]);
}

static void body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber >= rig.changers) {
        rig.other();
        return;
    }
    for (unsigned i = 0; i < rig.changes; i++)
        set();
}

/* All who have not seen the last change after they listened were told. */
static bool check(void *context, FILE *explain)
{
    uint64_t last = version();
    struct hf_snapshot_stats stats;
    bool right = true;

    (void)context;
    for (unsigned i = 0; i < EARS; i++) {
        struct ear *ear = &rig.ears[i];
        if (last > ear->current && !ear->gone.value &&
            ear->told.value != last) {
            fprintf(explain, "listener %u knows %llu of %llu", i,
                    (unsigned long long)ear->told.value,
                    (unsigned long long)last);
            right = false;
        }
    }
    hf_snapshot_flush(rig.snapshot);
    hf_snapshot_stats(rig.snapshot, &stats);
    if (stats.kept != 0) {
        fprintf(explain, "%llu versions are kept",
                (unsigned long long)stats.kept);
        right = false;
    }
    hf_snapshot_close(rig.snapshot);
    return right;
}

static void run(const char *name, unsigned changers, unsigned changes,
                unsigned ears, void (*other)(void))
{
    struct schedule_case c = {.name = name,
                              .fibers = changers + (other != NULL),
                              .setup = setup,
                              .body = body,
                              .check = check};
    rig.changers = changers;
    rig.changes = changes;
    rig.first_ears = ears;
    rig.other = other;
    schedule_check(&c);
    memset(rig.ears, 0, sizeof rig.ears);
}

TEST(the_last_change_is_always_told)
{
    run("two change, two listen", 2, 2, 2, NULL);
    run("three change, one listens", 3, 2, 1, NULL);
}

static void listen_late(void)
{
    listen(&rig.ears[EARS - 1]);
}

TEST(a_change_that_a_read_after_listen_does_not_see_is_told)
{
    run("one changes, one listens first", 1, 2, 0, listen_late);
    run("two change, one listens first", 2, 2, 0, listen_late);
    run("two change, one listens second", 2, 2, 1, listen_late);
}

static void unlisten_first(void)
{
    struct ear *ear = &rig.ears[0];

    if (hf_snapshot_unlisten(rig.snapshot, ear->id) != HF_OK)
        schedule_wrong("unlisten failed");
    hf_u32_store(&ear->gone, 1, __ATOMIC_SEQ_CST);
    if (hf_snapshot_unlisten(rig.snapshot, ear->id) != HF_NOTFOUND)
        schedule_wrong("unlistened twice");
}

TEST(who_has_unlistened_is_not_told_and_nobody_hangs)
{
    run("one changes, one unlistens", 1, 3, 1, unlisten_first);
    run("two change, one of two unlistens", 2, 3, 2, unlisten_first);
}

static void act_set(struct ear *ear)
{
    (void)ear;
    set();
}

TEST(a_listener_that_changes_is_told_too)
{
    rig.ears[0].act = act_set;
    rig.ears[1].act = act_set;
    run("two change, two listeners change", 2, 1, 2, NULL);
    rig.ears[1].act = act_set;
    run("two change, one listener changes, one unlistens", 2, 1, 2,
        unlisten_first);
}

static void act_leave(struct ear *ear)
{
    if (hf_snapshot_unlisten(rig.snapshot, ear->id) != HF_OK)
        schedule_wrong("a listener cannot unlisten itself");
    hf_u32_store(&ear->gone, 1, __ATOMIC_SEQ_CST);
}

/* Only the first is there for sure: it leaves itself when it is told. */
static void act_remove_first(struct ear *ear)
{
    (void)ear;
    if (hf_snapshot_unlisten(rig.snapshot, rig.ears[0].id) == HF_OK)
        hf_u32_store(&rig.ears[0].gone, 1, __ATOMIC_SEQ_CST);
}

static void act_anew(struct ear *ear)
{
    if (hf_snapshot_unlisten(rig.snapshot, ear->id) != HF_OK)
        schedule_wrong("a listener cannot unlisten itself");
    listen(ear);
}

TEST(listeners_that_come_and_go_while_being_told)
{
    rig.ears[0].act = act_leave;
    rig.ears[1].act = act_set;
    run("one leaves, one changes", 2, 2, 2, NULL);
    rig.ears[1].act = act_remove_first;
    run("one removes another", 2, 2, 2, NULL);
}

TEST(a_listener_may_listen_anew)
{
    rig.ears[0].act = rig.ears[1].act = act_anew;
    run("two change, two listen anew", 2, 2, 2, NULL);
}
