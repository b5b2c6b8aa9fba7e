/* Tests of what hf_snapshot tells its listeners, and of listeners that change
 * things themselves. */
#include "base/memory.h"
#include "holdfast/snapshot.h"
#include "support/test.h"

static struct hf_snapshot *snapshot;
static int values[16];

/* What listener i was told, and what it does when it is. */
static struct ear {
    uint64_t id;
    uint64_t versions[16];
    int count;
    void (*act)(struct ear *ear);
    bool running;
} ears[3];

static void hear(void *context, const struct hf_snapshot_view *view)
{
    struct ear *ear = context;

    for (int i = 0; i < 3; i++)
        CHECK(!ears[i].running); /* one call at a time, and none in another */
    ear->running = true;
    CHECK(view->value == &values[view->version]);
    ear->versions[ear->count++] = view->version;
    if (ear->act != NULL)
        ear->act(ear);
    ear->running = false;
}

static void open_with(int listeners)
{
    memset(ears, 0, sizeof ears);
    CHECK_EQ(hf_snapshot_open(&snapshot, &values[1], NULL), HF_OK);
    for (int i = 0; i < listeners; i++)
        CHECK_EQ(hf_snapshot_listen(snapshot, hear, &ears[i], &ears[i].id),
                 HF_OK);
}

static void set(int number)
{
    CHECK_EQ(hf_snapshot_set(snapshot, &values[number]), HF_OK);
}

TEST(bad_input_is_refused)
{
    uint64_t id = 77;

    open_with(0);
    CHECK_EQ(hf_snapshot_listen(NULL, hear, NULL, &id), HF_INVALID);
    CHECK_EQ(hf_snapshot_listen(snapshot, NULL, NULL, &id), HF_INVALID);
    CHECK_EQ(hf_snapshot_listen(snapshot, hear, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_snapshot_unlisten(NULL, 1), HF_INVALID);
    CHECK_EQ(hf_snapshot_unlisten(snapshot, 0), HF_NOTFOUND);
    CHECK_EQ(hf_snapshot_unlisten(snapshot, 1), HF_NOTFOUND);
    hf_memory_fail_after(0);
    CHECK_EQ(hf_snapshot_listen(snapshot, hear, NULL, &id), HF_NOMEM);
    hf_memory_fail_never();
    CHECK_EQ(id, 77);
    set(2);
    hf_snapshot_close(snapshot);
}

TEST(listeners_are_told_of_changes_since_they_listen)
{
    struct hf_snapshot_stats stats;

    open_with(1);
    set(2);
    CHECK_EQ(hf_snapshot_listen(snapshot, hear, &ears[1], &ears[1].id), HF_OK);
    CHECK_EQ(ears[1].count, 0);
    set(3);
    CHECK_EQ(ears[0].count, 2);
    CHECK_EQ(ears[0].versions[0], 2);
    CHECK_EQ(ears[0].versions[1], 3);
    CHECK_EQ(ears[1].count, 1);
    CHECK_EQ(ears[1].versions[0], 3);
    CHECK_EQ(hf_snapshot_unlisten(snapshot, ears[0].id), HF_OK);
    CHECK_EQ(hf_snapshot_unlisten(snapshot, ears[0].id), HF_NOTFOUND);
    set(4);
    CHECK_EQ(ears[0].count, 2);
    CHECK_EQ(ears[1].count, 2);
    CHECK_EQ(hf_snapshot_unlisten(snapshot, ears[1].id), HF_OK);
    set(5);
    CHECK_EQ(ears[1].count, 2);
    hf_snapshot_stats(snapshot, &stats);
    CHECK_EQ(stats.told, 4);
    CHECK_EQ(stats.kept, 0);
    CHECK_EQ(stats.version, 5);
    hf_snapshot_close(snapshot); /* frees who still listens, too */
}

TEST(changes_while_nobody_listened_are_over)
{
    open_with(1);
    CHECK_EQ(hf_snapshot_unlisten(snapshot, ears[0].id), HF_OK);
    set(2);
    CHECK_EQ(hf_snapshot_listen(snapshot, hear, &ears[0], &ears[0].id), HF_OK);
    CHECK_EQ(ears[0].count, 0);
    set(3);
    CHECK_EQ(ears[0].count, 1);
    CHECK_EQ(ears[0].versions[0], 3);
    hf_snapshot_close(snapshot);
}

static void act_set_until_5(struct ear *ear)
{
    uint64_t version = ear->versions[ear->count - 1];

    if (version < 5)
        set((int)version + 1);
}

TEST(what_a_listener_changes_is_told_after_it_has_returned)
{
    struct hf_snapshot_stats stats;

    open_with(2);
    ears[1].act = act_set_until_5;
    set(2);
    CHECK_EQ(ears[0].count, 4);
    CHECK_EQ(ears[1].count, 4);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(ears[0].versions[i], 2 + i);
        CHECK_EQ(ears[1].versions[i], 2 + i);
    }
    /* What was in the listener's hands when it was replaced is freed too. */
    hf_snapshot_stats(snapshot, &stats);
    CHECK_EQ(stats.kept, 0);
    hf_snapshot_close(snapshot);
}

TEST(a_version_in_between_may_be_left_out)
{
    open_with(2);
    ears[0].act = act_set_until_5; /* before the other one was told */
    set(2);
    CHECK_EQ(ears[0].count, 4);
    CHECK_EQ(ears[1].count, 3);
    CHECK_EQ(ears[1].versions[0], 3);
    CHECK_EQ(ears[1].versions[2], 5);
    hf_snapshot_close(snapshot);
}

static void act_leave(struct ear *ear)
{
    CHECK_EQ(hf_snapshot_unlisten(snapshot, ear->id), HF_OK);
    CHECK_EQ(hf_snapshot_unlisten(snapshot, ear->id), HF_NOTFOUND);
}

TEST(a_listener_may_unlisten_itself)
{
    open_with(3);
    ears[1].act = act_leave;
    set(2);
    set(3);
    CHECK_EQ(ears[0].count, 2);
    CHECK_EQ(ears[1].count, 1);
    CHECK_EQ(ears[2].count, 2);
    hf_snapshot_close(snapshot);
}

static void act_remove_others(struct ear *ear)
{
    for (int i = 0; i < 3; i++)
        if (&ears[i] != ear)
            (void)hf_snapshot_unlisten(snapshot, ears[i].id);
}

TEST(a_listener_may_unlisten_others_who_were_told_and_who_were_not)
{
    open_with(3);
    ears[1].act = act_remove_others;
    set(2);
    set(3);
    CHECK_EQ(ears[0].count, 1);
    CHECK_EQ(ears[1].count, 2);
    CHECK_EQ(ears[2].count, 0);
    hf_snapshot_close(snapshot);
}

static void act_listen_anew(struct ear *ear)
{
    CHECK_EQ(hf_snapshot_unlisten(snapshot, ear->id), HF_OK);
    CHECK_EQ(hf_snapshot_listen(snapshot, hear, ear, &ear->id), HF_OK);
    if (ears[2].id == 0)
        CHECK_EQ(hf_snapshot_listen(snapshot, hear, &ears[2], &ears[2].id),
                 HF_OK);
}

TEST(who_listens_from_a_listener_is_told_of_later_changes_only)
{
    open_with(2);
    ears[0].act = act_listen_anew;
    set(2);
    CHECK_EQ(ears[0].count, 1);
    CHECK_EQ(ears[1].count, 1);
    CHECK_EQ(ears[2].count, 0);
    set(3);
    CHECK_EQ(ears[0].count, 2);
    CHECK_EQ(ears[1].count, 2);
    CHECK_EQ(ears[2].count, 1);
    hf_snapshot_close(snapshot);
}

static void act_view(struct ear *ear)
{
    struct hf_snapshot_view view;

    CHECK_EQ(hf_snapshot_read(snapshot, &view), HF_OK);
    CHECK(view.version >= ear->versions[ear->count - 1]);
    hf_snapshot_leave(&view);
}

TEST(a_listener_may_read)
{
    open_with(1);
    ears[0].act = act_view;
    set(2);
    CHECK_EQ(ears[0].count, 1);
    hf_snapshot_close(snapshot);
}
