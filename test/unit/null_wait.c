/* Tests that NULL is refused, or does nothing, in every call of the headers
 * for how threads wait for each other, and what they build on.
 *
 * Each pointer in turn is NULL and all else is good: a call that tells a status
 * says HF_INVALID, unless the header says that it may be NULL. What users pass
 * through (context, arg) is not looked at. test/system/null.sh knows which
 * calls there are. */
#include "holdfast/barrier.h"
#include "holdfast/clock.h"
#include "holdfast/epoch.h"
#include "holdfast/event.h"
#include "holdfast/inspect.h"
#include "holdfast/latch.h"
#include "holdfast/phaser.h"
#include "holdfast/rwlock.h"
#include "holdfast/semaphore.h"
#include "holdfast/stamped.h"
#include "support/test.h"

static char item[8]; /* something to point to */
static void *out;
static char buffer[4096];

static void free_node(void *context, struct hf_epoch_node *node)
{
    (void)context;
    (void)node;
}

TEST(barrier)
{
    struct hf_barrier barrier;
    struct hf_barrier_opts opts = {.parties = 2};
    CHECK_EQ(hf_barrier_init(&barrier, &opts), HF_OK);

    CHECK_EQ(hf_barrier_init(NULL, &opts), HF_INVALID);
    CHECK_EQ(hf_barrier_init(&barrier, NULL), HF_INVALID);
    hf_barrier_destroy(NULL);
    CHECK_EQ(hf_barrier_wait(NULL, HF_NOW, &(uint32_t){0}), HF_INVALID);
    hf_barrier_break(NULL);
    CHECK_EQ(hf_barrier_reset(NULL), HF_INVALID);
    hf_barrier_shutdown(NULL);
    hf_barrier_stats(NULL, &(struct hf_barrier_stats){0});
    hf_barrier_stats(&barrier, NULL);
    CHECK(hf_barrier_wait(&barrier, HF_NOW, NULL) != HF_INVALID);
    hf_barrier_destroy(&barrier);
}

TEST(clock)
{
    CHECK(hf_clock_now_ns(NULL) > 0);
    CHECK(hf_clock_wall_us(NULL) > 0);
    CHECK(hf_clock_after_ns(NULL, 1) > 0);
    CHECK(hf_clock_after_ms(NULL, 1) > 0);
}

TEST(epoch)
{
    struct hf_epoch *epoch;
    struct hf_epoch_opts opts = {.free = free_node};
    struct hf_epoch_node node = {.next = NULL};
    struct hf_atomic_ptr link = {NULL};
    CHECK_EQ(hf_epoch_open(&epoch, &opts), HF_OK);
    struct hf_epoch_reader *reader = hf_epoch_enter(epoch);
    CHECK(reader != NULL);

    CHECK_EQ(hf_epoch_open(NULL, &opts), HF_INVALID);
    hf_epoch_close(NULL);
    CHECK(hf_epoch_enter(NULL) == NULL);
    hf_epoch_leave(NULL);
    CHECK(hf_epoch_load(NULL, &link) == NULL);
    CHECK(hf_epoch_load(reader, NULL) == NULL);
    CHECK(!hf_epoch_change(NULL, &out, &item));
    CHECK(!hf_epoch_change(&link, NULL, &item));
    hf_epoch_born(NULL, &node);
    hf_epoch_born(reader, NULL);
    hf_epoch_retire(NULL, &node);
    hf_epoch_retire(reader, NULL);
    hf_epoch_flush(NULL);
    hf_epoch_stats(NULL, &(struct hf_epoch_stats){0});
    hf_epoch_stats(epoch, NULL);
    hf_epoch_leave(reader);
    hf_epoch_close(epoch);
}

static enum hf_status attempt(void *context)
{
    (void)context;
    return HF_OK;
}

TEST(event)
{
    struct hf_event event;
    hf_event_init(&event);
    uint32_t key = hf_event_prepare(&event);

    hf_event_init(NULL);
    CHECK_EQ(hf_event_prepare(NULL), 0);
    hf_event_cancel(NULL, key);
    CHECK_EQ(hf_event_wait(NULL, key, hf_clock_system(), HF_NOW), HF_INVALID);
    hf_event_wake(NULL, 1);
    hf_event_wake_all(NULL);
    CHECK_EQ(hf_event_until(&event, NULL, &item, hf_clock_system(), HF_NOW),
             HF_INVALID);
    CHECK_EQ(hf_event_until(NULL, attempt, &item, hf_clock_system(), HF_NOW),
             HF_INVALID);
    CHECK_EQ(hf_event_until(&event, attempt, NULL, NULL, HF_NOW), HF_OK);
    CHECK_EQ(hf_event_wait(&event, key, NULL, HF_NOW), HF_TIMEOUT);
}

TEST(inspect)
{
    CHECK_EQ(hf_inspect(NULL, &item), HF_INVALID);
    CHECK(hf_inspect_text(HF_INSPECT_TEXT, NULL, sizeof buffer) > 0);
}

TEST(latch)
{
    struct hf_latch latch;
    CHECK_EQ(hf_latch_init(&latch, 2, NULL), HF_OK);

    CHECK_EQ(hf_latch_init(NULL, 1, hf_clock_system()), HF_INVALID);
    hf_latch_destroy(NULL);
    CHECK_EQ(hf_latch_count_down(NULL, 1), HF_INVALID);
    CHECK_EQ(hf_latch_wait(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_latch_count(NULL), 0);
    hf_latch_shutdown(NULL);
    hf_latch_stats(NULL, &(struct hf_latch_stats){0});
    hf_latch_stats(&latch, NULL);
    hf_latch_destroy(&latch);
}

TEST(phaser)
{
    struct hf_phaser phaser;
    struct hf_phaser_opts opts = {.parties = 9};
    CHECK_EQ(hf_phaser_init(&phaser, &opts), HF_OK);

    CHECK_EQ(hf_phaser_init(NULL, &opts), HF_INVALID);
    CHECK_EQ(hf_phaser_init(&phaser, NULL), HF_INVALID);
    hf_phaser_destroy(NULL);
    CHECK_EQ(hf_phaser_register(NULL, 1, HF_NOW, &(uint32_t){0}), HF_INVALID);
    CHECK_EQ(hf_phaser_arrive(NULL, &(uint32_t){0}), HF_INVALID);
    CHECK_EQ(hf_phaser_arrive_and_deregister(NULL, &(uint32_t){0}), HF_INVALID);
    CHECK_EQ(hf_phaser_arrive_and_wait(NULL, HF_NOW, &(uint32_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_phaser_await_phase(NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_phaser_phase(NULL), 0);
    hf_phaser_shutdown(NULL);
    hf_phaser_stats(NULL, &(struct hf_phaser_stats){0});
    hf_phaser_stats(&phaser, NULL);
    CHECK(hf_phaser_register(&phaser, 1, HF_NOW, NULL) != HF_INVALID);
    CHECK(hf_phaser_arrive(&phaser, NULL) != HF_INVALID);
    CHECK(hf_phaser_arrive_and_deregister(&phaser, NULL) != HF_INVALID);
    CHECK(hf_phaser_arrive_and_wait(&phaser, HF_NOW, NULL) != HF_INVALID);
    hf_phaser_destroy(&phaser);
}

TEST(rwlock)
{
    struct hf_rwlock rwlock;
    CHECK_EQ(hf_rwlock_init(&rwlock, NULL), HF_OK);

    CHECK_EQ(hf_rwlock_init(NULL, hf_clock_system()), HF_INVALID);
    hf_rwlock_destroy(NULL);
    CHECK_EQ(hf_rwlock_lock_read(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_rwlock_lock_write(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_rwlock_unlock_read(NULL), HF_INVALID);
    CHECK_EQ(hf_rwlock_unlock_write(NULL), HF_INVALID);
    CHECK_EQ(hf_rwlock_downgrade(NULL), HF_INVALID);
    hf_rwlock_shutdown(NULL);
    hf_rwlock_stats(NULL, &(struct hf_rwlock_stats){0});
    hf_rwlock_stats(&rwlock, NULL);
    hf_rwlock_destroy(&rwlock);
}

TEST(semaphore)
{
    struct hf_semaphore semaphore;
    struct hf_semaphore_opts opts = {.permits = 1};
    CHECK_EQ(hf_semaphore_init(&semaphore, &opts), HF_OK);

    CHECK_EQ(hf_semaphore_init(NULL, &(struct hf_semaphore_opts){.permits = 1}),
             HF_INVALID);
    CHECK_EQ(hf_semaphore_init(&semaphore, NULL), HF_INVALID);
    hf_semaphore_destroy(NULL);
    CHECK_EQ(hf_semaphore_acquire(NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_semaphore_release(NULL, 1), HF_INVALID);
    CHECK_EQ(hf_semaphore_drain(NULL), 0);
    CHECK_EQ(hf_semaphore_available(NULL), 0);
    hf_semaphore_shutdown(NULL);
    hf_semaphore_stats(NULL, &(struct hf_semaphore_stats){0});
    hf_semaphore_stats(&semaphore, NULL);
    hf_semaphore_destroy(&semaphore);
}

TEST(stamped)
{
    struct hf_stamped stamped;
    struct hf_atomic_ptr word_ptr = {NULL};
    CHECK_EQ(hf_stamped_init(&stamped, NULL), HF_OK);

    CHECK_EQ(hf_stamped_init(NULL, hf_clock_system()), HF_INVALID);
    hf_stamped_destroy(NULL);
    CHECK_EQ(hf_stamped_lock_read(NULL, HF_NOW, &(uint64_t){0}), HF_INVALID);
    CHECK_EQ(hf_stamped_lock_read(&stamped, HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_stamped_lock_write(NULL, HF_NOW, &(uint64_t){0}), HF_INVALID);
    CHECK_EQ(hf_stamped_lock_write(&stamped, HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_stamped_unlock(NULL, 1), HF_INVALID);
    CHECK_EQ(hf_stamped_optimistic(NULL), 0);
    CHECK(!hf_stamped_validate(NULL, 1));
    CHECK_EQ(hf_stamped_to_write(NULL, &(uint64_t){0}), HF_INVALID);
    CHECK_EQ(hf_stamped_to_write(&stamped, NULL), HF_INVALID);
    CHECK_EQ(hf_stamped_to_read(NULL, &(uint64_t){0}), HF_INVALID);
    CHECK_EQ(hf_stamped_to_read(&stamped, NULL), HF_INVALID);
    CHECK_EQ(hf_stamped_load_u64(NULL), 0);
    CHECK_EQ(hf_stamped_load_u32(NULL), 0);
    CHECK(hf_stamped_load_ptr(NULL) == NULL);
    hf_stamped_store_u64(NULL, 1);
    hf_stamped_store_u32(NULL, 1);
    hf_stamped_store_ptr(NULL, &item);
    hf_stamped_store_ptr(&word_ptr, NULL);
    hf_stamped_shutdown(NULL);
    hf_stamped_stats(NULL, &(struct hf_stamped_stats){0});
    hf_stamped_stats(&stamped, NULL);
    hf_stamped_destroy(&stamped);
}
