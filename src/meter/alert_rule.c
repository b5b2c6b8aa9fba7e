/* alert_rule.c - one rule: what it looks at and whether it holds. */
#include <assert.h>
#include <math.h>

#include "base/memory.h"
#include "meter/alert_state.h"

#define WINDOW_DEFAULT_NS UINT64_C(60000000000)

void hf_rule_free(struct hf_rule *rule)
{
    if (rule == NULL)
        return;
    hf_past_destroy(&rule->past);
    hf_spread_close(rule->now);
    hf_free(rule->name);
    hf_free(rule->metric);
    hf_free(rule->labels);
    hf_free(rule);
}

static bool is_valid(const struct hf_alert *alert)
{
    bool past = alert->figure != HF_ALERT_VALUE;
    bool percentile = alert->figure == HF_ALERT_PERCENTILE;

    return alert->name != NULL && alert->notify != NULL &&
           (unsigned)alert->figure <= HF_ALERT_PERCENTILE &&
           (unsigned)alert->compare <= HF_ALERT_AT_MOST &&
           !isnan(alert->bound) &&
           (!percentile || (alert->percent > 0 && alert->percent <= 100)) &&
           (!past || alert->window_ns == 0 ||
            (alert->window_ns >= HF_ALERT_SLICES &&
             alert->window_ns <= UINT64_MAX / 4));
}

enum hf_status hf_rule_new(const struct hf_alert *alert, struct hf_rule **out)
{
    struct hf_buf labels = {0};
    struct hf_metric metric = {.name = alert->metric,
                               .labels = alert->labels,
                               .label_count = alert->label_count};

    if (!is_valid(alert))
        return HF_INVALID;
    enum hf_status status = hf_meter_check(&metric, HF_METER_GAUGE, &labels);
    if (status) {
        hf_buf_destroy(&labels);
        return status;
    }
    struct hf_rule *rule = hf_alloc_zeroed(sizeof *rule);
    if (rule != NULL) {
        rule->alert = *alert;
        rule->value = NAN;
        if (rule->alert.window_ns == 0)
            rule->alert.window_ns = WINDOW_DEFAULT_NS;
        rule->name = hf_meter_copy(alert->name);
        rule->metric = hf_meter_copy(alert->metric);
        rule->labels = hf_meter_copy(labels.data);
    }
    hf_buf_destroy(&labels);
    if (rule == NULL || rule->name == NULL || rule->metric == NULL ||
        rule->labels == NULL) {
        hf_rule_free(rule);
        return HF_NOMEM;
    }
    *out = rule;
    return HF_OK;
}

/* What is needed to look at the past of this series. */
static enum hf_status prepare(struct hf_rule *rule)
{
    const struct hf_layout *layout = hf_meter_layout(rule->series);
    uint64_t slice_ns = rule->alert.window_ns / HF_ALERT_SLICES;
    enum hf_status status = HF_OK;

    if (layout != NULL && rule->now == NULL)
        status = hf_spread_make(&rule->now, layout);
    if (!status && rule->alert.figure != HF_ALERT_VALUE &&
        rule->past.edges == NULL)
        status = hf_past_init(&rule->past, slice_ns, HF_ALERT_SLICES,
                              rule->alert.figure == HF_ALERT_PERCENTILE ? layout
                                                                        : NULL);
    return status;
}

/* Notes the reading at the edges that passed, and tells from where to count. */
static enum hf_status note(struct hf_rule *rule, uint64_t now_ns,
                           const struct hf_reading *reading)
{
    enum hf_status status = HF_OK;

    if (!rule->has_past)
        status = hf_past_begin(&rule->past, now_ns, reading);
    else if (hf_past_is_due(&rule->past, now_ns))
        status = hf_past_note(&rule->past, now_ns, reading);
    if (!status)
        rule->has_past = true;
    return status;
}

static enum hf_status look_back(struct hf_rule *rule, uint64_t now_ns,
                                struct hf_reading *reading, double *value)
{
    uint64_t begin_ns;
    enum hf_status status = note(rule, now_ns, reading);

    if (status)
        return status;
    const struct hf_reading *start =
        hf_past_start(&rule->past, now_ns, &begin_ns);
    if (rule->alert.figure == HF_ALERT_RATE) {
        if (now_ns > begin_ns)
            *value = (reading->value - start->value) * 1e9 /
                     (double)(now_ns - begin_ns);
        return HF_OK;
    }
    status = hf_spread_subtract(reading->spread, start->spread);
    if (!status && reading->spread->count > 0)
        *value =
            (double)hf_spread_percentile(reading->spread, rule->alert.percent);
    return status;
}

enum hf_status hf_rule_look(struct hf_rule *rule, struct hf_meter *meter,
                            uint64_t now_ns, double *value)
{
    *value = NAN;
    if (rule->series == NULL)
        rule->series = hf_meter_find(meter, rule->metric, rule->labels);
    if (rule->series == NULL)
        return HF_OK;
    enum hf_status status = prepare(rule);
    struct hf_reading reading = {.spread = rule->now};
    if (!status)
        status = hf_meter_read(rule->series, &reading);
    if (status)
        return status;
    if (rule->alert.figure == HF_ALERT_VALUE) {
        *value = reading.value;
    } else if (rule->alert.figure == HF_ALERT_RATE || reading.spread != NULL) {
        status = look_back(rule, now_ns, &reading, value);
    }
    /* How often something was recorded has no unit to scale. */
    enum hf_meter_kind kind = rule->series->family->kind;
    if (kind == HF_METER_COUNTER || kind == HF_METER_GAUGE ||
        rule->alert.figure == HF_ALERT_PERCENTILE)
        *value *= rule->series->family->scale;
    return status;
}

bool hf_rule_holds(const struct hf_rule *rule, double value)
{
    double bound = rule->alert.bound;

    if (isnan(value))
        return false;
    switch (rule->alert.compare) {
    case HF_ALERT_ABOVE:
        return value > bound;
    case HF_ALERT_AT_LEAST:
        return value >= bound;
    case HF_ALERT_BELOW:
        return value < bound;
    default:
        assert(rule->alert.compare == HF_ALERT_AT_MOST);
        return value <= bound;
    }
}
