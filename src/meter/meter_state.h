/* meter_state.h - what a registry is made of.
 *
 *   families --> family --> family          each list only grows, at its end:
 *                  |                        who walks it needs no lock
 *                  +--> series --> series
 *   by_name: name of a family or name{labels} of a series --> what it is
 */
#ifndef METER_METER_STATE_H
#define METER_METER_STATE_H

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/index.h"
#include "holdfast/meter.h"
#include "meter/past.h"
#include "sync/listed.h"
#include "sync/mutex.h"

struct hf_family;

struct hf_series {
    struct hf_atomic_ptr next;     /* (a) struct hf_series; set once */
    struct hf_family *family;      /* (i) */
    char *labels;                  /* (i) as in the text */
    double (*read)(void *context); /* (i) of a callback; else NULL */
    void *context;                 /* (i) */
    struct hf_counter counter;
    struct hf_gauge gauge;
    struct hf_histogram *histogram; /* (i) */
    struct hf_window *window;       /* (i) */
};

struct hf_family {
    struct hf_atomic_ptr next;  /* (a) struct hf_family; set once */
    struct hf_atomic_ptr first; /* (a) struct hf_series; set once */
    struct hf_series *last;     /* (m) */
    uint32_t series_count;      /* (m) */
    enum hf_meter_kind kind;    /* (i) as all below */
    char *name;
    char *help;
    double scale;
    uint64_t *bounds; /* of histograms */
    size_t bound_count;
};

struct hf_meter {
    const struct hf_clock *clock;  /* (i) */
    uint32_t series_max;           /* (i) */
    struct hf_mutex mutex;         /* who makes families and series */
    struct hf_index by_name;       /* (m) records: struct hf_meter_entry */
    struct hf_texts texts;         /* (m) */
    size_t index_bytes;            /* (m) of the two above */
    struct hf_family *last;        /* (m) */
    struct hf_atomic_ptr first;    /* (a) struct hf_family; set once */
    uint32_t families;             /* (m) */
    struct hf_atomic_u64 series;   /* (a) written under mutex */
    struct hf_atomic_u64 rejected; /* (a) */
    struct hf_listed listed;
};

struct hf_meter_entry {
    struct hf_named named;
    struct hf_family *family; /* it is this family's name, or one it takes */
    struct hf_series *series; /* it is this series */
};

/* meter_name.c: the rules. */

/* HF_INVALID: the name or a label breaks its rule. Otherwise appends
 * `a="b",c="d"` in order of the names, then a zero. */
enum hf_status hf_meter_check(const struct hf_metric *metric,
                              enum hf_meter_kind kind, struct hf_buf *labels);
/* Copies the bounds, or makes the usual ones. HF_INVALID, HF_NOMEM. */
enum hf_status hf_meter_bounds(const struct hf_metric *metric,
                               uint64_t **bounds, size_t *count);

/* The text in memory of its own; NULL without memory. */
char *hf_meter_copy(const char *text);

/* meter.c */

/* The series of that name and those labels, or NULL. `metric` was checked. */
struct hf_series *hf_meter_find(struct hf_meter *meter, const char *name,
                                const char *labels);
/* Reads a series; `out->spread` is the caller's, and not looked at unless the
 * series has one (hf_meter_layout). */
enum hf_status hf_meter_read(const struct hf_series *series,
                             struct hf_reading *out);
/* NULL: it has no spread. */
const struct hf_layout *hf_meter_layout(const struct hf_series *series);

#endif
