/* Tests that the small objects refuse NULL in every call that tells a status,
 * and that the others do nothing. */
#include "holdfast/accumulator.h"
#include "holdfast/adder.h"
#include "holdfast/alert.h"
#include "holdfast/backoff.h"
#include "holdfast/barrier.h"
#include "holdfast/blocking.h"
#include "holdfast/breaker.h"
#include "holdfast/cache.h"
#include "holdfast/clock.h"
#include "holdfast/epoch.h"
#include "holdfast/latch.h"
#include "holdfast/limiter.h"
#include "holdfast/phaser.h"
#include "holdfast/rate.h"
#include "holdfast/rwlock.h"
#include "holdfast/semaphore.h"
#include "holdfast/snapshot.h"
#include "holdfast/snapshot_list.h"
#include "holdfast/stamped.h"
#include "holdfast/store.h"
#include "holdfast/writebehind.h"
#include "support/test.h"

TEST(latch_and_barrier)
{
    CHECK_EQ(hf_latch_count_down(NULL, 1), HF_INVALID);
    CHECK_EQ(hf_latch_wait(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_latch_count(NULL), 0);
    hf_latch_shut(NULL);
    hf_latch_release(NULL);
    hf_latch_stats(NULL, NULL);
    CHECK_EQ(hf_barrier_wait(NULL, HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_barrier_reset(NULL), HF_INVALID);
    hf_barrier_break(NULL);
    hf_barrier_shut(NULL);
    hf_barrier_release(NULL);
    hf_barrier_stats(NULL, NULL);
}

TEST(phaser_and_semaphore)
{
    CHECK_EQ(hf_phaser_arrive(NULL, NULL), HF_INVALID);
    hf_phaser_shut(NULL);
    hf_phaser_release(NULL);
    hf_phaser_stats(NULL, NULL);
    CHECK_EQ(hf_semaphore_acquire(NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_semaphore_give(NULL, 1), HF_INVALID);
    CHECK_EQ(hf_semaphore_drain(NULL), 0);
    hf_semaphore_shut(NULL);
    hf_semaphore_release(NULL);
    hf_semaphore_stats(NULL, NULL);
}

TEST(rwlock_and_stamped)
{
    uint64_t stamp;

    CHECK_EQ(hf_rwlock_lock_read(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_rwlock_lock_write(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_rwlock_unlock_read(NULL), HF_INVALID);
    CHECK_EQ(hf_rwlock_unlock_write(NULL), HF_INVALID);
    CHECK_EQ(hf_rwlock_downgrade(NULL), HF_INVALID);
    hf_rwlock_shut(NULL);
    hf_rwlock_release(NULL);
    hf_rwlock_stats(NULL, NULL);
    CHECK_EQ(hf_stamped_lock_read(NULL, HF_NOW, &stamp), HF_INVALID);
    CHECK_EQ(hf_stamped_lock_write(NULL, HF_NOW, &stamp), HF_INVALID);
    CHECK_EQ(hf_stamped_unlock(NULL, 1), HF_INVALID);
    CHECK_EQ(hf_stamped_optimistic(NULL), 0);
    CHECK(!hf_stamped_validate(NULL, 1));
    hf_stamped_shut(NULL);
    hf_stamped_release(NULL);
    hf_stamped_stats(NULL, NULL);
}

TEST(counters_and_figures)
{
    hf_adder_add(NULL, 1);
    CHECK_EQ(hf_adder_sum(NULL), 0);
    CHECK_EQ(hf_adder_sum_and_reset(NULL), 0);
    hf_adder_stats(NULL, NULL);
    hf_accumulator_add(NULL, 1);
    CHECK_EQ(hf_accumulator_value(NULL), 0);
    hf_accumulator_stats(NULL, NULL);
    hf_snapshot_stats(NULL, NULL);
    hf_snapshot_list_stats(NULL, NULL);
    hf_blocking_stats(NULL, NULL);
    hf_epoch_stats(NULL, NULL);
    hf_epoch_flush(NULL);
    CHECK(hf_clock_after_ms(NULL, 1000) > 0);
}

TEST(cache)
{
    CHECK_EQ(hf_cache_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_enter(NULL), HF_INVALID);
    hf_cache_leave(NULL);
    CHECK_EQ(hf_cache_get(NULL, "a", 1, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_look(NULL, "a", 1, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_read(NULL, "a", 1, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_put(NULL, "a", 1, NULL, 0), HF_INVALID);
    CHECK_EQ(hf_cache_put_if_absent(NULL, "a", 1, NULL, 0, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_put_if(NULL, "a", 1, NULL, 0, 0), HF_INVALID);
    CHECK_EQ(hf_cache_put_loaded(NULL, "a", 1, NULL, 0, 0), HF_INVALID);
    CHECK_EQ(hf_cache_put_all(NULL, NULL, 0, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_remove(NULL, "a", 1), HF_INVALID);
    CHECK_EQ(hf_cache_remove_version(NULL, "a", 1, 1), HF_INVALID);
    CHECK_EQ(hf_cache_remove_if(NULL, NULL, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_clear(NULL), HF_INVALID);
    CHECK_EQ(hf_cache_visit(NULL, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_cache_get_or_load(NULL, "a", 1, NULL, NULL, HF_NOW, NULL),
             HF_INVALID);
    CHECK_EQ(hf_cache_stamp(NULL, "a", 1), 0);
    CHECK_EQ(hf_cache_sweep(NULL, 1), 0);
    CHECK_EQ(hf_cache_count(NULL), 0);
    hf_cache_stats(NULL, NULL);
    hf_cache_shut(NULL);
    hf_cache_close(NULL);
}

TEST(rate_backoff_and_breaker)
{
    struct hf_rate_answer answer;
    struct hf_breaker_call call;
    uint64_t ns;

    CHECK_EQ(hf_rate_init(NULL, 1, 1), HF_INVALID);
    CHECK_EQ(hf_rate_open(NULL, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_rate_memory(NULL), 0);
    CHECK(hf_rate_take(NULL, 1, 0) == HF_RATE_NEVER);
    CHECK(hf_rate_wait(NULL, 1, 0) == HF_RATE_NEVER);
    CHECK(hf_rate_ask(NULL, 1, 0, &answer) == HF_RATE_NEVER);
    CHECK(hf_rate_look(NULL, 1, 0, &answer) == HF_RATE_NEVER);
    hf_rate_refund(NULL, 1, 0);
    CHECK_EQ(hf_backoff_init(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_backoff_next(NULL, 0, HF_FOREVER, &ns), HF_INVALID);
    hf_backoff_reset(NULL);
    CHECK_EQ(hf_breaker_new(NULL, NULL), HF_INVALID);
    CHECK(hf_breaker_enter(NULL, 0, &call) == HF_BREAKER_NEVER);
    CHECK_EQ(hf_breaker_leave(NULL, &call, HF_BREAKER_WORKED, 0), HF_INVALID);
    CHECK_EQ(hf_breaker_force(NULL, HF_BREAKER_OPEN, 0), HF_INVALID);
    hf_breaker_stats(NULL, NULL);
    hf_breaker_free(NULL);
}

TEST(meters)
{
    CHECK_EQ(hf_histogram_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_histogram_read(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_histogram_interval(NULL, NULL, NULL), HF_INVALID);
    hf_histogram_record(NULL, 1);
    hf_histogram_stats(NULL, NULL);
    hf_histogram_close(NULL);
    CHECK_EQ(hf_timer_stop(NULL), 0);
    CHECK_EQ(hf_spread_record(NULL, 1, 1), HF_INVALID);
    CHECK_EQ(hf_spread_percentile(NULL, 50), 0);
    hf_spread_close(NULL);
    CHECK_EQ(hf_window_view(NULL, 1, NULL), HF_INVALID);
    hf_window_record(NULL, 1, 1);
    hf_window_close(NULL);
    CHECK_EQ(hf_meter_counter(NULL, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_meter_text(NULL, 0, NULL, 0), 0);
    hf_counter_add(NULL, 1);
    hf_gauge_add(NULL, 1);
    hf_meter_close(NULL);
    CHECK_EQ(hf_alerts_add(NULL, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_alerts_evaluate(NULL, 1), HF_INVALID);
    hf_alerts_close(NULL);
}

TEST(stores_and_write_behind)
{
    CHECK_EQ(hf_store_sqlite_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_store_postgres_open(NULL, NULL), HF_INVALID);
    hf_store_stats(NULL, NULL);
    hf_store_close(NULL);
    CHECK_EQ(hf_writebehind_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_writebehind_put(NULL, NULL, 0, NULL, 0, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_delete(NULL, NULL, 0, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_put_all(NULL, NULL, 0, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_through(NULL, NULL, 0, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_get(NULL, NULL, 0, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_writebehind_flush(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_as_store(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_writebehind_close(NULL, HF_NOW), HF_OK);
    hf_writebehind_shut(NULL);
    hf_writebehind_stats(NULL, NULL);
}

TEST(limiter)
{
    struct hf_limiter_answer answer;
    struct hf_limiter_top row;
    uint64_t hold;

    CHECK_EQ(hf_limiter_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_define(NULL, "r", NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_remove(NULL, "r"), HF_INVALID);
    CHECK_EQ(hf_limiter_find(NULL, "r", NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_list(NULL, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_take(NULL, NULL, &answer), HF_INVALID);
    CHECK_EQ(hf_limiter_peek(NULL, NULL, &answer), HF_INVALID);
    CHECK_EQ(hf_limiter_refund(NULL, NULL, 1), HF_INVALID);
    CHECK_EQ(hf_limiter_acquire(NULL, NULL, HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_hold(NULL, NULL, 1, &answer, &hold), HF_INVALID);
    CHECK_EQ(hf_limiter_settle(NULL, 1, 1, 1), HF_INVALID);
    CHECK(!hf_limiter_allow(NULL, "a"));
    CHECK_EQ(hf_limiter_sweep(NULL, 1, 1), 0);
    CHECK_EQ(hf_limiter_top(NULL, &row, 1), 0);
    hf_limiter_shut(NULL);
    hf_limiter_stats(NULL, NULL);
    hf_limiter_close(NULL);
}
