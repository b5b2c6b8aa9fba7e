/* exclusion.c - threads that exclude each other by a server only.
 * tests: also under sanitizers
 *
 * Each thread has a connection of its own. What they share is read and written
 * in separate steps that nothing but the lock protects. (The steps are relaxed
 * atomics, since a lock of a server is none that the language knows of.)
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/random.h"
#include "support/server.h"
#include "support/test.h"

#define THREADS_MAX 100

static struct test_server server;
static struct test_wire good;
static atomic_int failures;

struct worker {
    pthread_t thread;
    int index;
    struct hf_random random;
    struct test_wire wire;
    int64_t token; /* of the last LOCK */
    void (*body)(struct worker *worker);
};

static atomic_uint_fast64_t words[2];

static uint64_t get(int i)
{
    return atomic_load_explicit(&words[i], memory_order_relaxed);
}

static void put(int i, uint64_t value)
{
    atomic_store_explicit(&words[i], value, memory_order_relaxed);
}

static void expect(bool holds)
{
    if (!holds)
        atomic_fetch_add(&failures, 1);
}

/* Asks for the lock and waits for it as long as it takes. */
static bool lock(struct worker *worker, const char *what, const char *how)
{
    struct hf_bytes reply = {0};

    test_wire_add(&worker->wire, "LOCK %s OWNER o%d TTL 3600000 FOREVER%s",
                  what, worker->index, how);
    bool told = test_wire_send(&worker->wire) == HF_OK &&
                test_wire_read(&worker->wire, &reply) == HF_OK;
    worker->token = told ? test_number(reply, "token") : TEST_NO_NUMBER;
    expect(worker->token > 0);
    return worker->token > 0;
}

static void unlock(struct worker *worker, const char *what)
{
    struct hf_bytes reply = {0};

    test_wire_add(&worker->wire, "UNLOCK %s %" PRId64, what, worker->token);
    expect(test_wire_send(&worker->wire) == HF_OK &&
           test_wire_read(&worker->wire, &reply) == HF_OK &&
           reply.data[0] != '-');
}

static void *run(void *context)
{
    struct worker *worker = context;

    worker->body(worker);
    return NULL;
}

/* Runs it on so many threads; the server must find nothing wrong. */
static void run_threads(int count, void (*body)(struct worker *worker))
{
    static struct worker workers[THREADS_MAX];

    test_server_begin(&server, &good,
                      &(struct test_server_opts){.durability = "none"});
    atomic_store(&failures, 0);
    put(0, 0);
    put(1, 0);
    for (int i = 0; i < count; i++) {
        workers[i] = (struct worker){.index = i, .body = body};
        hf_random_init(&workers[i].random, (uint64_t)i + 1);
        test_server_connect(&server, &workers[i].wire);
    }
    for (int i = 0; i < count; i++)
        CHECK_EQ(pthread_create(&workers[i].thread, NULL, run, &workers[i]), 0);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
        test_wire_close(&workers[i].wire);
    }
    CHECK_EQ(atomic_load(&failures), 0);
    CHECK_EQ(test_info(&good, "locks"), 0);
    CHECK_EQ(test_info(&good, "lock_waiters"), 0);
    CHECK_EQ(test_info(&good, "lock_double_grants_total"), 0);
    test_server_finish(&server, &good);
}

#define COUNTS 20

static void count_up(struct worker *worker)
{
    for (int i = 0; i < COUNTS && lock(worker, "counter", ""); i++) {
        uint64_t value = get(0);
        sched_yield();
        put(0, value + 1);
        unlock(worker, "counter");
    }
}

TEST(a_hundred_threads_count_exactly)
{
    run_threads(100, count_up);
    CHECK_EQ(get(0), 100 * COUNTS);
}

#define TURNS   40
#define READERS 24

static atomic_int written;

/* A writer changes two words, one after the other; a reader must find them
 * equal, before and after others run. */
static void read_or_write(struct worker *worker)
{
    for (int i = 0; i < TURNS; i++) {
        bool writes = hf_random_below(&worker->random, 3) == 0;
        if (!lock(worker, "book", writes ? "" : " SHARED"))
            return;
        uint64_t value = get(0);
        expect(get(1) == value);
        sched_yield();
        expect(get(0) == value && get(1) == value);
        if (writes) {
            put(0, value + 1);
            sched_yield();
            put(1, value + 1);
            atomic_fetch_add(&written, 1);
        }
        unlock(worker, "book");
    }
}

TEST(readers_never_see_half_of_what_a_writer_writes)
{
    atomic_store(&written, 0);
    run_threads(READERS, read_or_write);
    CHECK_EQ(get(0), atomic_load(&written));
    CHECK_EQ(get(1), atomic_load(&written));
}

#define PERMITS 3

static atomic_int inside;

static void enter(struct worker *worker)
{
    for (int i = 0; i < TURNS && lock(worker, "desk", " PERMITS 1 OF 3"); i++) {
        expect(atomic_fetch_add(&inside, 1) < PERMITS);
        sched_yield();
        atomic_fetch_sub(&inside, 1);
        unlock(worker, "desk");
    }
}

TEST(no_more_are_inside_than_there_are_permits)
{
    atomic_store(&inside, 0);
    run_threads(16, enter);
}
