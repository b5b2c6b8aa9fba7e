/* tiered.c - what each level of hf_tiered costs, beside a plain cache and a
 * plain client of Redis.
 *
 *   tiered PORT ROUNDS MS
 *
 * In each round, one after the other, MS milliseconds each, one thread, values
 * of 100 bytes:
 *
 *   l1_ns      a read that L1 answers       cache: hf_cache_read()
 *   l2_ns      one that L2 answers          cache: the same
 *   l3_us      one that Redis answers       hiredis: GET
 *   change_us  an invalidation that two     hiredis: DEL, then PUBLISH to two
 *              other processes have heard   who listen, and nobody answers
 *
 * Prints lines of SIDE FIGURE VALUE. Every answer is checked.
 */
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast/cache.h"
#include "holdfast/clock.h"
#include "holdfast/tiered.h"

#define KEYS   128u
#define VALUE  100u
#define OTHERS 2
#define LOOK   64u /* between two looks at the clock, where that would count */

static const char value[VALUE] = "a value";
static uint16_t port;
static char keys[KEYS][16];
static size_t key_lens[KEYS];

static void fail(const char *what)
{
    fprintf(stderr, "tiered: %s\n", what);
    exit(1);
}

static uint64_t now_ns(void)
{
    return hf_clock_now_ns(hf_clock_system());
}

static uint64_t soon(void)
{
    return hf_clock_after_ms(NULL, 60000);
}

/* ---- A store that has every key. ---- */

static enum hf_status
store_read(void *context, const void *key, size_t key_len,
           void (*found)(void *arg, const void *bytes, size_t len), void *arg)
{
    (void)context, (void)key, (void)key_len;
    found(arg, value, VALUE);
    return HF_OK;
}

static enum hf_status
store_apply(void *context, const struct hf_store_change *changes, size_t count)
{
    (void)context, (void)changes, (void)count;
    return HF_OK;
}

static struct hf_tiered *open_tiered(struct hf_tiered_opts opts)
{
    struct hf_store store = {.read = store_read, .apply = store_apply};
    struct hf_tiered_stats stats;
    struct hf_tiered *tiered;

    opts.store = &store;
    opts.redis_host = "127.0.0.1";
    opts.redis_port = port;
    opts.timeout_ms = 10000;
    if (hf_tiered_open(&tiered, &opts) != HF_OK)
        fail("hf_tiered_open");
    hf_tiered_stats(tiered, &stats);
    if (!stats.leased)
        fail("no lease");
    return tiered;
}

/* ---- The works: one call each; they return how many they made. ---- */

static struct hf_tiered *l1, *l2, *l3;
static struct hf_cache *cache;
static redisContext *wire;
static unsigned turn;

static void sum(void *arg, const void *bytes, size_t len)
{
    *(size_t *)arg += len + (size_t)((const char *)bytes)[0];
}

static void sum_cached(void *arg, void *bytes)
{
    sum(arg, bytes, VALUE);
}

static unsigned read_tiered(struct hf_tiered *tiered, unsigned count)
{
    const size_t each = VALUE + (size_t)value[0];
    size_t total = 0;

    for (unsigned i = 0; i < count; i++) {
        unsigned key = turn++ % KEYS;
        (void)hf_tiered_read(tiered, keys[key], key_lens[key], HF_FOREVER, sum,
                             &total);
    }
    if (total != count * each)
        fail("a wrong value");
    return count;
}

static unsigned work_l1(void)
{
    return read_tiered(l1, LOOK);
}

static unsigned work_l2(void)
{
    return read_tiered(l2, LOOK);
}

static unsigned work_l3(void)
{
    return read_tiered(l3, 1);
}

static unsigned work_cache(void)
{
    size_t total = 0;

    for (unsigned i = 0; i < LOOK; i++) {
        unsigned key = turn++ % KEYS;
        (void)hf_cache_read(cache, keys[key], key_lens[key], sum_cached,
                            &total);
    }
    if (total != LOOK * (VALUE + (size_t)value[0]))
        fail("a wrong value");
    return LOOK;
}

static redisReply *plain(const char *format, const char *word)
{
    redisReply *reply = redisCommand(wire, format, word);

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        fail("a command failed");
    return reply;
}

static unsigned work_get(void)
{
    redisReply *reply = plain("GET %s", keys[turn++ % KEYS]);

    if (reply->type != REDIS_REPLY_STRING || reply->len != VALUE)
        fail("a wrong value");
    freeReplyObject(reply);
    return 1;
}

static unsigned work_change(void)
{
    unsigned key = turn++ % KEYS;

    if (hf_tiered_invalidate(l1, keys[key], key_lens[key], soon()) != HF_OK)
        fail("hf_tiered_invalidate");
    return 1;
}

static unsigned work_delete(void)
{
    const char *key = keys[turn++ % KEYS];

    freeReplyObject(plain("DEL %s", key));
    redisReply *reply = plain("PUBLISH plain %s", key);
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer != OTHERS)
        fail("not all listen");
    freeReplyObject(reply);
    return 1;
}

static void measure(const char *side, const char *figure, double unit_ns,
                    uint64_t ms, unsigned (*work)(void))
{
    uint64_t count = 0, start_ns, end_ns;

    for (unsigned i = 0; i < 4 * KEYS; i++)
        (void)work(); /* warm */
    start_ns = end_ns = now_ns();
    while (end_ns - start_ns < ms * 1000000) {
        count += work();
        end_ns = now_ns();
    }
    printf("%s %s %.2f\n", side, figure,
           (double)(end_ns - start_ns) / (double)count / unit_ns);
}

/* ---- Other processes. ---- */

static void take_all(redisContext *ears)
{
    for (void *reply; redisGetReply(ears, &reply) == REDIS_OK;)
        freeReplyObject(reply);
}

/* One that hears of changes, and listens to a plain channel as well. */
static void be_another(int ready)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)open_tiered((struct hf_tiered_opts){0});
    redisContext *ears = redisConnect("127.0.0.1", port);
    if (ears == NULL || ears->err != 0)
        fail("no connection");
    freeReplyObject(redisCommand(ears, "SUBSCRIBE plain"));
    if (write(ready, "r", 1) != 1)
        fail("write");
    take_all(ears);
    _exit(1);
}

static void start_others(pid_t others[OTHERS])
{
    int ready[2];
    char byte;

    if (pipe(ready) != 0)
        fail("pipe");
    for (int i = 0; i < OTHERS; i++) {
        others[i] = fork();
        if (others[i] < 0)
            fail("fork");
        if (others[i] == 0)
            be_another(ready[1]);
    }
    for (int i = 0; i < OTHERS; i++)
        if (read(ready[0], &byte, 1) != 1)
            fail("another process did not start");
}

static void set_up(void)
{
    struct hf_cache_opts opts = {.max_count = 10 * KEYS,
                                 .ttl_ns = UINT64_C(300000000000)};

    wire = redisConnect("127.0.0.1", port);
    if (wire == NULL || wire->err != 0 || hf_cache_open(&cache, &opts) != HF_OK)
        fail("cannot be set up");
    for (unsigned i = 0; i < KEYS; i++) {
        key_lens[i] = (size_t)snprintf(keys[i], sizeof keys[i], "key-%u", i);
        freeReplyObject(
            redisCommand(wire, "SET %s %b", keys[i], value, (size_t)VALUE));
        (void)hf_cache_put(cache, keys[i], key_lens[i], (void *)value, 0);
    }
    l1 = open_tiered((struct hf_tiered_opts){.l1_count = 4 * KEYS});
    l2 = open_tiered((struct hf_tiered_opts){.no_l1 = true});
    /* Too small for anything: each read goes further. */
    l3 = open_tiered((struct hf_tiered_opts){.no_l1 = true, .l2_bytes = 1});
}

static void check_levels(void)
{
    struct hf_tiered_stats one, two, three;

    hf_tiered_stats(l1, &one);
    hf_tiered_stats(l2, &two);
    hf_tiered_stats(l3, &three);
    if (one.l1_hits < 10 * one.l2_hits || two.l1_hits > 0 ||
        two.l2_hits < 10 * two.store_reads ||
        three.l3_hits < 10 * three.store_reads || three.l2_hits > 0)
        fail("another level answered");
}

int main(int argc, char **argv)
{
    pid_t others[OTHERS];

    if (argc != 4)
        fail("usage: tiered PORT ROUNDS MS");
    port = (uint16_t)strtoul(argv[1], NULL, 10);
    unsigned rounds = (unsigned)strtoul(argv[2], NULL, 10);
    uint64_t ms = strtoull(argv[3], NULL, 10);
    start_others(others);
    set_up();
    for (unsigned i = 0; i < rounds; i++) {
        measure("ours", "l1_ns", 1, ms, work_l1);
        measure("cache", "l1_ns", 1, ms, work_cache);
        measure("ours", "l2_ns", 1, ms, work_l2);
        measure("cache", "l2_ns", 1, ms, work_cache);
        measure("ours", "l3_us", 1000, ms, work_l3);
        measure("hiredis", "l3_us", 1000, ms, work_get);
        check_levels();
    }
    hf_tiered_close(l2);
    hf_tiered_close(l3);
    for (unsigned i = 0; i < rounds; i++) {
        measure("ours", "change_us", 1000, ms, work_change);
        measure("hiredis", "change_us", 1000, ms, work_delete);
    }
    for (int i = 0; i < OTHERS; i++) {
        (void)kill(others[i], SIGKILL);
        (void)waitpid(others[i], NULL, 0);
    }
    hf_tiered_close(l1);
    hf_cache_close(cache);
    redisFree(wire);
    return 0;
}
