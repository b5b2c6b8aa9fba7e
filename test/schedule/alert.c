/* alert.c - evaluations that overlap, and rules that come and go meanwhile.
 *
 * However they overlap, a rule is told of in turns: firing, resolved, firing;
 * by one thread at a time; and not after it was removed.
 */
#include "holdfast/alert.h"

#include "base/atomic.h"
#include "support/schedule.h"
#include "support/test.h"

static struct {
    struct hf_meter *meter;
    struct hf_alerts *alerts;
    struct hf_gauge *gauge;
    struct hf_atomic_u32 inside;
    struct hf_atomic_u32 gone; /* remove has answered HF_OK */
    uint64_t id;
    uint64_t fired;
    uint64_t resolved;
} rig;

static int notify(void *context, const struct hf_alert_note *note)
{
    (void)context;
    if (hf_u32_add(&rig.inside, 1, __ATOMIC_ACQ_REL) != 0)
        schedule_wrong("two callbacks at a time");
    if (note->id == rig.id && hf_u32_load(&rig.gone, __ATOMIC_ACQUIRE))
        schedule_wrong("told of after it was removed");
    if (note->id == rig.id) {
        *(note->firing ? &rig.fired : &rig.resolved) += 1;
        if (rig.fired != rig.resolved + note->firing)
            schedule_wrong("not in turns");
    }
    hf_u32_sub(&rig.inside, 1, __ATOMIC_ACQ_REL);
    return 0;
}

static void setup(void *context, uint64_t seed)
{
    struct hf_alert alert = {.name = "rule",
                             .metric = "g",
                             .compare = HF_ALERT_ABOVE,
                             .bound = 0,
                             .notify = notify};

    (void)context;
    (void)seed;
    rig.inside.value = rig.gone.value = 0;
    rig.fired = rig.resolved = 0;
    CHECK_EQ(hf_meter_open(&rig.meter, NULL), HF_OK);
    CHECK_EQ(
        hf_meter_gauge(rig.meter, &(struct hf_metric){.name = "g"}, &rig.gauge),
        HF_OK);
    CHECK_EQ(hf_alerts_open(&rig.alerts, rig.meter, NULL), HF_OK);
    CHECK_EQ(hf_alerts_add(rig.alerts, &alert, &rig.id), HF_OK);
    CHECK_EQ(hf_alerts_add(rig.alerts, &alert, NULL), HF_OK);
}

static void body(void *context, unsigned fiber)
{
    bool removes = context != NULL;

    for (unsigned i = 0; i < 3; i++) {
        if (fiber == 2 && removes && i == 1) {
            if (hf_alerts_remove(rig.alerts, rig.id) == HF_OK)
                hf_u32_store(&rig.gone, 1, __ATOMIC_RELEASE);
        } else if (fiber == 2) {
            hf_gauge_set(rig.gauge, (int64_t)schedule_random(2));
        } else {
            (void)hf_alerts_evaluate(rig.alerts, schedule_now_ns());
        }
    }
}

static bool check(void *context, FILE *explain)
{
    struct hf_alerts_stats stats;

    hf_alerts_stats(rig.alerts, &stats);
    hf_alerts_close(rig.alerts);
    hf_meter_close(rig.meter);
    fprintf(explain, "rules %u, evaluations %llu", stats.rules,
            (unsigned long long)stats.evaluations);
    return stats.rules == (context != NULL ? 1 : 2) && stats.evaluations > 0;
}

static void run(const char *name, void *context)
{
    struct schedule_case c = {.name = name,
                              .fibers = 3,
                              .setup = setup,
                              .body = body,
                              .check = check,
                              .context = context};
    schedule_check(&c);
}

TEST(a_rule_is_told_of_in_turns)
{
    run("two evaluate", NULL);
}

TEST(a_removed_rule_is_not_told_of)
{
    run("two evaluate, one removes", &rig);
}
