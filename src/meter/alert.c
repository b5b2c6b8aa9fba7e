/* alert.c - rules that are evaluated one after the other and told of.
 *
 * The list of rules only changes under the mutex, and while an evaluation is
 * under way rules that are removed stay in it, marked: so the evaluation walks
 * it and calls back without the mutex. Whoever ends the evaluation frees them.
 */
#include "meter/alert_state.h"

#include <assert.h>
#include <math.h>

#include "base/memory.h"

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    const struct hf_alerts *alerts =
        (const void *)((const char *)listed -
                       offsetof(struct hf_alerts, listed));

    hf_mutex_lock((struct hf_mutex *)&alerts->mutex);
    row->depth = alerts->stats.rules;
    hf_mutex_unlock((struct hf_mutex *)&alerts->mutex);
    row->capacity = HF_ALERT_RULES_MAX;
}

enum hf_status hf_alerts_open(struct hf_alerts **alerts, struct hf_meter *meter,
                              const struct hf_alerts_opts *opts)
{
    struct hf_alerts_opts given = {0};

    if (alerts == NULL || meter == NULL)
        return HF_INVALID;
    if (opts != NULL)
        given = *opts;
    struct hf_alerts *made = hf_alloc_zeroed(sizeof *made);
    if (made == NULL)
        return HF_NOMEM;
    made->meter = meter;
    made->clock = given.clock == NULL ? hf_clock_system() : given.clock;
    hf_listed_add(&made->listed, "alerts", given.name, fill);
    *alerts = made;
    return HF_OK;
}

void hf_alerts_close(struct hf_alerts *alerts)
{
    if (alerts == NULL)
        return;
    if (alerts->scheduler != NULL) {
        (void)hf_scheduler_cancel(alerts->scheduler, alerts->task);
        (void)hf_scheduler_join(alerts->scheduler, alerts->task, HF_FOREVER);
    }
    hf_listed_remove(&alerts->listed);
    assert(!alerts->evaluating);
    for (struct hf_rule *rule = alerts->rules; rule != NULL;) {
        struct hf_rule *next = rule->next;
        hf_rule_free(rule);
        rule = next;
    }
    hf_free(alerts);
}

enum hf_status hf_alerts_add(struct hf_alerts *alerts,
                             const struct hf_alert *alert, uint64_t *id)
{
    struct hf_rule *rule;

    if (alerts == NULL || alert == NULL)
        return HF_INVALID;
    enum hf_status status = hf_rule_new(alert, &rule);
    if (status)
        return status;
    hf_mutex_lock(&alerts->mutex);
    if (alerts->stats.rules >= HF_ALERT_RULES_MAX) {
        status = HF_FULL;
    } else {
        rule->id = ++alerts->ids;
        alerts->stats.rules++;
        *(alerts->last == NULL ? &alerts->rules : &alerts->last->next) = rule;
        alerts->last = rule;
        if (id != NULL)
            *id = rule->id;
    }
    hf_mutex_unlock(&alerts->mutex);
    if (status)
        hf_rule_free(rule);
    return status;
}

static struct hf_rule *find(struct hf_alerts *alerts, uint64_t id)
{
    struct hf_rule *rule = alerts->rules;

    assert(hf_mutex_held(&alerts->mutex));
    while (rule != NULL && (rule->id != id || rule->removed))
        rule = rule->next;
    return rule;
}

/* Frees what was removed. */
static void clean(struct hf_alerts *alerts)
{
    struct hf_rule **at = &alerts->rules;

    assert(hf_mutex_held(&alerts->mutex) && !alerts->evaluating);
    alerts->last = NULL;
    while (*at != NULL) {
        struct hf_rule *rule = *at;
        if (rule->removed) {
            *at = rule->next;
            hf_rule_free(rule);
            continue;
        }
        alerts->last = rule;
        at = &rule->next;
    }
}

enum hf_status hf_alerts_remove(struct hf_alerts *alerts, uint64_t id)
{
    enum hf_status status = HF_OK;

    if (alerts == NULL)
        return HF_INVALID;
    hf_mutex_lock(&alerts->mutex);
    struct hf_rule *rule = find(alerts, id);
    if (rule == NULL) {
        status = HF_NOTFOUND;
    } else {
        rule->removed = true;
        alerts->stats.rules--;
        if (alerts->evaluating)
            status = HF_PENDING;
        else
            clean(alerts);
    }
    hf_mutex_unlock(&alerts->mutex);
    return status;
}

enum hf_status hf_alerts_state(struct hf_alerts *alerts, uint64_t id,
                               enum hf_alert_state *state, double *value)
{
    if (alerts == NULL)
        return HF_INVALID;
    hf_mutex_lock(&alerts->mutex);
    const struct hf_rule *rule = find(alerts, id);
    if (rule != NULL && state != NULL)
        *state = rule->state;
    if (rule != NULL && value != NULL)
        *value = rule->value;
    hf_mutex_unlock(&alerts->mutex);
    return rule == NULL ? HF_NOTFOUND : HF_OK;
}

/* What becomes of a rule whose figure is `value`; true: it is to be told. */
static bool change(struct hf_alerts *alerts, struct hf_rule *rule, double value,
                   uint64_t now_ns)
{
    enum hf_alert_state before = rule->state;

    assert(hf_mutex_held(&alerts->mutex));
    rule->value = value;
    if (!hf_rule_holds(rule, value)) {
        rule->state = HF_ALERT_OK;
    } else if (before != HF_ALERT_FIRING) {
        if (before == HF_ALERT_OK)
            rule->since_ns = now_ns;
        rule->state = now_ns - rule->since_ns >= rule->alert.for_ns
                          ? HF_ALERT_FIRING
                          : HF_ALERT_PENDING;
    }
    alerts->stats.fired +=
        rule->state == HF_ALERT_FIRING && before != HF_ALERT_FIRING;
    alerts->stats.resolved +=
        rule->state != HF_ALERT_FIRING && before == HF_ALERT_FIRING;
    return (rule->state == HF_ALERT_FIRING) != (before == HF_ALERT_FIRING);
}

/* Evaluates one rule, without the mutex but where it changes. */
static void evaluate(struct hf_alerts *alerts, struct hf_rule *rule,
                     uint64_t now_ns)
{
    double value;
    bool tell = false;
    enum hf_status status = hf_rule_look(rule, alerts->meter, now_ns, &value);

    hf_mutex_lock(&alerts->mutex);
    if (status)
        alerts->stats.starved++; /* it stays as it was */
    else if (!rule->removed)
        tell = change(alerts, rule, value, now_ns);
    struct hf_alert_note note = {.id = rule->id,
                                 .name = rule->name,
                                 .firing = rule->state == HF_ALERT_FIRING,
                                 .value = value,
                                 .at_ns = now_ns};
    hf_mutex_unlock(&alerts->mutex);
    if (!tell || rule->alert.notify(rule->alert.context, &note) == 0)
        return;
    hf_mutex_lock(&alerts->mutex);
    alerts->stats.failed++;
    hf_mutex_unlock(&alerts->mutex);
}

enum hf_status hf_alerts_evaluate(struct hf_alerts *alerts, uint64_t now_ns)
{
    if (alerts == NULL)
        return HF_INVALID;
    hf_mutex_lock(&alerts->mutex);
    if (alerts->evaluating) {
        hf_mutex_unlock(&alerts->mutex);
        return HF_PENDING;
    }
    alerts->evaluating = true;
    if (now_ns < alerts->now_ns)
        now_ns = alerts->now_ns;
    alerts->now_ns = now_ns;
    struct hf_rule *rule = alerts->rules;
    hf_mutex_unlock(&alerts->mutex);
    while (rule != NULL) {
        evaluate(alerts, rule, now_ns);
        hf_mutex_lock(&alerts->mutex);
        rule = rule->next;
        hf_mutex_unlock(&alerts->mutex);
    }
    hf_mutex_lock(&alerts->mutex);
    alerts->evaluating = false;
    alerts->stats.evaluations++;
    clean(alerts);
    hf_mutex_unlock(&alerts->mutex);
    return HF_OK;
}

static int run(void *context)
{
    struct hf_alerts *alerts = context;

    (void)hf_alerts_evaluate(alerts, hf_clock_now_ns(alerts->clock));
    return 0;
}

enum hf_status hf_alerts_schedule(struct hf_alerts *alerts,
                                  struct hf_scheduler *scheduler,
                                  uint64_t period_ns)
{
    enum hf_status status = HF_EXISTS;

    if (alerts == NULL || scheduler == NULL)
        return HF_INVALID;
    hf_mutex_lock(&alerts->mutex);
    if (alerts->scheduler == NULL)
        status = hf_scheduler_every(scheduler,
                                    &(struct hf_every){.period_ns = period_ns},
                                    run, alerts, &alerts->task);
    if (!status)
        alerts->scheduler = scheduler;
    hf_mutex_unlock(&alerts->mutex);
    return status;
}

void hf_alerts_stats(struct hf_alerts *alerts, struct hf_alerts_stats *out)
{
    if (alerts == NULL || out == NULL)
        return;
    hf_mutex_lock(&alerts->mutex);
    *out = alerts->stats;
    out->pending = out->firing = out->missing = 0;
    for (const struct hf_rule *rule = alerts->rules; rule; rule = rule->next) {
        if (rule->removed)
            continue;
        out->pending += rule->state == HF_ALERT_PENDING;
        out->firing += rule->state == HF_ALERT_FIRING;
        out->missing += isnan(rule->value) != 0;
    }
    hf_mutex_unlock(&alerts->mutex);
}
