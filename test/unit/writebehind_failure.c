/* Tests of a store that fails, of bounds, and of what is left at the end. */
#include <pthread.h>
#include <time.h>

#include "support/writebehind.h"

#define SECOND (1000 * MS)

static const struct hf_writebehind_opts by_hand = {.age_ns = HF_FOREVER};

TEST(a_store_that_cannot_now_is_asked_again_after_growing_pauses)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER,
                                       .batch_max = 1,
                                       .pause_ns = 10 * MS,
                                       .pause_max_ns = 40 * MS});
    test.memory.fail = 4;
    test.memory.status = HF_TIMEOUT;
    put("a", "1");
    for (uint64_t n = 1; n <= 4; n++) {
        uint64_t ceiling_ns = n < 3 ? 10 * MS << (n - 1) : 40 * MS;
        await(failures_are, n);
        test_clock_await_sleepers(&test.hands, 1);
        test_clock_advance(&test.hands, ceiling_ns / 2 - 1);
        CHECK_EQ(figures().failures, n); /* not before half of it */
        test_clock_advance(&test.hands, ceiling_ns / 2 + 1);
    }
    await(dirty_is, 0);
    check_trace("a=1;");
    CHECK_EQ(test.told, 4);
    CHECK_EQ(figures().failures, 4);
    CHECK_EQ(figures().dead, 0);
    end();
}

TEST(while_it_fails_changes_coalesce_behind_the_batch)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER, .batch_max = 2});
    test.memory.fail = 1;
    test.memory.status = HF_IO;
    put_group("a=1 b=1");
    await(failures_are, 1);
    put("a", "2");
    put("a", "3");
    check_get("a", "3");
    CHECK_EQ(figures().coalesced, 1);
    test_clock_await_sleepers(&test.hands, 1);
    test_clock_advance(&test.hands, SECOND);
    flush();
    check_trace("a=1 b=1;a=3;"); /* the batch as it was, then the rest */
    end();
}

TEST(a_batch_that_was_applied_although_it_failed_is_applied_again)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER, .batch_max = 1});
    test.memory.fail = 1;
    test.memory.status = HF_IO;
    test.memory.lie = true;
    put("a", "1");
    await(failures_are, 1);
    put("a", "2");
    test_clock_await_sleepers(&test.hands, 1);
    test_clock_advance(&test.hands, SECOND);
    flush();
    check_trace("a=1;a=1;a=2;");
    end();
}

TEST(after_give_up_ns_a_batch_is_dead_and_the_next_is_tried)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER,
                                       .batch_max = 2,
                                       .pause_max_ns = SECOND,
                                       .give_up_ns = 10 * SECOND});
    test.memory.fail = 1000;
    test.memory.status = HF_IO;
    put("a", "1");
    put("b", "1");
    await(failures_are, 1);
    put("c", "1");
    for (uint64_t n = 1; figures().dead == 0; n++) {
        CHECK(n < 100);
        test_clock_await_sleepers(&test.hands, 1);
        test_clock_advance(&test.hands, SECOND);
        uint64_t limit_ns = hf_clock_after_ms(NULL, 60000);
        while (figures().failures == n && figures().dead == 0)
            CHECK(hf_clock_now_ns(hf_clock_system()) < limit_ns);
    }
    CHECK(test.hands.now_ns - 1000 >= 10 * SECOND);
    CHECK_TEXT(test.dead, strlen(test.dead), "a=1!12;b=1!12;");
    test.memory.fail = 0;
    flush();
    check_trace("c=1;");
    CHECK_EQ(figures().dead, 2);
    end();
}

TEST(what_the_store_will_never_take_is_dead_at_once_and_alone)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER, .batch_max = 4});
    test.memory.poison = "b";
    put("a", "1");
    put("b", "1");
    put("c", "1");
    put("d", "1");
    await(dirty_is, 0);
    CHECK_TEXT(test.dead, strlen(test.dead), "b=1!14;");
    check_trace("a=1;c=1;d=1;");
    CHECK_EQ(figures().failures, 2); /* the batch, and the one */
    CHECK_EQ(figures().batches, 3);
    CHECK_EQ(through("b=2", HF_FOREVER), HF_FAILED);
    CHECK_EQ(through("c=2", HF_FOREVER), HF_OK);
    end();
}

TEST(a_failure_while_groups_go_one_by_one_is_retried)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER, .batch_max = 3});
    test.memory.poison = "a";
    put_group("a=1");
    put("b", "1");
    memory_hold(&test.memory, true);
    put("c", "1");
    memory_await(&test.memory);
    test.memory.fail = 1;
    test.memory.status = HF_FULL;
    memory_hold(&test.memory, false);
    await(failures_are, 3);
    put("b", "2");
    test_clock_await_sleepers(&test.hands, 1);
    test_clock_advance(&test.hands, SECOND);
    flush();
    CHECK_TEXT(test.dead, strlen(test.dead), "a=1!14;");
    check_trace("b=1;c=1;b=2;");
    end();
}

/* ---- Bounds. ---- */

struct putter {
    pthread_t thread;
    const char *group;
    uint64_t deadline_ns;
    enum hf_status status;
};

static void *putter_main(void *context)
{
    struct putter *self = context;

    self->status = try_group(self->group, self->deadline_ns);
    return NULL;
}

static void start(struct putter *putter)
{
    CHECK_EQ(pthread_create(&putter->thread, NULL, putter_main, putter), 0);
}

static enum hf_status end_of(struct putter *putter)
{
    struct timespec limit;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 60;
    CHECK_EQ(pthread_timedjoin_np(putter->thread, NULL, &limit), 0);
    return putter->status;
}

/* Two changes inside, one of them on its way: there is no room. */
static void fill_up(bool refuse)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER,
                                       .batch_max = 1,
                                       .dirty_max = 2,
                                       .refuse = refuse});
    memory_hold(&test.memory, true);
    put("a", "1");
    memory_await(&test.memory);
    put("b", "1");
}

TEST(without_room_a_put_is_refused_or_too_late)
{
    fill_up(true);
    CHECK_EQ(try_put("c", "1", HF_FOREVER), HF_FULL);
    put("b", "2"); /* needs none */
    CHECK_EQ(try_put("a", "2", HF_FOREVER), HF_FULL);
    memory_hold(&test.memory, false);
    CHECK_EQ(figures().refused, 2);
    flush();
    check_trace("a=1;b=2;");
    end();
    fill_up(false);
    CHECK_EQ(try_put("c", "1", HF_NOW), HF_TIMEOUT);
    struct putter late = {.group = "c=1", .deadline_ns = 5 * MS};
    start(&late);
    test_clock_await_sleepers(&test.hands, 1);
    test_clock_advance(&test.hands, 5 * MS);
    CHECK_EQ(end_of(&late), HF_TIMEOUT);
    CHECK_EQ(figures().refused, 2);
    CHECK(figures().wait_p99_ns >= 4 * MS);
    check_get("c", NULL);
    memory_hold(&test.memory, false);
    end();
}

TEST(the_bound_in_bytes_counts_keys_values_and_overhead)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER,
                                       .refuse = true,
                                       .dirty_bytes =
                                           2 * (HF_WRITEBEHIND_OVERHEAD + 5)});
    put("a", "1234");
    CHECK_EQ(figures().dirty_bytes, HF_WRITEBEHIND_OVERHEAD + 5);
    put("b", "123");
    CHECK_EQ(try_put("c", "", HF_NOW), HF_FULL);
    CHECK_EQ(try_put("b", "12345", HF_NOW), HF_FULL); /* one too many */
    put("b", "1234");
    check_get("b", "1234");
    CHECK_EQ(figures().dirty_bytes, 2 * (HF_WRITEBEHIND_OVERHEAD + 5));
    end();
}

TEST(who_waits_gets_room_first_come_first_served)
{
    struct putter first = {.group = "c=1 d=1", .deadline_ns = HF_FOREVER};
    struct putter second = {.group = "e=1", .deadline_ns = HF_FOREVER};

    fill_up(false);
    start(&first);
    test_clock_await_sleepers(&test.hands, 1);
    start(&second);
    test_clock_await_sleepers(&test.hands, 2);
    memory_hold(&test.memory, false);
    CHECK_EQ(end_of(&first), HF_OK);
    CHECK_EQ(end_of(&second), HF_OK);
    flush();
    check_trace("a=1;b=1;c=1 d=1;e=1;");
    end();
}

TEST(who_waits_is_sent_away_by_shut)
{
    struct putter putter = {.group = "c=1", .deadline_ns = HF_FOREVER};

    fill_up(false);
    start(&putter);
    test_clock_await_sleepers(&test.hands, 1);
    hf_writebehind_shutdown(test.behind);
    CHECK_EQ(end_of(&putter), HF_CLOSED);
    memory_hold(&test.memory, false);
    end();
    check_trace("a=1;b=1;");
}

/* Is it between two tries? */
static bool pauses(uint64_t unused)
{
    (void)unused;
    return figures().failures > 0 && !sleeps_beyond(HF_FOREVER - 1);
}

/* The store is away for a minute; puts go on, of more keys than fit. */
TEST(a_minute_without_a_store_loses_nothing_and_stays_in_bounds)
{
    enum { KEYS = 100, BOUND = 60 };
    static char last[KEYS][12]; /* what was accepted last */
    uint64_t accepted = 0, refused = 0, most = 0;

    begin((struct hf_writebehind_opts){
        .batch_max = 10, .dirty_max = BOUND, .refuse = true});
    memset(last, 0, sizeof last);
    test.memory.fail = INT32_MAX;
    test.memory.status = HF_IO;
    CHECK_EQ(through("k0=0", HF_NOW), HF_PENDING);
    memcpy(last[0], "0", 2);
    await(pauses, 0);
    uint64_t until_ns = test.hands.now_ns + 60 * SECOND;
    for (int i = 1; test.hands.now_ns < until_ns; i++) {
        char key[12], value[12];
        snprintf(key, sizeof key, "k%d", i * 7 % KEYS);
        snprintf(value, sizeof value, "%d", i);
        enum hf_status status = try_put(key, value, HF_NOW);
        CHECK(status == HF_OK || status == HF_FULL);
        if (status == HF_OK)
            memcpy(last[i * 7 % KEYS], value, sizeof value);
        *(status == HF_OK ? &accepted : &refused) += 1;
        struct hf_writebehind_stats now = figures();
        CHECK(now.dirty <= BOUND);
        most = now.dirty > most ? now.dirty : most;
        test_clock_advance(&test.hands, 10 * MS);
        await(sleeps_beyond, test.hands.now_ns); /* it has tried */
    }
    CHECK_EQ(most, BOUND);
    CHECK(refused > 0);
    CHECK(figures().failures > 10); /* each pause is 5 s at most */
    hf_mutex_lock(&test.memory.mutex);
    test.memory.fail = 0;
    hf_mutex_unlock(&test.memory.mutex);
    test_clock_advance(&test.hands, 10 * SECOND);
    end();
    CHECK_EQ(test.dead_count, 0);
    for (int k = 0; k < KEYS; k++) {
        char key[12];
        snprintf(key, sizeof key, "k%d", k);
        const char *value = memory_value(&test.memory, key);
        CHECK_EQ(value != NULL, last[k][0] != 0);
        if (value != NULL)
            CHECK_TEXT(value, strlen(value), last[k]);
    }
    CHECK(accepted > BOUND);
}

/* ---- The end. ---- */

TEST(close_hands_back_what_could_not_be_written)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER, .batch_max = 2});
    test.memory.fail = 1000;
    test.memory.status = HF_IO;
    put_group("a=1 b=1");
    await(failures_are, 1);
    put("a", "2");
    put_group("c=1 d- e=1");
    CHECK_EQ(hf_writebehind_close(test.behind, HF_NOW), HF_TIMEOUT);
    /* In order: what was on its way, then the rest. */
    CHECK_TEXT(test.dead, strlen(test.dead), "a=1 b=1!8;a=2!8;c=1 d- e=1!8;");
    check_trace("");
}

static void *closer_main(void *context)
{
    *(enum hf_status *)context = hf_writebehind_close(test.behind, 30 * SECOND);
    return NULL;
}

TEST(close_waits_until_its_deadline)
{
    enum hf_status status = HF_OK;
    pthread_t thread;

    begin(by_hand);
    test.memory.fail = 1000;
    test.memory.status = HF_IO;
    put("a", "1");
    CHECK_EQ(pthread_create(&thread, NULL, closer_main, &status), 0);
    for (int i = 0; i < 29; i++) {
        test_clock_await_sleepers(&test.hands, 2); /* it, and the thread */
        test_clock_advance(&test.hands, SECOND);
    }
    test_clock_await_sleepers(&test.hands, 2);
    CHECK_EQ(figures().dirty, 1);
    test_clock_advance(&test.hands, 2 * SECOND);
    pthread_join(thread, NULL);
    CHECK_EQ(status, HF_TIMEOUT);
    CHECK_TEXT(test.dead, strlen(test.dead), "a=1!8;");
}

/* ---- Callbacks. ---- */

static enum hf_status inner_statuses[5];

static void call_in(void)
{
    struct hf_store_change one = {.key = "i", .key_len = 1};

    inner_statuses[0] = try_put("i", "1", HF_FOREVER);    /* there is room */
    inner_statuses[1] = try_group("j=1 k=1", HF_FOREVER); /* there is none */
    inner_statuses[2] = hf_writebehind_flush(test.behind, HF_FOREVER);
    inner_statuses[3] =
        hf_writebehind_through(test.behind, &one, 1, HF_FOREVER);
    inner_statuses[4] = hf_writebehind_close(test.behind, HF_FOREVER);
}

TEST(a_callback_may_call_and_never_waits)
{
    begin((struct hf_writebehind_opts){
        .age_ns = HF_FOREVER, .batch_max = 1, .dirty_max = 2});
    test.memory.poison = "a";
    test.inner = call_in;
    put("a", "1");
    await(dead_are, 1);
    flush();
    CHECK_EQ(inner_statuses[0], HF_OK);
    CHECK_EQ(inner_statuses[1], HF_TIMEOUT);
    CHECK_EQ(inner_statuses[2], HF_INVALID);
    CHECK_EQ(inner_statuses[3], HF_INVALID);
    CHECK_EQ(inner_statuses[4], HF_INVALID);
    check_trace("i=1;");
    end();
}
