/* epoch.c - nobody reads a node that was freed, and each is freed once.
 *
 * A link leads to a node. Writers put another in its place and retire the old
 * one, with a scan each time; readers follow the link. A freed node is marked
 * before its memory goes to the list of the dead, so that a late reader is
 * caught in every build.
 */
#include "holdfast/epoch.h"

#include "base/atomic.h"
#include "base/thread.h"
#include "support/schedule.h"
#include "support/test.h"

#define NODES_MAX 64

struct node {
    struct hf_epoch_node epoch_node;
    struct hf_atomic_ptr next;
    struct hf_atomic_u32 freed; /* (a) times */
};

struct scene {
    struct hf_epoch *epoch;
    struct hf_atomic_ptr link;
    struct node nodes[NODES_MAX]; /* each is used once: no false ABA */
    struct hf_atomic_u32 used;    /* (a) */
    unsigned writers;
    unsigned rounds;
};

static void node_free(void *context, struct hf_epoch_node *node)
{
    (void)context;
    hf_u32_add(&((struct node *)node)->freed, 1, __ATOMIC_RELAXED);
}

static struct node *node_new(struct scene *scene,
                             struct hf_epoch_reader *reader)
{
    uint32_t index = hf_u32_add(&scene->used, 1, __ATOMIC_RELAXED);
    struct node *node = &scene->nodes[index];

    hf_epoch_born(reader, &node->epoch_node);
    return node;
}

static void setup(void *context, uint64_t seed)
{
    struct scene *scene = context;
    struct hf_epoch_opts opts = {.free = node_free};

    (void)seed;
    memset(scene->nodes, 0, sizeof scene->nodes);
    scene->used.value = 0;
    CHECK_EQ(hf_epoch_open(&scene->epoch, &opts), HF_OK);
    struct hf_epoch_reader *reader = hf_epoch_enter(scene->epoch);
    struct node *first = node_new(scene, reader);
    first->next.value = node_new(scene, reader);
    scene->link.value = first;
    hf_epoch_leave(reader);
}

static void follow(struct scene *scene, struct hf_epoch_reader *reader)
{
    struct node *node = hf_epoch_load(reader, &scene->link);

    while (node != NULL) {
        hf_thread_pause(); /* be slow */
        if (hf_u32_load(&node->freed, __ATOMIC_RELAXED) != 0)
            schedule_wrong("node %d was read after it was freed",
                           (int)(node - scene->nodes));
        node = hf_epoch_load(reader, &node->next);
    }
}

/* Two nodes take the place of two: the second is reached by the first only. */
static void replace(struct scene *scene, struct hf_epoch_reader *reader)
{
    struct node *first = node_new(scene, reader);
    struct node *second = node_new(scene, reader);

    hf_ptr_store(&first->next, second, __ATOMIC_RELEASE);
    struct node *old = hf_ptr_swap(&scene->link, first, __ATOMIC_SEQ_CST);
    struct node *old_second = hf_ptr_load(&old->next, __ATOMIC_RELAXED);
    hf_epoch_retire(reader, &old->epoch_node);
    hf_epoch_retire(reader, &old_second->epoch_node);
}

static void body(void *context, unsigned fiber)
{
    struct scene *scene = context;

    for (unsigned i = 0; i < scene->rounds; i++) {
        struct hf_epoch_reader *reader = hf_epoch_enter(scene->epoch);
        if (fiber < scene->writers)
            replace(scene, reader);
        else
            follow(scene, reader);
        hf_epoch_leave(reader);
        if (fiber < scene->writers)
            hf_epoch_flush(scene->epoch);
    }
}

static bool check(void *context, FILE *explain)
{
    struct scene *scene = context;
    struct node *live = scene->link.value;

    hf_epoch_close(scene->epoch);
    for (uint32_t i = 0; i < scene->used.value; i++) {
        struct node *node = &scene->nodes[i];
        uint32_t expected = node != live && node != live->next.value;
        if (node->freed.value != expected) {
            fprintf(explain, "node %u of %u was freed %u times, expected %u", i,
                    scene->used.value, node->freed.value, expected);
            return false;
        }
    }
    return true;
}

static void run(const char *name, unsigned writers, unsigned readers,
                unsigned rounds)
{
    static struct scene scene;
    struct schedule_case c = {.name = name,
                              .fibers = writers + readers,
                              .setup = setup,
                              .body = body,
                              .check = check,
                              .context = &scene};
    scene.writers = writers;
    scene.rounds = rounds;
    schedule_check(&c);
}

TEST(a_reader_never_meets_a_freed_node)
{
    run("one writer, one reader", 1, 1, 3);
    run("one writer, two readers", 1, 2, 3);
}

TEST(writers_free_what_others_retired_exactly_once)
{
    run("two writers, one reader", 2, 1, 3);
}
