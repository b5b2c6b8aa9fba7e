/* inspect.c - the list of open objects and its two forms of text. */
#include "holdfast/inspect.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "sync/listed.h"
#include "sync/mutex.h"

static struct hf_mutex mutex;   /* guards the list */
static struct hf_listed *first; /* (m) the oldest */
static struct hf_listed *last;  /* (m) the newest */
static size_t listed_count;     /* (m) */

void hf_listed_add(struct hf_listed *listed, const char *kind, const char *name,
                   void (*fill)(const struct hf_listed *listed,
                                struct hf_inspect_row *row))
{
    listed->kind = kind;
    listed->fill = fill;
    snprintf(listed->name, sizeof listed->name, "%s", name ? name : "");
    hf_mutex_lock(&mutex);
    listed->next = NULL;
    listed->prev = last;
    *(last == NULL ? &first : &last->next) = listed;
    last = listed;
    listed_count++;
    hf_mutex_unlock(&mutex);
}

void hf_listed_remove(struct hf_listed *listed)
{
    hf_mutex_lock(&mutex);
    *(listed->prev == NULL ? &first : &listed->prev->next) = listed->next;
    *(listed->next == NULL ? &last : &listed->next->prev) = listed->prev;
    listed_count--;
    hf_mutex_unlock(&mutex);
}

/* One row each, in memory of its own; NULL without memory. */
static struct hf_inspect_row *collect(size_t *count)
{
    size_t n = 0;

    hf_mutex_lock(&mutex);
    struct hf_inspect_row *rows = hf_alloc((listed_count + 1) * sizeof *rows);
    for (struct hf_listed *at = first; rows != NULL && at; at = at->next) {
        struct hf_inspect_row *row = &rows[n++];
        *row = (struct hf_inspect_row){.capacity = HF_INSPECT_NONE,
                                       .oldest_ns = HF_INSPECT_NONE,
                                       .rejected = HF_INSPECT_NONE,
                                       .wait_p99_ns = HF_INSPECT_NONE};
        snprintf(row->kind, sizeof row->kind, "%s", at->kind);
        memcpy(row->name, at->name, sizeof row->name);
        at->fill(at, row);
    }
    hf_mutex_unlock(&mutex);
    *count = n;
    return rows;
}

enum hf_status hf_inspect(void (*visit)(void *context,
                                        const struct hf_inspect_row *row),
                          void *context)
{
    size_t count;

    if (visit == NULL)
        return HF_INVALID;
    struct hf_inspect_row *rows = collect(&count);
    if (rows == NULL)
        return HF_NOMEM;
    for (size_t i = 0; i < count; i++)
        visit(context, &rows[i]);
    hf_free(rows);
    return HF_OK;
}

/* The figures of a row, in the order of the table. */
struct figure {
    const char *title;  /* in the table */
    const char *metric; /* for Prometheus, which wants base units */
    const char *help;
    size_t offset;
    uint64_t unit; /* of the table, in units of the row */
    double base;   /* of Prometheus, in units of the row */
};

#define OF(field) offsetof(struct hf_inspect_row, field)
static const struct figure figures[] = {
    {"depth", "holdfast_object_depth", "Items inside.", OF(depth), 1, 1},
    {"capacity", "holdfast_object_capacity", "Items at most.", OF(capacity), 1,
     1},
    {"oldest_ms", "holdfast_object_oldest_seconds", "Age of the oldest item.",
     OF(oldest_ns), 1000000, 1e9},
    {"rejected", "holdfast_object_rejected_total",
     "Refused because full or closed.", OF(rejected), 1, 1},
    {"wait_p99_us", "holdfast_object_wait_p99_seconds",
     "99 of 100 waits were shorter.", OF(wait_p99_ns), 1000, 1e9},
};
#undef OF
#define FIGURES (sizeof figures / sizeof figures[0])

static uint64_t figure_of(const struct hf_inspect_row *row,
                          const struct figure *figure)
{
    uint64_t value;
    memcpy(&value, (const char *)row + figure->offset, sizeof value);
    return value;
}

static enum hf_status
write_table(struct hf_buf *buf, const struct hf_inspect_row *rows, size_t count)
{
    enum hf_status status = hf_buf_format(buf, "%-12s %-24s", "kind", "name");
    for (size_t f = 0; f < FIGURES && !status; f++)
        status = hf_buf_format(buf, " %12s", figures[f].title);
    for (size_t i = 0; i < count && !status; i++) {
        status = hf_buf_format(buf, "\n%-12s %-24s", rows[i].kind,
                               rows[i].name[0] ? rows[i].name : "-");
        for (size_t f = 0; f < FIGURES && !status; f++) {
            uint64_t value = figure_of(&rows[i], &figures[f]);
            if (value == HF_INSPECT_NONE)
                status = hf_buf_format(buf, " %12s", "-");
            else
                status = hf_buf_format(
                    buf, " %12llu",
                    (unsigned long long)(value / figures[f].unit));
        }
    }
    return status ? status : hf_buf_format(buf, "\n");
}

/* Two objects may have one kind and name: `index` tells them apart. */
static enum hf_status write_sample(struct hf_buf *buf,
                                   const struct figure *figure,
                                   const struct hf_inspect_row *row,
                                   size_t index)
{
    enum hf_status status =
        hf_buf_format(buf, "%s{kind=\"%s\",name=\"", figure->metric, row->kind);

    if (!status)
        status = hf_buf_escape(buf, row->name, "\"\\");
    if (!status)
        status = hf_buf_format(buf, "\",index=\"%zu\"} %.9g\n", index,
                               (double)figure_of(row, figure) / figure->base);
    return status;
}

static enum hf_status write_prometheus(struct hf_buf *buf,
                                       const struct hf_inspect_row *rows,
                                       size_t count)
{
    enum hf_status status = HF_OK;

    for (size_t f = 0; f < FIGURES && !status; f++) {
        const struct figure *figure = &figures[f];
        status = hf_buf_format(buf, "# HELP %s %s\n# TYPE %s %s\n",
                               figure->metric, figure->help, figure->metric,
                               strstr(figure->metric, "_total") ? "counter"
                                                                : "gauge");
        for (size_t i = 0; i < count && !status; i++) {
            if (figure_of(&rows[i], figure) != HF_INSPECT_NONE)
                status = write_sample(buf, figure, &rows[i], i);
        }
    }
    return status;
}

size_t hf_inspect_text(enum hf_inspect_form form, char *out, size_t cap)
{
    struct hf_buf buf = {0};
    size_t count;

    struct hf_inspect_row *rows = collect(&count);
    if (rows != NULL) {
        enum hf_status status = form == HF_INSPECT_PROMETHEUS
                                    ? write_prometheus(&buf, rows, count)
                                    : write_table(&buf, rows, count);
        if (status)
            buf.len = 0;
    }
    hf_free(rows);
    return hf_buf_hand_out(&buf, out, cap);
}
