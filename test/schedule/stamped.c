/* stamped.c - the stamped lock, step by step. */
#include "holdfast/stamped.h"

#include "support/calls.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 4

static struct {
    struct hf_stamped lock;
    struct hf_atomic_u64 x;
    struct hf_atomic_u64 y; /* the same as x, when nobody writes */
    uint32_t plain;         /* guarded by holding the lock */
    uint64_t raised;        /* additions that were made */
    struct calls *history;
    struct linear *checker;
} test;

static void begin(void)
{
    if (hf_stamped_init(&test.lock, NULL) != HF_OK)
        test_fail(__FILE__, __LINE__, "no lock");
    test.x.value = 0;
    test.y.value = 0;
    test.plain = 0;
    test.raised = 0;
}

static void unlock(uint64_t stamp)
{
    if (hf_stamped_unlock(&test.lock, stamp) != HF_OK)
        schedule_wrong("unlock");
}

static void store(uint64_t value)
{
    hf_stamped_store_u64(&test.x, value);
    hf_stamped_store_u64(&test.y, value);
}

/* ---- What is validated is whole, and the last that was written. ---- */

static void values_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    begin();
    if (test.history == NULL) {
        struct linear_model model = model_map();
        test.history = calls_new(FIBERS, 4);
        test.checker = linear_new(&model, FIBERS * 4);
    }
    calls_clear(test.history);
}

static void write_value(unsigned fiber, uint64_t value)
{
    struct call *call = calls_begin(test.history, fiber, MODEL_SET, 0, value);
    uint64_t stamp;

    if (hf_stamped_lock_write(&test.lock, HF_FOREVER, &stamp) != HF_OK)
        schedule_wrong("write");
    store(value);
    test.plain++; /* a race would be reported */
    unlock(stamp);
    calls_end(test.history, call, HF_OK, 0);
}

/* Optimistic for some tries, then with the lock. */
static void read_value(unsigned fiber)
{
    struct call *call = calls_begin(test.history, fiber, MODEL_GET, 0, 0);
    uint64_t stamp = 0;
    uint64_t x = 0;
    uint64_t y = 0;

    for (int i = 0; i < 2; i++) {
        stamp = hf_stamped_optimistic(&test.lock);
        x = hf_stamped_load_u64(&test.x);
        y = hf_stamped_load_u64(&test.y);
        if (hf_stamped_validate(&test.lock, stamp))
            break;
        stamp = 0;
    }
    if (stamp == 0) {
        if (hf_stamped_lock_read(&test.lock, HF_FOREVER, &stamp) != HF_OK)
            schedule_wrong("read");
        x = hf_stamped_load_u64(&test.x);
        y = hf_stamped_load_u64(&test.y);
        unlock(stamp);
    }
    if (x != y)
        schedule_wrong("validated %llu and %llu", (unsigned long long)x,
                       (unsigned long long)y);
    calls_end(test.history, call, x == 0 ? HF_NOTFOUND : HF_OK, x);
}

static void values_body(void *context, unsigned fiber)
{
    (void)context;
    for (unsigned i = 0; i < 4; i++) {
        if (fiber == 0 || (fiber == 1 && i == 1))
            write_value(fiber, 1 + fiber * 10 + i);
        else
            read_value(fiber);
    }
}

static bool values_check(void *context, FILE *explain)
{
    (void)context;
    hf_stamped_destroy(&test.lock);
    return linear_check(test.checker, test.history, explain) == LINEAR_YES;
}

TEST(what_is_validated_is_true)
{
    struct schedule_case c = {.name = "stamped values",
                              .fibers = 3,
                              .setup = values_setup,
                              .body = values_body,
                              .check = values_check,
                              .schedules = 40000};
    schedule_check(&c);
}

/* ---- Upgrades: read, then write what follows from it. ---- */

static void raise_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    begin();
}

/* The stamp is for writing, and nothing has changed since `x` was read. */
static void raise_from(uint64_t x, uint64_t stamp)
{
    if (hf_stamped_load_u64(&test.x) != x)
        schedule_wrong("changed between reading and writing");
    store(x + 1);
    test.plain++;
    __atomic_fetch_add(&test.raised, 1, __ATOMIC_RELAXED);
    if (schedule_random(2)) {
        if (hf_stamped_to_read(&test.lock, &stamp) != HF_OK)
            schedule_wrong("to read");
        if (hf_stamped_load_u64(&test.x) != x + 1 || test.plain != x + 1)
            schedule_wrong("a writer came between writing and reading");
    }
    unlock(stamp);
}

static void raise_optimistic(void)
{
    uint64_t stamp = hf_stamped_optimistic(&test.lock);
    uint64_t x = hf_stamped_load_u64(&test.x);
    enum hf_status status;

    if (stamp == 0)
        return;
    if (schedule_random(2)) {
        status = hf_stamped_to_read(&test.lock, &stamp);
        if (status == HF_TIMEOUT || status == HF_CANCELLED)
            return;
        if (status != HF_OK)
            schedule_wrong("to read: %s", hf_status_text(status));
        if (test.plain != x)
            schedule_wrong("a stamp that is not good was taken");
    }
    status = hf_stamped_to_write(&test.lock, &stamp);
    if (status == HF_OK)
        raise_from(x, stamp);
    else if (status != HF_TIMEOUT && status != HF_CANCELLED)
        schedule_wrong("to write: %s", hf_status_text(status));
    else if (hf_stamped_unlock(&test.lock, stamp) == HF_OK &&
             status != HF_TIMEOUT)
        schedule_wrong("held, and cancelled");
}

static void raise_reading(void)
{
    uint64_t stamp;
    enum hf_status status;

    if (hf_stamped_lock_read(&test.lock, HF_FOREVER, &stamp) != HF_OK)
        schedule_wrong("read");
    uint64_t x = hf_stamped_load_u64(&test.x);
    status = hf_stamped_to_write(&test.lock, &stamp);
    if (status == HF_OK) {
        raise_from(x, stamp);
        return;
    }
    if (status != HF_TIMEOUT || !hf_stamped_validate(&test.lock, stamp))
        schedule_wrong("upgrade: %s", hf_status_text(status));
    unlock(stamp);
}

static void raise_body(void *context, unsigned fiber)
{
    uint64_t stamp;

    (void)context;
    for (int i = 0; i < 3; i++) {
        if (fiber == 0) {
            raise_optimistic();
        } else if (fiber == 1) {
            raise_reading();
        } else {
            uint64_t deadline_ns =
                schedule_random(2) ? HF_FOREVER : schedule_now_ns() + 500;
            if (hf_stamped_lock_write(&test.lock, deadline_ns, &stamp) == HF_OK)
                raise_from(hf_stamped_load_u64(&test.x), stamp);
        }
    }
}

static bool raise_check(void *context, FILE *explain)
{
    struct hf_stamped_stats stats;

    (void)context;
    hf_stamped_stats(&test.lock, &stats);
    hf_stamped_destroy(&test.lock);
    fprintf(explain, "x %llu, plain %u, raised %llu, writes %llu",
            (unsigned long long)test.x.value, test.plain,
            (unsigned long long)test.raised, (unsigned long long)stats.writes);
    return test.x.value == test.raised && test.plain == test.raised &&
           test.y.value == test.raised && stats.writes == test.raised;
}

TEST(an_upgrade_keeps_what_was_read)
{
    struct schedule_case c = {.name = "stamped upgrade",
                              .fibers = 3,
                              .setup = raise_setup,
                              .body = raise_body,
                              .check = raise_check,
                              .schedules = 40000};
    schedule_check(&c);
}

/* ---- A store is a release, a load an acquire. ---- */

static struct {
    struct hf_atomic_ptr latest;
    uint64_t objects[3]; /* plain, each written once */
} shelf;

static void shelf_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    begin();
    memset(&shelf, 0, sizeof shelf);
}

/* What a guarded pointer leads to may be read before it is validated, if it
 * does not change any more; a race would be reported. */
static void shelf_body(void *context, unsigned fiber)
{
    uint64_t stamp;

    (void)context;
    for (unsigned i = 0; i < 3; i++) {
        if (fiber == 0) {
            if (hf_stamped_lock_write(&test.lock, HF_FOREVER, &stamp) != HF_OK)
                schedule_wrong("write");
            shelf.objects[i] = i + 1;
            hf_stamped_store_ptr(&shelf.latest, &shelf.objects[i]);
            unlock(stamp);
        } else {
            const uint64_t *object = hf_stamped_load_ptr(&shelf.latest);
            if (object != NULL && *object == 0)
                schedule_wrong("seen before it was written");
        }
    }
}

TEST(a_guarded_pointer_leads_to_what_was_written)
{
    struct schedule_case c = {.name = "stamped pointer",
                              .fibers = 2,
                              .setup = shelf_setup,
                              .body = shelf_body};
    schedule_check(&c);
}

/* ---- Shut while others wait. ---- */

static void shut_body(void *context, unsigned fiber)
{
    uint64_t stamp;
    enum hf_status status;

    (void)context;
    if (fiber == 0) {
        hf_stamped_shutdown(&test.lock);
        return;
    }
    status = fiber == 1 ? hf_stamped_lock_read(&test.lock, HF_FOREVER, &stamp)
                        : hf_stamped_lock_write(&test.lock, HF_FOREVER, &stamp);
    if (status == HF_OK)
        unlock(stamp);
    else if (status != HF_CLOSED)
        schedule_wrong("%s", hf_status_text(status));
}

static bool shut_check(void *context, FILE *explain)
{
    struct hf_stamped_stats stats;

    (void)context;
    hf_stamped_stats(&test.lock, &stats);
    hf_stamped_destroy(&test.lock);
    fprintf(explain, "not shut");
    return stats.lock.shutdown;
}

TEST(shut_lets_all_leave)
{
    struct schedule_case c = {.name = "stamped shut",
                              .fibers = FIBERS,
                              .setup = raise_setup,
                              .body = shut_body,
                              .check = shut_check};
    schedule_check(&c);
}
