/* tiered.c - several processes and a real Redis: what a change replaced is not
 * read by anybody once the change has returned, whatever breaks.
 * tests: also under sanitizers
 *
 * The test changes numbers that only grow, in a SQLite file that all share, and
 * notes each one whose change has returned. Child processes read all the time,
 * each by two threads: what they read must not be below what was noted before
 * they began.
 */
#include "holdfast/tiered.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "support/redis.h"
#include "support/test.h"
#include "support/threads.h"

#define CHILDREN 3
#define THREADS  2
#define STORM    8 /* threads of a process that ask for one key */
#define KEYS     4u
#define LEASE_MS 400u
#define PATIENCE 60 /* seconds */

/* In memory that all processes share. */
static struct shared {
    struct hf_atomic_u64 floors[KEYS];
    struct hf_atomic_u64 reads[CHILDREN];
    struct hf_atomic_u64 near_hits[CHILDREN]; /* L1 and L2 */
    struct hf_atomic_u64 stale;
    struct hf_atomic_u64 failed;
    struct hf_atomic_u64 store_reads;
    struct hf_atomic_u64 arrived;
    struct hf_atomic_u32 stop;
} * shared;

static struct test_redis *redis;
static int shared_fd = -1;
static pid_t children[CHILDREN];
static char file[512];
static struct hf_store store;
static struct hf_tiered *tiered;

static uint64_t load(const struct hf_atomic_u64 *word)
{
    return hf_u64_load(word, __ATOMIC_SEQ_CST);
}

static uint64_t soon(void)
{
    return hf_clock_after_ms(NULL, PATIENCE * 1000);
}

static void pause_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void open_levels(uint32_t load_ms)
{
    struct hf_store_sqlite_opts in = {
        .path = file, .relaxed = true, .busy_ms = 60000};
    struct hf_tiered_opts opts = {.store = &store,
                                  .redis_host = "127.0.0.1",
                                  .redis_port = redis->port,
                                  .lease_ms = LEASE_MS,
                                  .load_ms = load_ms};

    if (hf_store_sqlite_open(&store, &in) != HF_OK ||
        hf_tiered_open(&tiered, &opts) != HF_OK)
        abort();
}

static void close_levels(void)
{
    hf_tiered_close(tiered);
    hf_store_close(&store);
}

/* ---- Children. ---- */

static void read_on(void *context, int index)
{
    int child = *(int *)context;

    for (unsigned i = (unsigned)index;
         hf_u32_load(&shared->stop, __ATOMIC_SEQ_CST) == 0; i++) {
        char key = (char)('a' + i % KEYS);
        uint64_t least = load(&shared->floors[i % KEYS]);
        uint64_t value = 0;
        size_t len = 0;
        enum hf_status status =
            hf_tiered_get(tiered, &key, 1, soon(), &value, sizeof value, &len);
        if (status != HF_OK || len != sizeof value)
            hf_u64_add(&shared->failed, 1, __ATOMIC_SEQ_CST);
        else if (value < least)
            hf_u64_add(&shared->stale, 1, __ATOMIC_SEQ_CST);
        hf_u64_add(&shared->reads[child], 1, __ATOMIC_SEQ_CST);
        if (i % 64 == 0)
            pause_a_little(); /* two cores, and others want them too */
    }
}

static void storm_main(int child);

static void child_main(int child)
{
    struct hf_tiered_stats stats;

    open_levels(5000);
    test_threads(THREADS, read_on, &child);
    hf_tiered_stats(tiered, &stats);
    hf_u64_store(&shared->near_hits[child], stats.l1_hits + stats.l2_hits,
                 __ATOMIC_SEQ_CST);
    close_levels();
}

/* A child is this program anew, since a sanitizer wants no threads in a copy of
 * a process that had some: "ROLE NUMBER PORT FILE SHARED" in the environment
 * tells it what to do. */
#define CHILD "TIERED_CHILD"

static void share(int fd)
{
    shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        abort();
}

static void start_children(char role)
{
    for (int i = 0; i < CHILDREN; i++) {
        char text[1200];
        snprintf(text, sizeof text, "%c %d %d %s %d", role, i, redis->port,
                 file, shared_fd);
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            setenv(CHILD, text, 1);
            execl("/proc/self/exe", "tiered-child", (char *)NULL);
            _exit(127);
        }
    }
}

__attribute__((constructor)) static void be_a_child(void)
{
    static struct test_redis there;
    const char *text = getenv(CHILD);
    char role;
    int number, port, fd;

    if (text == NULL)
        return;
    if (sscanf(text, "%c %d %d %511s %d", &role, &number, &port, file, &fd) !=
        5)
        abort();
    there.port = (uint16_t)port;
    redis = &there;
    share(fd);
    if (role == 'r')
        child_main(number);
    else
        storm_main(number);
    exit(0);
}

static void end_children(void)
{
    hf_u32_store(&shared->stop, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < CHILDREN; i++) {
        int status = -1;
        (void)waitpid(children[i], &status, 0);
        CHECK_EQ(status, 0);
    }
}

/* ---- The test's own part. ---- */

static void begin(void)
{
    static int count;

    shared_fd = memfd_create("tiered", 0); /* children keep it */
    CHECK(shared_fd >= 0);
    CHECK_EQ(ftruncate(shared_fd, sizeof *shared), 0);
    share(shared_fd);
    snprintf(file, sizeof file, "%s/%d.sqlite", test_folder(), count++);
    redis = test_redis_start(NULL);
}

static void end(void)
{
    test_redis_end(redis);
    munmap(shared, sizeof *shared);
    close(shared_fd);
}

/* Changes a key and notes it when all have heard. */
static void change(unsigned key, uint64_t value)
{
    char name = (char)('a' + key);
    enum hf_status status =
        hf_tiered_put(tiered, &name, 1, &value, sizeof value, soon());

    /* Redis was away: it is in the store, and is told again. */
    for (uint64_t until_ns = soon();
         status == HF_IO && hf_clock_now_ns(hf_clock_system()) < until_ns;)
        status = hf_tiered_invalidate(tiered, &name, 1, soon());
    CHECK_EQ(status, HF_OK);
    hf_u64_store(&shared->floors[key], value, __ATOMIC_SEQ_CST);
}

static void change_all(uint64_t from, uint64_t to)
{
    for (uint64_t value = from; value < to; value++)
        change((unsigned)(value % KEYS), value);
}

/* Until each child has read `more` times more. */
static void await_reads(uint64_t more)
{
    uint64_t goals[CHILDREN];
    uint64_t until_ns = soon();

    for (int i = 0; i < CHILDREN; i++)
        goals[i] = load(&shared->reads[i]) + more;
    for (int i = 0; i < CHILDREN; i++) {
        while (load(&shared->reads[i]) < goals[i]) {
            CHECK(hf_clock_now_ns(hf_clock_system()) < until_ns);
            pause_a_little();
        }
    }
}

static void check_clean(void)
{
    CHECK_EQ(load(&shared->stale), 0);
    CHECK_EQ(load(&shared->failed), 0);
}

/* All keys are there, and children read them. */
static void set_up(void)
{
    begin();
    open_levels(5000);
    change_all(1, 1 + KEYS);
    start_children('r');
    await_reads(200);
}

static void take_down(void)
{
    close_levels();
    end_children();
    check_clean();
    for (int i = 0; i < CHILDREN; i++)
        CHECK(load(&shared->near_hits[i]) > 100); /* it was a test */
    end();
}

static unsigned scaled(unsigned count)
{
    const char *kind = getenv("HOLDFAST_SAN");

    return kind != NULL && kind[0] != '\0' ? count / 4 : count;
}

TEST(no_process_reads_what_a_change_replaced)
{
    struct hf_tiered_stats stats;
    unsigned count = scaled(1000);

    set_up();
    for (uint64_t i = 0; i < 10; i++) {
        change_all(100 + i * count / 10, 100 + (i + 1) * count / 10);
        await_reads(50);
        check_clean();
    }
    hf_tiered_stats(tiered, &stats);
    CHECK(stats.changes >= count);
    take_down();
}

TEST(a_process_that_hangs_reads_nothing_old_when_it_goes_on)
{
    set_up();
    for (uint64_t i = 0; i < scaled(8) + 1; i++) {
        pid_t victim = children[i % CHILDREN];
        change_all(100 + 20 * i, 110 + 20 * i);
        CHECK_EQ(kill(victim, SIGSTOP), 0);
        change(0, 110 + 20 * i); /* returns when its lease is over */
        change_all(111 + 20 * i, 116 + 20 * i);
        CHECK_EQ(kill(victim, SIGCONT), 0);
        await_reads(50);
        check_clean();
    }
    take_down();
}

static void redis_command(const char *command)
{
    redisContext *wire = redisConnect("127.0.0.1", redis->port);

    CHECK(wire != NULL && wire->err == 0);
    freeReplyObject(redisCommand(wire, command));
    redisFree(wire);
}

TEST(connections_that_are_cut_lose_no_change)
{
    set_up();
    for (uint64_t i = 0; i < scaled(12) + 1; i++) {
        change_all(100 + 10 * i, 105 + 10 * i);
        redis_command(i % 2 == 0 ? "CLIENT KILL TYPE pubsub"
                                 : "CLIENT KILL TYPE normal");
        change_all(105 + 10 * i, 110 + 10 * i);
        await_reads(20);
        check_clean();
    }
    take_down();
}

TEST(a_redis_that_forgets_everything_loses_no_change)
{
    set_up();
    for (uint64_t i = 0; i < scaled(4) + 1; i++) {
        change_all(100 + 20 * i, 105 + 20 * i);
        redis_command("FLUSHALL");
        change_all(105 + 20 * i, 110 + 20 * i);
        await_reads(20);
        test_redis_kill(redis);
        await_reads(20); /* from the store */
        test_redis_restart(redis);
        change_all(110 + 20 * i, 120 + 20 * i);
        await_reads(20);
        check_clean();
    }
    take_down();
}

/* ---- A storm. ---- */

static struct hf_store slow;

/* Counts, and takes until all have asked. */
static enum hf_status slow_read(void *context, const void *key, size_t key_len,
                                void (*found)(void *arg, const void *value,
                                              size_t value_len),
                                void *arg)
{
    uint64_t until_ns = soon();

    hf_u64_add(&shared->store_reads, 1, __ATOMIC_SEQ_CST);
    while (load(&shared->arrived) < CHILDREN * STORM &&
           hf_clock_now_ns(hf_clock_system()) < until_ns)
        pause_a_little();
    return store.read(context, key, key_len, found, arg);
}

static void storm_read(void *context, int index)
{
    uint64_t value = 0;
    size_t len = 0;

    (void)context, (void)index;
    hf_u64_add(&shared->arrived, 1, __ATOMIC_SEQ_CST);
    if (hf_tiered_get(tiered, "a", 1, soon(), &value, sizeof value, &len) !=
            HF_OK ||
        value != 1)
        hf_u64_add(&shared->failed, 1, __ATOMIC_SEQ_CST);
}

static void storm_main(int child)
{
    struct hf_tiered_opts opts = {.store = &slow,
                                  .redis_host = "127.0.0.1",
                                  .redis_port = redis->port,
                                  .load_ms = PATIENCE * 1000,
                                  .lease_ms = 30000,
                                  .timeout_ms = PATIENCE * 1000};
    struct hf_store_sqlite_opts in = {.path = file, .busy_ms = 60000};

    (void)child;
    if (hf_store_sqlite_open(&store, &in) != HF_OK)
        abort();
    slow = store;
    slow.read = slow_read;
    if (hf_tiered_open(&tiered, &opts) != HF_OK)
        abort();
    test_threads(STORM, storm_read, NULL);
    close_levels();
}

TEST(a_storm_on_one_key_reaches_the_store_once)
{
    struct hf_store_sqlite_opts in = {.path = file};
    uint64_t one = 1;
    struct hf_store_change first = {
        .key = "a", .key_len = 1, .value = &one, .value_len = sizeof one};

    begin();
    CHECK_EQ(hf_store_sqlite_open(&store, &in), HF_OK);
    CHECK_EQ(store.apply(store.context, &first, 1), HF_OK);
    hf_store_close(&store);
    start_children('s');
    end_children();
    CHECK_EQ(load(&shared->failed), 0);
    CHECK_EQ(load(&shared->arrived), CHILDREN * STORM);
    CHECK_EQ(load(&shared->store_reads), 1);
    end();
}
