/* alert.h - rules over measures: tells when one is broken, and when it is not
 * any more.
 *
 * A rule takes a figure of a series, compares it, and fires when the comparison
 * has held for so long:
 *
 *   holds?   no  no  yes yes yes yes yes no  no
 *   state    ok  ok  pending ... firing  ok
 *                    |--for_ns-->|       |
 *                                on_firing   on_resolved
 *
 * The figure is the value now, its rate over the last seconds, or a percentile
 * of what was recorded in the last seconds. Values are as they are told: after
 * scaling (see holdfast/meter.h), so that a rule reads as the text does.
 *
 *   value       counter, gauge; a histogram's or window's count
 *   rate        of a counter, or of how often a histogram was recorded into:
 *               per second, over window_ns (less up to a tenth) before now, or
 *               since the first evaluation if that is later
 *   percentile  of a histogram or window, over the same time
 *
 * Rules are evaluated when hf_alerts_evaluate() is called, or by a scheduler.
 * A series that is not there, a percentile of nothing and a rate over no time
 * are no figures: the comparison does not hold.
 *
 * Threads: every call but open and close from any thread, callbacks included.
 *          One evaluation at a time; callbacks run outside locks, in the
 *          thread that evaluates, in the order of the rules.
 * Memory:  texts are copied; a rate or percentile keeps 10 readings.
 * Time:    `now_ns` as passed in, or of `clock` by the scheduler; it does not
 *          go back (an earlier one counts as the latest).
 *
 *   exactness  a rule fires at the first evaluation that is for_ns or more
 *              after the one at which the comparison began to hold, if it held
 *              at each between. Each firing is told once, and then, once, that
 *              it is resolved, unless the rule is removed before
 *
 * Example:
 *
 *   static int say(void *context, const struct hf_alert_note *note)
 *   {
 *       printf("%s: %s, %g\n", note->name,
 *              note->firing ? "firing" : "resolved", note->value);
 *       ++*(int *)context;
 *       return 0;
 *   }
 *   int main(void)
 *   {
 *       struct hf_meter *meter;
 *       struct hf_alerts *alerts;
 *       struct hf_gauge *depth;
 *       int told = 0;
 *       assert(hf_meter_open(&meter, NULL) == HF_OK);
 *       assert(hf_meter_gauge(meter, &(struct hf_metric){.name = "depth"},
 *                             &depth) == HF_OK);
 *       assert(hf_alerts_open(&alerts, meter, NULL) == HF_OK);
 *       assert(hf_alerts_add(alerts,
 *                            &(struct hf_alert){.name = "too deep",
 *                                               .metric = "depth",
 *                                               .compare = HF_ALERT_ABOVE,
 *                                               .bound = 100,
 *                                               .for_ns = 5,
 *                                               .notify = say,
 *                                               .context = &told},
 *                            NULL) == HF_OK);
 *       hf_gauge_set(depth, 101);
 *       assert(hf_alerts_evaluate(alerts, 1000) == HF_OK && told == 0);
 *       assert(hf_alerts_evaluate(alerts, 1005) == HF_OK && told == 1);
 *       hf_gauge_set(depth, 100);
 *       assert(hf_alerts_evaluate(alerts, 1006) == HF_OK && told == 2);
 *       hf_alerts_close(alerts);
 *       hf_meter_close(meter);
 *       return 0;
 *   }
 */
#ifndef HOLDFAST_ALERT_H
#define HOLDFAST_ALERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/meter.h"
#include "holdfast/scheduler.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_ALERT_RULES_MAX 10000

struct hf_alerts;

enum hf_alert_figure {
    HF_ALERT_VALUE,
    HF_ALERT_RATE,
    HF_ALERT_PERCENTILE,
};

enum hf_alert_compare {
    HF_ALERT_ABOVE,
    HF_ALERT_AT_LEAST,
    HF_ALERT_BELOW,
    HF_ALERT_AT_MOST,
};

enum hf_alert_state {
    HF_ALERT_OK,
    HF_ALERT_PENDING, /* it holds, not for long enough yet */
    HF_ALERT_FIRING,
};

/* What is told; valid during the call. */
struct hf_alert_note {
    uint64_t id;
    const char *name;
    bool firing;    /* false: resolved */
    double value;   /* the figure; NAN: there is none any more */
    uint64_t at_ns; /* of the evaluation */
};

struct hf_alert {
    const char *name;              /* of the rule; not NULL */
    const char *metric;            /* name of the series' family */
    const struct hf_label *labels; /* of the series */
    size_t label_count;
    enum hf_alert_figure figure;
    double percent;     /* of a percentile: above 0, up to 100 */
    uint64_t window_ns; /* of rates and percentiles: at least 10; 0: a minute */
    enum hf_alert_compare compare;
    double bound;
    uint64_t for_ns; /* 0: fires as soon as it holds */
    /* Not NULL. Anything but 0 is a failure, which is counted. It may call any
     * of the calls below; evaluate answers HF_PENDING, close is not allowed. */
    int (*notify)(void *context, const struct hf_alert_note *note);
    void *context;
};

struct hf_alerts_opts {
    const char *name;             /* for hf_inspect() */
    const struct hf_clock *clock; /* of the scheduler's runs; NULL: system's */
};

struct hf_alerts_stats {
    uint32_t rules;
    uint32_t pending;
    uint32_t firing;
    uint32_t missing; /* had no figure when last evaluated */
    uint64_t evaluations;
    uint64_t fired;
    uint64_t resolved;
    uint64_t failed;  /* calls of notify that did not return 0 */
    uint64_t starved; /* rules not evaluated for want of memory */
};

/* `meter` outlives the rules. HF_INVALID: NULL; HF_NOMEM. */
enum hf_status hf_alerts_open(struct hf_alerts **alerts, struct hf_meter *meter,
                              const struct hf_alerts_opts *opts);
/* Ends what the scheduler does for it and waits for a run under way. Not from
 * notify, and nobody may be inside a call. NULL is allowed. */
void hf_alerts_close(struct hf_alerts *alerts);

/* `id`, which may be NULL, names the rule. HF_INVALID: a field is out of its
 * range or breaks its rule; HF_FULL: HF_ALERT_RULES_MAX; HF_NOMEM. */
enum hf_status hf_alerts_add(struct hf_alerts *alerts,
                             const struct hf_alert *alert, uint64_t *id);
/* HF_OK: it is not told of any more. HF_PENDING: likewise, but an evaluation is
 * under way (perhaps it is the caller) and may still be telling of it.
 * HF_NOTFOUND. */
enum hf_status hf_alerts_remove(struct hf_alerts *alerts, uint64_t id);
/* HF_NOTFOUND. `state` and `value` may be NULL. */
enum hf_status hf_alerts_state(struct hf_alerts *alerts, uint64_t id,
                               enum hf_alert_state *state, double *value);

/* HF_OK: all rules were evaluated and told of. HF_PENDING: another evaluation
 * is under way; nothing done. HF_INVALID: NULL. */
enum hf_status hf_alerts_evaluate(struct hf_alerts *alerts, uint64_t now_ns);
/* Has a scheduler evaluate every period_ns, until close; once for each object.
 * The scheduler outlives it. HF_EXISTS: it does already; else as
 * hf_scheduler_every() answers. */
enum hf_status hf_alerts_schedule(struct hf_alerts *alerts,
                                  struct hf_scheduler *scheduler,
                                  uint64_t period_ns);

void hf_alerts_stats(struct hf_alerts *alerts, struct hf_alerts_stats *out);

#ifdef __cplusplus
}
#endif

#endif
