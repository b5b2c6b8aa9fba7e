/* multiqueue.c - classes of work, step by step. */
#include "holdfast/multiqueue.h"

#include "base/atomic.h"
#include "base/thread.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/schedule.h"
#include "support/test.h"

#define ITEMS_MAX 16

static struct {
    struct hf_multiqueue *queue;
    struct hf_atomic_u32 left; /* fibers that still put */
    struct hf_atomic_u32 accepted[ITEMS_MAX];
    struct hf_atomic_u32 taken[ITEMS_MAX];
    struct hf_atomic_u32 alarms;
    struct hf_multiqueue_ticket ticket;
    struct calls *history;
    struct linear *checker;
} test;

static void begin(const struct hf_multiqueue_opts *opts)
{
    struct calls *history = test.history;
    struct linear *checker = test.checker;

    memset(&test, 0, sizeof test);
    test.history = history;
    test.checker = checker;
    if (hf_multiqueue_open(&test.queue, opts) != HF_OK)
        test_fail(__FILE__, __LINE__, "no queue");
}

static void *item_of(uint32_t number)
{
    return (void *)(uintptr_t)(number + 1);
}

static void note_taken(void *item)
{
    hf_u32_add(&test.taken[(uintptr_t)item - 1], 1, __ATOMIC_RELAXED);
}

/* Each item that was accepted was taken once, the others never; the figures
 * agree. */
static bool check_items(FILE *explain)
{
    struct hf_multiqueue_stats stats;
    uint64_t put = 0;
    uint64_t rejected = 0;
    uint64_t accepted = 0;

    hf_multiqueue_stats(test.queue, &stats);
    hf_multiqueue_close(test.queue);
    for (uint32_t i = 0; i < stats.classes; i++) {
        const struct hf_multiqueue_class_stats *one = &stats.by_class[i];
        put += one->put;
        rejected += one->rejected;
        if (one->depth != 0 ||
            one->put + one->promoted != one->raised + one->taken) {
            fprintf(explain, "figures of class %u", i);
            return false;
        }
    }
    for (uint32_t i = 0; i < ITEMS_MAX; i++) {
        accepted += test.accepted[i].value;
        if (test.accepted[i].value != test.taken[i].value) {
            fprintf(explain, "item %u: %u accepted, %u taken", i,
                    test.accepted[i].value, test.taken[i].value);
            return false;
        }
    }
    fprintf(explain, "%llu put, %llu accepted, %llu rejected",
            (unsigned long long)put, (unsigned long long)accepted,
            (unsigned long long)rejected);
    return put == accepted;
}

static void take_until_closed(uint32_t home)
{
    void *item = NULL;
    enum hf_status status;

    while ((status = hf_multiqueue_take_from(test.queue, home, &item,
                                             HF_FOREVER, NULL)) == HF_OK)
        note_taken(item);
    if (status != HF_CLOSED)
        schedule_wrong("take: %s", hf_status_text(status));
}

/* ---- Room for one in each class: nobody is forgotten. ---- */

#define PUTTERS 4
#define PUTS    3

static void room_setup(void *context, uint64_t seed)
{
    struct hf_multiqueue_opts opts = {.classes = 2,
                                      .weights = {2, 1},
                                      .capacity = 1,
                                      .starve_ns = seed % 3 ? 0 : 2000,
                                      .age_ns = seed % 5 ? 0 : 2000};
    (void)context;
    opts.overflow = seed % 2 ? HF_MULTIQUEUE_LOWER : HF_MULTIQUEUE_BLOCK;
    begin(&opts);
    test.left.value = PUTTERS;
}

static void put_some(unsigned fiber)
{
    for (uint32_t i = 0; i < PUTS; i++) {
        uint32_t number = fiber * PUTS + i;
        uint64_t deadline_ns = schedule_random(3)
                                   ? HF_FOREVER
                                   : schedule_now_ns() + schedule_random(3000);
        enum hf_status status =
            hf_multiqueue_put(test.queue, (uint32_t)schedule_random(2),
                              item_of(number), deadline_ns, NULL);
        if (status == HF_OK)
            hf_u32_add(&test.accepted[number], 1, __ATOMIC_RELAXED);
        else if (status != HF_TIMEOUT || deadline_ns == HF_FOREVER)
            schedule_wrong("put: %s", hf_status_text(status));
    }
    /* Release and acquire: the last to go shuts after all have put. */
    if (hf_u32_sub(&test.left, 1, __ATOMIC_ACQ_REL) == 1)
        hf_multiqueue_shutdown(test.queue);
}

static void room_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber < PUTTERS)
        put_some(fiber);
    else
        take_until_closed(fiber == PUTTERS ? HF_MULTIQUEUE_NO_HOME : 1);
}

static bool room_check(void *context, FILE *explain)
{
    (void)context;
    return check_items(explain);
}

TEST(nobody_who_waits_for_room_is_forgotten)
{
    struct schedule_case c = {.name = "multiqueue room",
                              .fibers = PUTTERS + 2,
                              .setup = room_setup,
                              .body = room_body,
                              .check = room_check};
    schedule_check(&c);
}

/* One taker that takes exactly what will be there: were a putter left behind
 * beside room, no later take would wake it. */
static void exact_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber < PUTTERS) {
        enum hf_status status = hf_multiqueue_put(
            test.queue, fiber % 2, item_of(fiber),
            fiber == 0 ? schedule_now_ns() + schedule_random(2000) : HF_FOREVER,
            NULL);
        if (status == HF_OK)
            hf_u32_add(&test.accepted[fiber], 1, __ATOMIC_RELAXED);
        if (hf_u32_sub(&test.left, 1, __ATOMIC_ACQ_REL) == 1)
            hf_multiqueue_shutdown(test.queue);
        return;
    }
    take_until_closed(HF_MULTIQUEUE_NO_HOME);
}

TEST(a_wake_up_that_comes_too_late_is_passed_on)
{
    struct schedule_case c = {.name = "multiqueue late",
                              .fibers = PUTTERS + 1,
                              .setup = room_setup,
                              .body = exact_body,
                              .check = room_check,
                              .schedules = 20000};
    schedule_check(&c);
}

/* Two rooms, two who wait, and no take after that: whoever is called for both
 * must call the other. */
static void last_setup(void *context, uint64_t seed)
{
    struct hf_multiqueue_opts opts = {.capacity = 1};

    (void)context;
    (void)seed;
    begin(&opts);
    for (uint32_t i = 0; i < 2; i++) {
        if (hf_multiqueue_put(test.queue, i, item_of(i), HF_NOW, NULL) != HF_OK)
            test_fail(__FILE__, __LINE__, "no room");
    }
}

static void last_body(void *context, unsigned fiber)
{
    void *item;

    (void)context;
    if (fiber < 2) {
        if (hf_multiqueue_put(test.queue, fiber, item_of(2 + fiber), HF_FOREVER,
                              NULL) != HF_OK)
            schedule_wrong("put");
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (hf_multiqueue_take_from(test.queue, i, &item, HF_NOW, NULL) !=
            HF_OK)
            schedule_wrong("take");
    }
}

static bool last_check(void *context, FILE *explain)
{
    uint64_t size = hf_multiqueue_size(test.queue);

    (void)context;
    hf_multiqueue_close(test.queue);
    fprintf(explain, "%llu inside", (unsigned long long)size);
    return size == 2;
}

TEST(whoever_is_called_calls_the_next)
{
    struct schedule_case c = {.name = "multiqueue last",
                              .fibers = 3,
                              .setup = last_setup,
                              .body = last_body,
                              .check = last_check};
    schedule_check(&c);
}

/* ---- The end. ---- */

static void shut_body(void *context, unsigned fiber)
{
    enum hf_status status;

    (void)context;
    if (fiber < 2) {
        for (uint32_t i = 0; i < PUTS; i++) {
            status = hf_multiqueue_put(
                test.queue, fiber, item_of(fiber * PUTS + i), HF_FOREVER, NULL);
            if (status == HF_OK)
                hf_u32_add(&test.accepted[fiber * PUTS + i], 1,
                           __ATOMIC_RELAXED);
            else if (status != HF_CLOSED)
                schedule_wrong("put: %s", hf_status_text(status));
        }
    } else if (fiber < 4) {
        take_until_closed(HF_MULTIQUEUE_NO_HOME);
    } else {
        for (uint64_t i = schedule_random(10); i > 0; i--)
            hf_thread_pause();
        hf_multiqueue_shutdown(test.queue);
    }
}

TEST(shut_at_any_time_loses_nothing_and_leaves_nobody_behind)
{
    struct schedule_case c = {.name = "multiqueue shut",
                              .fibers = 5,
                              .setup = room_setup,
                              .body = shut_body,
                              .check = room_check};
    schedule_check(&c);
}

/* ---- Promote while it is taken. ---- */

static void promote_setup(void *context, uint64_t seed)
{
    struct hf_multiqueue_opts opts = {.capacity = 1};

    (void)context;
    (void)seed;
    begin(&opts);
    test.left.value = 1;
    if (hf_multiqueue_put(test.queue, 2, item_of(0), HF_NOW, &test.ticket) !=
        HF_OK)
        test_fail(__FILE__, __LINE__, "no room");
    test.accepted[0].value = 1;
}

static void promote_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0) {
        enum hf_status status =
            hf_multiqueue_promote(test.queue, &test.ticket, 0);
        if (status != HF_OK && status != HF_NOTFOUND)
            schedule_wrong("promote: %s", hf_status_text(status));
    } else if (fiber == 1) {
        /* Into the room that it leaves, moved or taken. */
        for (uint32_t i = 1; i < 3; i++) {
            if (hf_multiqueue_put(test.queue, 2, item_of(i), HF_FOREVER,
                                  NULL) != HF_OK)
                schedule_wrong("put");
            hf_u32_add(&test.accepted[i], 1, __ATOMIC_RELAXED);
        }
        hf_multiqueue_shutdown(test.queue);
    } else {
        take_until_closed(HF_MULTIQUEUE_NO_HOME);
    }
}

TEST(an_item_is_promoted_or_taken)
{
    struct schedule_case c = {.name = "multiqueue promote",
                              .fibers = 4,
                              .setup = promote_setup,
                              .body = promote_body,
                              .check = room_check};
    schedule_check(&c);
}

/* ---- The alarm. ---- */

static void on_alarm(void *context, uint32_t class_index, uint64_t waited_ns)
{
    void *item;

    (void)context;
    if (waited_ns < 5000)
        schedule_wrong("an alarm after %llu ns", (unsigned long long)waited_ns);
    hf_u32_add(&test.alarms, 1, __ATOMIC_RELAXED);
    if (hf_multiqueue_take_from(test.queue, class_index, &item, HF_NOW, NULL) ==
        HF_OK)
        note_taken(item);
}

static void alarm_setup(void *context, uint64_t seed)
{
    struct hf_multiqueue_opts opts = {
        .capacity = 1, .starve_ns = 5000, .alarm = on_alarm};

    (void)context;
    (void)seed;
    begin(&opts);
    test.left.value = 3;
}

/* Nobody takes but the alarm: each put waits until it has been given. */
static void alarm_body(void *context, unsigned fiber)
{
    (void)context;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t number = fiber * 2 + i;
        if (hf_multiqueue_put(test.queue, fiber % 2, item_of(number),
                              HF_FOREVER, NULL) != HF_OK)
            schedule_wrong("put");
        hf_u32_add(&test.accepted[number], 1, __ATOMIC_RELAXED);
    }
    if (hf_u32_sub(&test.left, 1, __ATOMIC_ACQ_REL) == 1) {
        hf_multiqueue_shutdown(test.queue);
        take_until_closed(HF_MULTIQUEUE_NO_HOME);
    }
}

static bool alarm_check(void *context, FILE *explain)
{
    struct hf_multiqueue_stats stats;

    (void)context;
    hf_multiqueue_stats(test.queue, &stats);
    uint64_t counted = stats.by_class[0].alarms + stats.by_class[1].alarms;
    bool items = check_items(explain);
    fprintf(explain, "; %u of %llu alarms", test.alarms.value,
            (unsigned long long)counted);
    return items && test.alarms.value == counted;
}

TEST(every_alarm_is_given_and_outside_the_lock)
{
    struct schedule_case c = {.name = "multiqueue alarm",
                              .fibers = 3,
                              .setup = alarm_setup,
                              .body = alarm_body,
                              .check = alarm_check};
    schedule_check(&c);
}

/* ---- Results. ---- */

#define CALLS 4

static void results_setup(void *context, uint64_t seed)
{
    static const struct model_list list = {.room = 2, .bounded = true};
    struct hf_multiqueue_opts opts = {.classes = 1,
                                      .weights = {1},
                                      .capacity = 2,
                                      .overflow = HF_MULTIQUEUE_REJECT};
    (void)context;
    (void)seed;
    begin(&opts);
    if (test.history == NULL) {
        struct linear_model model = model_list(&list);
        test.history = calls_new(3, CALLS);
        test.checker = linear_new(&model, 3 * CALLS);
    }
    calls_clear(test.history);
}

static void results_body(void *context, unsigned fiber)
{
    (void)context;
    for (uint32_t i = 0; i < CALLS; i++) {
        uint64_t dice = schedule_random(5);
        uint32_t number = fiber * CALLS + i;
        void *item = NULL;
        struct call *call = calls_begin(test.history, fiber,
                                        dice < 2   ? MODEL_PUT
                                        : dice < 4 ? MODEL_TAKE_FIRST
                                                   : MODEL_SIZE,
                                        0, dice < 2 ? number + 1 : 0);
        enum hf_status status = HF_OK;
        uint64_t value = MODEL_ANY;
        if (dice < 2) {
            status =
                hf_multiqueue_put(test.queue, 0, item_of(number), HF_NOW, NULL);
        } else if (dice < 4) {
            status = hf_multiqueue_take(test.queue, &item, HF_NOW);
            status = status == HF_TIMEOUT ? HF_EMPTY : status;
            value = (uintptr_t)item;
        } else {
            value = hf_multiqueue_size(test.queue);
        }
        calls_end(test.history, call, status, value);
    }
}

static bool results_check(void *context, FILE *explain)
{
    (void)context;
    hf_multiqueue_close(test.queue);
    return linear_check(test.checker, test.history, explain) == LINEAR_YES;
}

TEST(results_of_a_class_are_linearizable)
{
    struct schedule_case c = {.name = "multiqueue results",
                              .fibers = 3,
                              .setup = results_setup,
                              .body = results_body,
                              .check = results_check};
    schedule_check(&c);
}
