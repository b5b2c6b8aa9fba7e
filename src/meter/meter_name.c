/* meter_name.c - Prometheus' rules of names and labels. */
#include <stdlib.h>

#include "base/memory.h"
#include "meter/meter_state.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(const char *name, bool colons)
{
    size_t len = 0;

    if (name == NULL)
        return false;
    for (; name[len] != '\0'; len++) {
        char c = name[len];
        bool digit = c >= '0' && c <= '9';
        if (!is_letter(c) && !(digit && len > 0) && !(c == ':' && colons))
            return false;
        if (len == HF_METER_NAME_MAX)
            return false;
    }
    return len > 0;
}

static bool is_value(const char *value)
{
    size_t len = value == NULL ? 0 : strnlen(value, HF_METER_VALUE_MAX + 1);
    size_t more = 1;

    for (size_t at = 0; at < len && more > 0; at += more)
        more = hf_utf8_len(hf_bytes(value + at, len - at));
    return value != NULL && len <= HF_METER_VALUE_MAX && more > 0;
}

static bool is_label(const struct hf_label *label, enum hf_meter_kind kind)
{
    if (!is_name(label->name, false) || !is_value(label->value))
        return false;
    if (strncmp(label->name, "__", 2) == 0)
        return false;
    if (kind == HF_METER_HISTOGRAM && strcmp(label->name, "le") == 0)
        return false;
    return kind != HF_METER_SUMMARY || strcmp(label->name, "quantile") != 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct hf_label *)a)->name,
                  ((const struct hf_label *)b)->name);
}

static enum hf_status write_labels(struct hf_buf *buf,
                                   const struct hf_label *labels, size_t count)
{
    enum hf_status status = HF_OK;
    const char *comma = "";

    for (size_t i = 0; i < count && !status; i++) {
        if (labels[i].value[0] == '\0')
            continue; /* as if it were not there */
        status = hf_buf_format(buf, "%s%s=\"", comma, labels[i].name);
        if (!status)
            status = hf_buf_escape(buf, labels[i].value, "\"\\");
        if (!status)
            status = hf_buf_append(buf, "\"", 1);
        comma = ",";
    }
    return status ? status : hf_buf_append(buf, "", 1);
}

enum hf_status hf_meter_check(const struct hf_metric *metric,
                              enum hf_meter_kind kind, struct hf_buf *labels)
{
    struct hf_label sorted[HF_METER_LABELS_MAX];
    size_t count = metric->label_count;

    if (!is_name(metric->name, true) || count > HF_METER_LABELS_MAX ||
        (count > 0 && metric->labels == NULL) || !(metric->scale >= 0) ||
        metric->scale > 1e300)
        return HF_INVALID;
    for (size_t i = 0; i < count; i++) {
        if (!is_label(&metric->labels[i], kind))
            return HF_INVALID;
        sorted[i] = metric->labels[i];
    }
    qsort(sorted, count, sizeof sorted[0], by_name);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1].name, sorted[i].name) == 0)
            return HF_INVALID;
    return write_labels(labels, sorted, count);
}

/* 1, 2.5 and 5 in each power of ten: whole numbers, so 2.5 is 2 at first. */
static size_t usual_bounds(const struct hf_layout *layout, uint64_t *bounds)
{
    static const uint64_t halves[] = {2, 5, 10};
    size_t count = 0;

    for (uint64_t ten = 1; ten <= UINT64_MAX / 10 && count < 60; ten *= 10)
        for (size_t i = 0; i < 3; i++) {
            uint64_t bound = ten / 2 * halves[i];
            if (ten == 1)
                bound = halves[i] / 2;
            if (bound >= layout->lowest && bound <= layout->highest)
                bounds[count++] = bound;
        }
    return count;
}

enum hf_status hf_meter_bounds(const struct hf_metric *metric,
                               uint64_t **bounds, size_t *count)
{
    struct hf_layout layout;
    uint64_t usual[HF_METER_BOUNDS_MAX];
    const uint64_t *from = metric->bounds;
    size_t n = metric->bound_count;

    if (hf_layout_init(&layout, &metric->spread) || n > HF_METER_BOUNDS_MAX ||
        (n > 0 && from == NULL))
        return HF_INVALID;
    for (size_t i = 1; i < n; i++)
        if (from[i] <= from[i - 1])
            return HF_INVALID;
    if (from == NULL) {
        n = usual_bounds(&layout, usual);
        from = usual;
    }
    uint64_t *copy = hf_alloc((n + 1) * sizeof *copy);
    if (copy == NULL)
        return HF_NOMEM;
    if (n > 0)
        memcpy(copy, from, n * sizeof *copy);
    *bounds = copy;
    *count = n;
    return HF_OK;
}

char *hf_meter_copy(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = hf_alloc(bytes);

    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}
