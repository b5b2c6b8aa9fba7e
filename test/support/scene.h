/* scene.h - a server with something in it, which bad clients must not change.
 *
 *   struct test_scene *scene = test_scene_open();
 *   ... be rude on connections of your own ...
 *   test_scene_close(scene);   fails unless the server is as it was
 *
 * "As it was": it answers a client that was connected all the time, it shows
 * the same locks, products and reservations, nobody waits, it has not grown
 * beyond a bound, and it ends with status 0 when asked to.
 */
#ifndef TEST_SUPPORT_SCENE_H
#define TEST_SUPPORT_SCENE_H

#include "support/server.h"
#include "support/wire.h"

/* How much a server may grow by what one client does, in KiB. */
#define TEST_SCENE_GROWTH_KB (64u * 1024)

struct test_scene {
    struct test_server server;
    struct test_wire good; /* a well-behaved client */
    struct hf_buf before;  /* what the server showed at first */
    uint64_t memory_kb;    /* and how large it was */
    uint64_t growth_kb;    /* how much larger it may get */
    uint64_t token;        /* of the lock "held" by owner "keeper" */
};

struct test_scene *test_scene_open(void);
/* The good client asks and the server is still of bounded size. */
void test_scene_check(struct test_scene *scene);
/* Asks until the lock has so many waiters. */
void test_scene_await(struct test_scene *scene, const char *lock, int count);
void test_scene_close(struct test_scene *scene);

/* Appends all that the server shows, but for what changes with time. */
void test_show(struct test_wire *wire, struct hf_buf *out);

#endif
