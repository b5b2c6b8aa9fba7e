/* rwlock.c - the read-write lock, step by step. */
#include "holdfast/rwlock.h"

#include "base/atomic.h"
#include "base/thread.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 4

static struct {
    struct hf_rwlock lock;
    struct hf_atomic_u32 readers; /* inside */
    struct hf_atomic_u32 writers; /* inside */
    struct hf_atomic_u32 gone;    /* fibers that are done */
    uint32_t plain;               /* guarded: a race would be reported */
    uint32_t written;             /* how often, by the fibers' own account */
    struct calls *history;
    struct linear *checker;
} test;

static void begin(void)
{
    if (hf_rwlock_init(&test.lock, NULL) != HF_OK)
        test_fail(__FILE__, __LINE__, "no lock");
    test.readers.value = 0;
    test.writers.value = 0;
    test.gone.value = 0;
    test.plain = 0;
    test.written = 0;
}

/* ---- One writer or many readers, and everybody's turn comes. ---- */

static void mixed_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    begin();
}

static void while_reading(void)
{
    uint32_t value = test.plain;

    hf_u32_add(&test.readers, 1, __ATOMIC_RELAXED);
    if (hf_u32_load(&test.writers, __ATOMIC_RELAXED) != 0)
        schedule_wrong("a writer is inside while we read");
    if (test.plain != value)
        schedule_wrong("changed while we read");
    hf_u32_sub(&test.readers, 1, __ATOMIC_RELAXED);
}

static void while_writing(void)
{
    if (hf_u32_add(&test.writers, 1, __ATOMIC_RELAXED) != 0)
        schedule_wrong("two writers");
    if (hf_u32_load(&test.readers, __ATOMIC_RELAXED) != 0)
        schedule_wrong("a reader is inside while we write");
    test.plain++;
    hf_u32_sub(&test.writers, 1, __ATOMIC_RELAXED);
}

static uint64_t some_deadline(void)
{
    static const uint64_t spans[] = {100, 1000, 5000};
    uint64_t draw = schedule_random(7);

    if (draw == 0)
        return HF_NOW;
    return draw < 4 ? schedule_now_ns() + spans[draw - 1] : HF_FOREVER;
}

static void read_once(uint64_t deadline_ns)
{
    enum hf_status status = hf_rwlock_lock_read(&test.lock, deadline_ns);

    if (status == HF_OK) {
        while_reading();
        if (hf_rwlock_unlock_read(&test.lock) != HF_OK)
            schedule_wrong("unlock read");
    } else if (status != HF_TIMEOUT || deadline_ns == HF_FOREVER) {
        schedule_wrong("read: %s", hf_status_text(status));
    }
}

static void write_once(uint64_t deadline_ns, bool downgrade)
{
    enum hf_status status = hf_rwlock_lock_write(&test.lock, deadline_ns);

    if (status != HF_OK) {
        if (status != HF_TIMEOUT || deadline_ns == HF_FOREVER)
            schedule_wrong("write: %s", hf_status_text(status));
        return;
    }
    while_writing();
    test.written++; /* guarded as well */
    uint32_t value = test.plain;
    if (!downgrade) {
        if (hf_rwlock_unlock_write(&test.lock) != HF_OK)
            schedule_wrong("unlock write");
        return;
    }
    if (hf_rwlock_downgrade(&test.lock) != HF_OK)
        schedule_wrong("downgrade");
    while_reading();
    if (test.plain != value)
        schedule_wrong("a writer came between writing and reading");
    if (hf_rwlock_unlock_read(&test.lock) != HF_OK)
        schedule_wrong("unlock after downgrade");
}

static void mixed_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    for (int i = 0; i < 3; i++) {
        uint64_t draw = schedule_random(4);
        if (draw < 2)
            read_once(some_deadline());
        else
            write_once(some_deadline(), draw == 2);
    }
}

static bool mixed_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "state %llx, %u of %u writes",
            (unsigned long long)test.lock.state.value, test.plain,
            test.written);
    hf_rwlock_destroy(&test.lock);
    return test.lock.state.value == 0 && test.plain == test.written;
}

TEST(one_writer_or_many_readers_and_all_get_their_turn)
{
    struct schedule_case c = {.name = "rwlock mixed",
                              .fibers = FIBERS,
                              .setup = mixed_setup,
                              .body = mixed_body,
                              .check = mixed_check,
                              .schedules = 50000};
    schedule_check(&c);
}

/* ---- A writer that gives up. ---- */

/* Fiber 0 reads until all others are done, so fiber 1 never writes; readers who
 * came behind it must get in when it has given up. */
static void giving_up_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0) {
        read_once(HF_FOREVER);
        if (hf_rwlock_lock_read(&test.lock, HF_FOREVER) != HF_OK)
            schedule_wrong("read");
        while (hf_u32_load(&test.gone, __ATOMIC_RELAXED) < FIBERS - 1)
            hf_thread_pause();
        (void)hf_rwlock_unlock_read(&test.lock);
        return;
    }
    if (fiber == 1)
        write_once(SCHEDULE_START_NS + schedule_random(5000), false);
    else
        read_once(HF_FOREVER);
    hf_u32_add(&test.gone, 1, __ATOMIC_RELAXED);
}

TEST(a_writer_that_gives_up_lets_the_readers_in)
{
    struct schedule_case c = {.name = "rwlock giving up",
                              .fibers = FIBERS,
                              .setup = mixed_setup,
                              .body = giving_up_body,
                              .check = mixed_check,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- A waiting writer keeps new readers out. ---- */

static void first_body(void *context, unsigned fiber)
{
    struct hf_rwlock_stats stats;

    (void)context;
    if (fiber == 1) {
        write_once(HF_FOREVER, false);
        return;
    }
    if (hf_rwlock_lock_read(&test.lock, HF_FOREVER) != HF_OK)
        schedule_wrong("read");
    for (int i = 0; i < 3; i++) {
        hf_rwlock_stats(&test.lock, &stats);
        /* We read, so a writer that waits goes on waiting. */
        if (stats.writers_waiting == 1 &&
            hf_rwlock_lock_read(&test.lock, HF_NOW) != HF_TIMEOUT)
            schedule_wrong("a reader passed a waiting writer");
    }
    (void)hf_rwlock_unlock_read(&test.lock);
}

TEST(a_waiting_writer_keeps_new_readers_out)
{
    struct schedule_case c = {.name = "rwlock writer first",
                              .fibers = 2,
                              .setup = mixed_setup,
                              .body = first_body,
                              .check = mixed_check};
    schedule_check(&c);
}

/* ---- Results of tries. ---- */

enum { LOCK_READ, LOCK_WRITE, UNLOCK_READ, UNLOCK_WRITE, DOWNGRADE };

struct model {
    uint64_t readers;
    uint64_t writers;
};

static bool model_can(const struct model *model, uint32_t op)
{
    switch (op) {
    case LOCK_READ:
        return model->writers == 0;
    case LOCK_WRITE:
        return model->writers == 0 && model->readers == 0;
    case UNLOCK_READ:
        return model->readers > 0;
    default:
        return model->writers > 0;
    }
}

static bool model_apply(void *state, const struct call *call, void *context)
{
    struct model *model = state;

    (void)context;
    if (!model_can(model, call->op))
        return call->result ==
               (call->op <= LOCK_WRITE ? HF_TIMEOUT : HF_INVALID);
    model->readers += call->op == LOCK_READ || call->op == DOWNGRADE;
    model->readers -= call->op == UNLOCK_READ;
    model->writers += call->op == LOCK_WRITE;
    model->writers -= call->op == UNLOCK_WRITE || call->op == DOWNGRADE;
    return call->result == HF_OK;
}

static void tries_setup(void *context, uint64_t seed)
{
    static const char *const names[] = {
        "lock read", "lock write", "unlock read", "unlock write", "downgrade"};
    static const struct linear_model model = {.state_bytes =
                                                  sizeof(struct model),
                                              .apply = model_apply,
                                              .op_names = names};
    (void)context;
    (void)seed;
    begin();
    if (test.history == NULL) {
        test.history = calls_new(3, 5);
        test.checker = linear_new(&model, 3 * 5);
    }
    calls_clear(test.history);
}

/* Locks have no owner, so any order of calls is allowed. */
static void tries_body(void *context, unsigned fiber)
{
    (void)context;
    for (int i = 0; i < 5; i++) {
        uint32_t op = (uint32_t)schedule_random(5);
        struct call *call = calls_begin(test.history, fiber, op, 0, 0);
        enum hf_status status;
        if (op == LOCK_READ)
            status = hf_rwlock_lock_read(&test.lock, HF_NOW);
        else if (op == LOCK_WRITE)
            status = hf_rwlock_lock_write(&test.lock, HF_NOW);
        else if (op == UNLOCK_READ)
            status = hf_rwlock_unlock_read(&test.lock);
        else if (op == UNLOCK_WRITE)
            status = hf_rwlock_unlock_write(&test.lock);
        else
            status = hf_rwlock_downgrade(&test.lock);
        calls_end(test.history, call, status, 0);
    }
}

static bool tries_check(void *context, FILE *explain)
{
    (void)context;
    return linear_check(test.checker, test.history, explain) == LINEAR_YES;
}

TEST(results_are_linearizable)
{
    struct schedule_case c = {.name = "rwlock results",
                              .fibers = 3,
                              .setup = tries_setup,
                              .body = tries_body,
                              .check = tries_check,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- Shut. ---- */

static bool is_shut(void)
{
    struct hf_rwlock_stats stats;

    hf_rwlock_stats(&test.lock, &stats);
    return stats.shutdown;
}

/* Whoever has the lock keeps it until it is shut: those who wait must leave. */
static void shut_body(void *context, unsigned fiber)
{
    enum hf_status status;
    bool reads = schedule_random(2) != 0;

    (void)context;
    if (fiber == 0) {
        hf_rwlock_shutdown(&test.lock);
        return;
    }
    status = reads ? hf_rwlock_lock_read(&test.lock, HF_FOREVER)
                   : hf_rwlock_lock_write(&test.lock, HF_FOREVER);
    if (status == HF_OK) {
        while (!is_shut())
            hf_thread_pause();
        status = reads ? hf_rwlock_unlock_read(&test.lock)
                       : hf_rwlock_unlock_write(&test.lock);
        if (status != HF_OK)
            schedule_wrong("unlock");
    } else if (status != HF_CLOSED) {
        schedule_wrong("%s", hf_status_text(status));
    }
}

static bool shut_check(void *context, FILE *explain)
{
    (void)context;
    hf_rwlock_destroy(&test.lock);
    fprintf(explain, "not shut");
    return is_shut();
}

TEST(shut_lets_all_leave)
{
    struct schedule_case c = {.name = "rwlock shut",
                              .fibers = FIBERS,
                              .setup = mixed_setup,
                              .body = shut_body,
                              .check = shut_check,
                              .schedules = 20000};
    schedule_check(&c);
}
