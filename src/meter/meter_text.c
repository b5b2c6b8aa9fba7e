/* meter_text.c - the Prometheus text exposition format, version 0.0.4. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/inspect.h"
#include "meter/meter_state.h"

struct text {
    struct hf_buf *buf;
    const char *family; /* the last one begun */
    enum hf_status status;
};

/* The shortest of two forms that says the number exactly; with a point, also
 * where people write a comma. */
static enum hf_status write_number(struct hf_buf *buf, double number)
{
    char digits[40];

    if (isnan(number))
        return hf_buf_format(buf, "NaN");
    if (isinf(number))
        return hf_buf_format(buf, number > 0 ? "+Inf" : "-Inf");
    snprintf(digits, sizeof digits, "%.15g", number);
    if (strtod(digits, NULL) < number || strtod(digits, NULL) > number)
        snprintf(digits, sizeof digits, "%.17g", number);
    for (char *at = digits; *at != '\0'; at++)
        if (*at == ',')
            *at = '.';
    return hf_buf_append(buf, digits, strlen(digits));
}

static enum hf_status begin_family(struct hf_buf *buf,
                                   const struct hf_meter_row *row)
{
    static const char *const kinds[] = {
        [HF_METER_COUNTER] = "counter",
        [HF_METER_GAUGE] = "gauge",
        [HF_METER_HISTOGRAM] = "histogram",
        [HF_METER_SUMMARY] = "summary",
    };
    enum hf_status status = HF_OK;

    if (row->help[0] != '\0') {
        status = hf_buf_format(buf, "# HELP %s ", row->name);
        if (!status)
            status = hf_buf_escape(buf, row->help, "\\");
        if (!status)
            status = hf_buf_append(buf, "\n", 1);
    }
    return status ? status
                  : hf_buf_format(buf, "# TYPE %s %s\n", row->name,
                                  kinds[row->kind]);
}

/* name{labels,extra} value; `extra` may be empty, and is a label's name with
 * the number `mark` as its value otherwise. */
static enum hf_status write_sample(struct hf_buf *buf,
                                   const struct hf_meter_row *row,
                                   const char *suffix, const char *extra,
                                   double mark)
{
    bool braces = row->labels[0] != '\0' || extra[0] != '\0';
    enum hf_status status = hf_buf_format(buf, "%s%s%s%s", row->name, suffix,
                                          braces ? "{" : "", row->labels);

    if (!status && extra[0] != '\0') {
        status =
            hf_buf_format(buf, "%s%s=\"", row->labels[0] ? "," : "", extra);
        if (!status)
            status = write_number(buf, mark);
        if (!status)
            status = hf_buf_append(buf, "\"", 1);
    }
    return status ? status : hf_buf_format(buf, braces ? "} " : " ");
}

static enum hf_status write_count(struct hf_buf *buf, uint64_t count)
{
    return hf_buf_format(buf, "%llu\n", (unsigned long long)count);
}

/* 3 ns in seconds are told as 3e-09: divided by 1e9 it is the nearest number to
 * that, multiplied by 1e-9 it is not. */
static double scaled(double value, double scale)
{
    double parts = scale < 1 ? round(1 / scale) : 1;
    bool whole = scale < 1 && !(1 / parts < scale) && !(1 / parts > scale);

    return whole ? value / parts : value * scale;
}

static enum hf_status write_scaled(struct hf_buf *buf, double value,
                                   double scale)
{
    enum hf_status status = write_number(buf, scaled(value, scale));

    return status ? status : hf_buf_append(buf, "\n", 1);
}

static enum hf_status write_sum_and_count(struct hf_buf *buf,
                                          const struct hf_meter_row *row)
{
    enum hf_status status = write_sample(buf, row, "_sum", "", 0);

    if (!status)
        status = write_scaled(buf, (double)row->sum, row->scale);
    if (!status)
        status = write_sample(buf, row, "_count", "", 0);
    return status ? status : write_count(buf, row->count);
}

static enum hf_status write_histogram(struct hf_buf *buf,
                                      const struct hf_meter_row *row)
{
    enum hf_status status = HF_OK;

    for (size_t i = 0; i <= row->bound_count && !status; i++) {
        bool last = i == row->bound_count;
        double bound =
            last ? INFINITY : scaled((double)row->bounds[i], row->scale);
        status = write_sample(buf, row, "_bucket", "le", bound);
        if (!status)
            status = write_count(
                buf, last ? row->count
                          : hf_spread_at_most(row->spread, row->bounds[i]));
    }
    return status ? status : write_sum_and_count(buf, row);
}

/* A window without values has no percentiles; an empty one has no numbers. */
static enum hf_status write_summary(struct hf_buf *buf,
                                    const struct hf_meter_row *row)
{
    static const double quantiles[] = {0.5, 0.95, 0.99};
    struct hf_spread_stats stats;
    enum hf_status status = HF_OK;

    for (size_t i = 0; i < 3 && row->spread != NULL && !status; i++) {
        hf_spread_stats(row->spread, &stats);
        double value =
            (double)hf_spread_percentile(row->spread, 100 * quantiles[i]);
        status = write_sample(buf, row, "", "quantile", quantiles[i]);
        if (!status)
            status =
                write_scaled(buf, stats.count == 0 ? NAN : value, row->scale);
    }
    return status ? status : write_sum_and_count(buf, row);
}

/* A counter's whole number exactly, however large. */
static enum hf_status write_value(struct hf_buf *buf,
                                  const struct hf_meter_row *row)
{
    double whole = (double)row->count;
    bool same = !(whole < row->value) && !(whole > row->value);

    if (row->kind == HF_METER_COUNTER && row->scale == 1 && same)
        return write_count(buf, row->count);
    return write_scaled(buf, row->value, row->scale);
}

static void write_row(void *context, const struct hf_meter_row *row)
{
    struct text *text = context;
    struct hf_buf *buf = text->buf;

    if (text->status)
        return;
    if (text->family != row->name)
        text->status = begin_family(buf, row);
    text->family = row->name;
    if (text->status)
        return;
    if (row->kind == HF_METER_HISTOGRAM) {
        text->status = write_histogram(buf, row);
    } else if (row->kind == HF_METER_SUMMARY) {
        text->status = write_summary(buf, row);
    } else {
        text->status = write_sample(buf, row, "", "", 0);
        if (!text->status)
            text->status = write_value(buf, row);
    }
}

/* Objects come and go between asking for the length and for the text. */
static enum hf_status write_objects(struct hf_buf *buf)
{
    size_t len = hf_inspect_text(HF_INSPECT_PROMETHEUS, NULL, 0);

    for (;;) {
        if (len == 0 || hf_buf_reserve(buf, len + 1))
            return HF_NOMEM;
        size_t room = buf->cap - buf->len;
        len =
            hf_inspect_text(HF_INSPECT_PROMETHEUS, buf->data + buf->len, room);
        if (len > 0 && len < room) {
            buf->len += len;
            return HF_OK;
        }
    }
}

static enum hf_status write_all(struct hf_meter *meter, unsigned flags,
                                struct hf_buf *out)
{
    struct text text = {.buf = out};
    enum hf_status status = hf_meter_visit(meter, write_row, &text);

    if (!status)
        status = text.status;
    if (!status && (flags & HF_METER_OBJECTS))
        status = write_objects(out);
    return status;
}

enum hf_status hf_meter_write(struct hf_meter *meter, unsigned flags,
                              enum hf_status (*write)(void *context,
                                                      const char *text,
                                                      size_t len),
                              void *context)
{
    struct hf_buf buf = {0};

    if (meter == NULL || write == NULL)
        return HF_INVALID;
    enum hf_status status = write_all(meter, flags, &buf);
    if (!status)
        status = write(context, buf.len == 0 ? "" : buf.data, buf.len);
    hf_buf_destroy(&buf);
    return status;
}

size_t hf_meter_text(struct hf_meter *meter, unsigned flags, char *out,
                     size_t cap)
{
    struct hf_buf buf = {0};

    if (meter == NULL || write_all(meter, flags, &buf) != HF_OK)
        buf.len = 0;
    return hf_buf_hand_out(&buf, out, cap);
}
