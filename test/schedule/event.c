/* event.c - no wake-up is lost, whoever runs when. A lost one shows as a
 * deadlock: the scheduler knows that everybody sleeps. */
#include "holdfast/event.h"

#include "base/atomic.h"
#include "support/schedule.h"
#include "support/test.h"

/* Tokens that some fibers put and others take. */
struct scene {
    struct hf_event event;
    struct hf_atomic_u32 tokens;  /* (a) */
    struct hf_atomic_u32 taken;   /* (a) by all takers */
    struct hf_atomic_u32 expired; /* (a) takers whose deadline came first */
    unsigned putters;
    unsigned hasty; /* takers with a deadline; they come first */
    unsigned puts;  /* by each putter */
};

static enum hf_status take(void *context)
{
    struct scene *scene = context;
    uint32_t tokens = hf_u32_load(&scene->tokens, __ATOMIC_RELAXED);

    while (tokens != 0) {
        if (hf_u32_cas(&scene->tokens, &tokens, tokens - 1, __ATOMIC_ACQUIRE))
            return HF_OK;
    }
    return HF_PENDING;
}

static void setup(void *context, uint64_t seed)
{
    struct scene *scene = context;

    (void)seed;
    hf_event_init(&scene->event);
    hf_u32_store(&scene->tokens, 0, __ATOMIC_RELAXED);
    hf_u32_store(&scene->taken, 0, __ATOMIC_RELAXED);
    hf_u32_store(&scene->expired, 0, __ATOMIC_RELAXED);
}

static void body(void *context, unsigned fiber)
{
    struct scene *scene = context;

    if (fiber < scene->putters) {
        for (unsigned i = 0; i < scene->puts; i++) {
            hf_u32_add(&scene->tokens, 1, __ATOMIC_RELEASE);
            hf_event_wake(&scene->event, 1);
        }
        return;
    }
    uint64_t deadline_ns = fiber < scene->putters + scene->hasty
                               ? schedule_now_ns() + schedule_random(300)
                               : HF_FOREVER;
    enum hf_status status =
        hf_event_until(&scene->event, take, scene, NULL, deadline_ns);
    if (status == HF_TIMEOUT && schedule_now_ns() < deadline_ns)
        schedule_wrong("timed out before its deadline");
    hf_u32_add(status == HF_OK ? &scene->taken : &scene->expired, 1,
               __ATOMIC_RELAXED);
}

static bool nothing_is_lost(void *context, FILE *explain)
{
    struct scene *scene = context;
    unsigned put = scene->putters * scene->puts;

    fprintf(explain, "put %u, taken %u, left %u, expired %u", put,
            scene->taken.value, scene->tokens.value, scene->expired.value);
    return scene->taken.value + scene->tokens.value == put &&
           scene->expired.value <= scene->hasty;
}

static void check(struct scene scene, const char *name, unsigned takers)
{
    struct schedule_case c = {.name = name,
                              .fibers = scene.putters + takers,
                              .setup = setup,
                              .body = body,
                              .check = nothing_is_lost,
                              .context = &scene};
    schedule_check(&c);
}

TEST(one_wakes_one)
{
    check((struct scene){.putters = 1, .puts = 1}, "one wakes one", 1);
}

TEST(each_wake_up_reaches_another_waiter)
{
    check((struct scene){.putters = 1, .puts = 3}, "one wakes three", 3);
    check((struct scene){.putters = 2, .puts = 1}, "two wake two", 2);
}

TEST(waiters_who_give_up_take_no_wake_up_along)
{
    check((struct scene){.putters = 1, .puts = 3, .hasty = 1},
          "one of three gives up", 3);
    check((struct scene){.putters = 2, .puts = 2, .hasty = 2},
          "two of four give up", 4);
}

/* Two fibers hand a turn to and fro: each waits for what the other does. */
struct turns {
    struct hf_event event;
    struct hf_atomic_u32 turn;
};

struct turn_of {
    struct turns *turns;
    uint32_t wanted;
};

static enum hf_status is_my_turn(void *context)
{
    struct turn_of *of = context;
    return hf_u32_load(&of->turns->turn, __ATOMIC_ACQUIRE) == of->wanted
               ? HF_OK
               : HF_PENDING;
}

static void turns_setup(void *context, uint64_t seed)
{
    (void)seed;
    *(struct turns *)context = (struct turns){0};
}

static void turns_body(void *context, unsigned fiber)
{
    struct turns *turns = context;

    for (uint32_t i = 0; i < 3; i++) {
        struct turn_of of = {turns, 2 * i + fiber};
        (void)hf_event_until(&turns->event, is_my_turn, &of, NULL, HF_FOREVER);
        /* A release store, which may linger in the store buffer. */
        hf_u32_store(&turns->turn, of.wanted + 1, __ATOMIC_RELEASE);
        hf_event_wake_all(&turns->event);
    }
}

static bool turns_check(void *context, FILE *explain)
{
    struct turns *turns = context;
    fprintf(explain, "turn %u", turns->turn.value);
    return turns->turn.value == 6;
}

TEST(a_plain_release_store_is_seen_by_who_is_woken)
{
    struct turns turns;
    struct schedule_case c = {.name = "turns",
                              .fibers = 2,
                              .setup = turns_setup,
                              .body = turns_body,
                              .check = turns_check,
                              .context = &turns};
    schedule_check(&c);
}
