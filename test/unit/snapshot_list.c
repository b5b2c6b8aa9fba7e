/* Tests of hf_snapshot_list: one version per visit, each item freed once. */
#include "holdfast/snapshot_list.h"

#include "base/memory.h"
#include "holdfast/inspect.h"
#include "support/test.h"

static int items[64];
static int frees[64];
static struct hf_snapshot_list *list;

static void item_free(void *context, void *item)
{
    CHECK(context == frees);
    frees[(int *)item - items]++;
}

static void open_owning(void)
{
    const struct hf_snapshot_list_opts opts = {
        .name = "watchers", .free = item_free, .context = frees};

    memset(frees, 0, sizeof frees);
    CHECK_EQ(hf_snapshot_list_open(&list, &opts), HF_OK);
}

static void add(int index)
{
    CHECK_EQ(hf_snapshot_list_add(list, &items[index]), HF_OK);
}

/* Writes down what is visited; stops after `most`; may act in between. */
static struct {
    int seen[64];
    int count;
    int most;
    void (*act)(int index);
} walk;

static bool note(void *context, void *item)
{
    CHECK(context == &walk);
    int index = (int)((int *)item - items);
    CHECK_EQ(frees[index], 0);
    walk.seen[walk.count++] = index;
    if (walk.act != NULL)
        walk.act(index);
    return walk.most == 0 || walk.count < walk.most;
}

static void visit(void (*act)(int index), int most)
{
    memset(&walk, 0, sizeof walk);
    walk.act = act;
    walk.most = most;
    CHECK_EQ(hf_snapshot_list_visit(list, note, &walk), HF_OK);
}

static size_t count(void)
{
    size_t found = 99;

    CHECK_EQ(hf_snapshot_list_count(list, &found), HF_OK);
    return found;
}

TEST(bad_input_is_refused)
{
    size_t found;

    open_owning();
    CHECK_EQ(hf_snapshot_list_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_add(NULL, items), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_add(list, NULL), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_remove(NULL, items), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_remove(list, NULL), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_visit(NULL, note, NULL), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_visit(list, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_contains(NULL, items), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_contains(list, NULL), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_count(NULL, &found), HF_INVALID);
    CHECK_EQ(hf_snapshot_list_count(list, NULL), HF_INVALID);
    hf_snapshot_list_flush(NULL);
    hf_snapshot_list_close(NULL);
    CHECK_EQ(count(), 0);
    hf_snapshot_list_close(list);
}

TEST(items_keep_their_order_and_are_there_once)
{
    open_owning();
    visit(NULL, 0);
    CHECK_EQ(walk.count, 0);
    add(3);
    add(1);
    add(2);
    CHECK_EQ(hf_snapshot_list_add(list, &items[1]), HF_EXISTS);
    CHECK_EQ(hf_snapshot_list_contains(list, &items[1]), HF_OK);
    CHECK_EQ(hf_snapshot_list_contains(list, &items[4]), HF_NOTFOUND);
    CHECK_EQ(count(), 3);
    visit(NULL, 0);
    CHECK_EQ(walk.count, 3);
    CHECK_EQ(walk.seen[0], 3);
    CHECK_EQ(walk.seen[1], 1);
    CHECK_EQ(walk.seen[2], 2);
    visit(NULL, 2);
    CHECK_EQ(walk.count, 2);
    hf_snapshot_list_close(list);
    CHECK_EQ(frees[1] + frees[2] + frees[3], 3);
}

TEST(a_removed_item_is_freed_once_and_others_stay)
{
    struct hf_snapshot_list_stats stats;

    open_owning();
    for (int i = 0; i < 4; i++)
        add(i);
    CHECK_EQ(hf_snapshot_list_remove(list, &items[1]), HF_OK);
    CHECK_EQ(frees[1], 1);
    CHECK_EQ(hf_snapshot_list_remove(list, &items[1]), HF_NOTFOUND);
    CHECK_EQ(hf_snapshot_list_remove(list, &items[3]), HF_OK);
    CHECK_EQ(hf_snapshot_list_remove(list, &items[0]), HF_OK);
    visit(NULL, 0);
    CHECK_EQ(walk.count, 1);
    CHECK_EQ(walk.seen[0], 2);
    CHECK_EQ(hf_snapshot_list_remove(list, &items[2]), HF_OK); /* the last */
    CHECK_EQ(count(), 0);
    hf_snapshot_list_stats(list, &stats);
    CHECK_EQ(stats.count, 0);
    CHECK_EQ(stats.changes, 8);
    CHECK_EQ(stats.retries, 0);
    CHECK_EQ(stats.kept, 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(frees[i], 1);
    hf_snapshot_list_close(list);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(frees[i], 1);
}

TEST(without_free_items_are_the_callers)
{
    CHECK_EQ(hf_snapshot_list_open(&list, NULL), HF_OK);
    memset(frees, 0, sizeof frees);
    add(0);
    CHECK_EQ(hf_snapshot_list_remove(list, &items[0]), HF_OK);
    add(0); /* may come again */
    CHECK_EQ(count(), 1);
    hf_snapshot_list_close(list);
    CHECK_EQ(frees[0], 0);
}

static void act_replace(int index)
{
    CHECK_EQ(hf_snapshot_list_remove(list, &items[index]), HF_OK);
    CHECK_EQ(hf_snapshot_list_add(list, &items[index + 10]), HF_OK);
}

TEST(a_visitor_sees_one_version_whatever_it_changes)
{
    struct hf_snapshot_list_stats stats;

    open_owning();
    for (int i = 0; i < 3; i++)
        add(i);
    visit(act_replace, 0); /* note() sees that nothing was freed too early */
    CHECK_EQ(walk.count, 3);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(walk.seen[i], i);
        CHECK_EQ(frees[i], 0); /* the visitor may have held them */
    }
    hf_snapshot_list_flush(list);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(frees[i], 1);
    hf_snapshot_list_stats(list, &stats);
    CHECK_EQ(stats.kept, 0);
    visit(NULL, 0);
    CHECK_EQ(walk.count, 3);
    CHECK_EQ(walk.seen[0], 10);
    hf_snapshot_list_close(list);
    CHECK_EQ(frees[10] + frees[11] + frees[12], 3);
}

TEST(without_memory_nothing_changes)
{
    enum hf_status status;
    uint64_t failed = 0;

    for (;; failed++) {
        list = NULL;
        hf_memory_fail_after(failed);
        status = hf_snapshot_list_open(&list, NULL);
        hf_memory_fail_never();
        if (status == HF_OK)
            break;
        CHECK_EQ(status, HF_NOMEM);
        CHECK(list == NULL);
    }
    CHECK(failed >= 4);
    hf_snapshot_list_close(list);

    open_owning();
    add(0);
    add(1);
    for (failed = 0;; failed++) {
        hf_memory_fail_after(failed);
        status = hf_snapshot_list_add(list, &items[2]);
        hf_memory_fail_never();
        if (status == HF_OK)
            break;
        CHECK_EQ(status, HF_NOMEM);
        CHECK_EQ(count(), 2);
    }
    CHECK_EQ(failed, 3);
    for (failed = 0;; failed++) {
        hf_memory_fail_after(failed);
        status = hf_snapshot_list_remove(list, &items[1]);
        hf_memory_fail_never();
        if (status == HF_OK)
            break;
        CHECK_EQ(status, HF_NOMEM);
        CHECK_EQ(count(), 3);
        CHECK_EQ(frees[1], 0);
    }
    CHECK_EQ(failed, 2);
    CHECK_EQ(frees[1], 1);
    hf_snapshot_list_close(list);
    CHECK_EQ(frees[0] + frees[2], 2);
}

static struct hf_inspect_row found;

static void find_row(void *context, const struct hf_inspect_row *row)
{
    (void)context;
    if (strcmp(row->kind, "snapshot_list") == 0 &&
        strcmp(row->name, "watchers") == 0)
        found = *row;
}

TEST(it_is_listed_with_its_items)
{
    open_owning();
    add(0);
    add(1);
    memset(&found, 0, sizeof found);
    CHECK_EQ(hf_inspect(find_row, NULL), HF_OK);
    CHECK_EQ(found.depth, 2);
    CHECK(found.capacity == HF_INSPECT_NONE);
    hf_snapshot_list_close(list);
    memset(&found, 0, sizeof found);
    CHECK_EQ(hf_inspect(find_row, NULL), HF_OK);
    CHECK_EQ(found.depth, 0);
}
