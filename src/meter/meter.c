/* meter.c - families and series: made once, found by name, never taken away. */
#include "meter/meter_state.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "meter/histogram.h"
#include "meter/window.h"

#define SERIES_DEFAULT 1000u
#define OBJECTS_PREFIX "holdfast_object_"
#define SUFFIX_MAX     8

/* Under which names a kind is told besides its own. */
static const char *const suffixes[][3] = {
    [HF_METER_COUNTER] = {NULL},
    [HF_METER_GAUGE] = {NULL},
    [HF_METER_HISTOGRAM] = {"_sum", "_count", "_bucket"},
    [HF_METER_SUMMARY] = {"_sum", "_count", NULL},
};

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    const struct hf_meter *meter =
        (const void *)((const char *)listed -
                       offsetof(struct hf_meter, listed));

    /* Relaxed: figures. */
    row->depth = hf_u64_load(&meter->series, __ATOMIC_RELAXED);
    row->rejected = hf_u64_load(&meter->rejected, __ATOMIC_RELAXED);
}

enum hf_status hf_meter_open(struct hf_meter **meter,
                             const struct hf_meter_opts *opts)
{
    struct hf_meter_opts given = {0};

    if (meter == NULL)
        return HF_INVALID;
    if (opts != NULL)
        given = *opts;
    struct hf_meter *made = hf_alloc_zeroed(sizeof *made);
    if (made == NULL)
        return HF_NOMEM;
    made->clock = given.clock == NULL ? hf_clock_system() : given.clock;
    made->series_max =
        given.series_max == 0 ? SERIES_DEFAULT : given.series_max;
    hf_texts_init(&made->texts, &made->index_bytes);
    /* Names come from the program, and are bounded in number: any seed does. */
    enum hf_status status = hf_index_init(
        &made->by_name, sizeof(struct hf_meter_entry), &made->texts,
        (struct hf_hash_seed){{1, 2}}, &made->index_bytes);
    if (status) {
        hf_texts_destroy(&made->texts);
        hf_free(made);
        return status;
    }
    hf_listed_add(&made->listed, "meter", given.name, fill);
    *meter = made;
    return HF_OK;
}

static void free_series(struct hf_series *series)
{
    hf_adder_destroy(&series->counter.adder);
    hf_histogram_close(series->histogram);
    hf_window_close(series->window);
    hf_free(series->labels);
    hf_free(series);
}

static void free_family(struct hf_family *family)
{
    hf_free(family->name);
    hf_free(family->help);
    hf_free(family->bounds);
    hf_free(family);
}

void hf_meter_close(struct hf_meter *meter)
{
    if (meter == NULL)
        return;
    hf_listed_remove(&meter->listed);
    /* Relaxed: nobody else is there any more. */
    struct hf_family *family = hf_ptr_load(&meter->first, __ATOMIC_RELAXED);
    while (family != NULL) {
        struct hf_family *next = hf_ptr_load(&family->next, __ATOMIC_RELAXED);
        struct hf_series *series =
            hf_ptr_load(&family->first, __ATOMIC_RELAXED);
        while (series != NULL) {
            struct hf_series *after =
                hf_ptr_load(&series->next, __ATOMIC_RELAXED);
            free_series(series);
            series = after;
        }
        free_family(family);
        family = next;
    }
    hf_index_destroy(&meter->by_name);
    hf_texts_destroy(&meter->texts);
    hf_free(meter);
}

static struct hf_meter_entry *find_entry(struct hf_meter *meter,
                                         const char *name)
{
    uint32_t number = hf_index_find(&meter->by_name, hf_bytes_text(name));

    return number == 0 ? NULL : hf_index_at(&meter->by_name, number);
}

static enum hf_status add_entry(struct hf_meter *meter, const char *name,
                                struct hf_family *family,
                                struct hf_series *series)
{
    uint32_t number = hf_index_add(&meter->by_name, hf_bytes_text(name));

    if (number == 0)
        return HF_NOMEM;
    struct hf_meter_entry *entry = hf_index_at(&meter->by_name, number);
    entry->family = family;
    entry->series = series;
    return HF_OK;
}

static void remove_entry(struct hf_meter *meter, const char *name)
{
    uint32_t number = hf_index_find(&meter->by_name, hf_bytes_text(name));

    if (number != 0)
        hf_index_remove(&meter->by_name, number);
}

/* What the caller asked for, checked. */
struct wish {
    const struct hf_metric *metric;
    const struct hf_window_opts *window;
    enum hf_meter_kind kind;
    const char *labels;
    double (*read)(void *context);
    void *context;
};

static bool is_taken(struct hf_meter *meter, const struct wish *wish)
{
    char name[HF_METER_NAME_MAX + SUFFIX_MAX];

    if (!strncmp(wish->metric->name, OBJECTS_PREFIX, strlen(OBJECTS_PREFIX)))
        return true;
    for (size_t i = 0; i < 3 && suffixes[wish->kind][i] != NULL; i++) {
        snprintf(name, sizeof name, "%s%s", wish->metric->name,
                 suffixes[wish->kind][i]);
        if (find_entry(meter, name) != NULL)
            return true;
    }
    return false;
}

static struct hf_family *new_family(const struct wish *wish)
{
    const struct hf_metric *metric = wish->metric;
    struct hf_family *family = hf_alloc_zeroed(sizeof *family);

    if (family == NULL)
        return NULL;
    family->kind = wish->kind;
    family->scale = metric->scale == 0 ? 1 : metric->scale;
    family->name = hf_meter_copy(metric->name);
    family->help = hf_meter_copy(metric->help == NULL ? "" : metric->help);
    if (family->name == NULL || family->help == NULL ||
        (wish->kind == HF_METER_HISTOGRAM &&
         hf_meter_bounds(metric, &family->bounds, &family->bound_count))) {
        free_family(family);
        return NULL;
    }
    return family;
}

static enum hf_status new_series(struct hf_meter *meter,
                                 const struct wish *wish,
                                 struct hf_series **out)
{
    struct hf_series *series = hf_alloc_zeroed(sizeof *series);
    enum hf_status status = HF_OK;

    if (series == NULL)
        return HF_NOMEM;
    series->read = wish->read;
    series->context = wish->context;
    series->labels = hf_meter_copy(wish->labels);
    if (series->labels == NULL)
        status = HF_NOMEM;
    else if (wish->kind == HF_METER_COUNTER && wish->read == NULL)
        status = hf_adder_init(&series->counter.adder);
    else if (wish->kind == HF_METER_HISTOGRAM)
        status = hf_histogram_make(&series->histogram, &wish->metric->spread);
    else if (wish->kind == HF_METER_SUMMARY)
        status = hf_window_make(&series->window, wish->window,
                                hf_clock_now_ns(meter->clock));
    if (status) {
        free_series(series);
        return status;
    }
    *out = series;
    return HF_OK;
}

static void name_family(struct hf_meter *meter, const struct wish *wish,
                        struct hf_family *family, enum hf_status *status)
{
    char name[HF_METER_NAME_MAX + SUFFIX_MAX];

    *status = add_entry(meter, family->name, family, NULL);
    for (size_t i = 0; i < 3 && suffixes[wish->kind][i] != NULL; i++) {
        snprintf(name, sizeof name, "%s%s", family->name,
                 suffixes[wish->kind][i]);
        if (!*status)
            *status = add_entry(meter, name, family, NULL);
    }
}

static void unname_family(struct hf_meter *meter, const struct wish *wish,
                          struct hf_family *family)
{
    char name[HF_METER_NAME_MAX + SUFFIX_MAX];

    remove_entry(meter, family->name);
    for (size_t i = 0; i < 3 && suffixes[wish->kind][i] != NULL; i++) {
        snprintf(name, sizeof name, "%s%s", family->name,
                 suffixes[wish->kind][i]);
        remove_entry(meter, name);
    }
}

/* Appends to the lists. Release: all of it was written before. */
static void publish(struct hf_meter *meter, struct hf_family *family,
                    bool is_new, struct hf_series *series)
{
    series->family = family;
    hf_ptr_store(family->last == NULL ? &family->first : &family->last->next,
                 series, __ATOMIC_RELEASE);
    family->last = series;
    family->series_count++;
    hf_u64_add(&meter->series, 1, __ATOMIC_RELAXED);
    if (!is_new)
        return;
    hf_ptr_store(meter->last == NULL ? &meter->first : &meter->last->next,
                 family, __ATOMIC_RELEASE);
    meter->last = family;
    meter->families++;
}

static enum hf_status make(struct hf_meter *meter, const struct wish *wish,
                           const char *key, struct hf_series **out)
{
    struct hf_meter_entry *entry = find_entry(meter, wish->metric->name);
    struct hf_family *family = entry == NULL ? NULL : entry->family;
    bool is_new = family == NULL;
    struct hf_series *series;

    if (!is_new && (family->kind != wish->kind ||
                    strcmp(family->name, wish->metric->name) != 0))
        return HF_EXISTS;
    if (is_new && is_taken(meter, wish))
        return HF_EXISTS;
    if (!is_new && family->series_count >= meter->series_max) {
        hf_u64_add(&meter->rejected, 1, __ATOMIC_RELAXED);
        return HF_FULL;
    }
    enum hf_status status = new_series(meter, wish, &series);
    if (status)
        return status;
    if (is_new) {
        family = new_family(wish);
        if (family == NULL)
            status = HF_NOMEM;
        else
            name_family(meter, wish, family, &status);
    }
    if (!status)
        status = add_entry(meter, key, family, series);
    if (status) {
        if (is_new && family != NULL) {
            unname_family(meter, wish, family);
            free_family(family);
        }
        free_series(series);
        return status;
    }
    publish(meter, family, is_new, series);
    *out = series;
    return HF_OK;
}

static enum hf_status find_or_make(struct hf_meter *meter,
                                   const struct wish *wish, const char *key,
                                   struct hf_series **out)
{
    struct hf_meter_entry *entry = find_entry(meter, key);

    if (entry == NULL)
        return make(meter, wish, key, out);
    if (entry->series->family->kind != wish->kind ||
        entry->series->read != NULL || wish->read != NULL)
        return HF_EXISTS;
    *out = entry->series;
    return HF_OK;
}

/* What a series is found by, with a zero at its end. */
static enum hf_status write_key(struct hf_buf *key, const char *name,
                                const char *labels)
{
    enum hf_status status = hf_buf_format(key, "%s{%s}", name, labels);

    return status ? status : hf_buf_append(key, "", 1);
}

/* Checks, then finds or makes. */
static enum hf_status obtain(struct hf_meter *meter, struct wish *wish,
                             struct hf_series **out)
{
    struct hf_buf labels = {0};
    struct hf_buf key = {0};
    uint64_t *bounds;
    size_t bound_count;

    if (meter == NULL || wish->metric == NULL)
        return HF_INVALID;
    enum hf_status status = hf_meter_check(wish->metric, wish->kind, &labels);
    if (!status && wish->kind == HF_METER_HISTOGRAM) {
        status = hf_meter_bounds(wish->metric, &bounds, &bound_count);
        if (!status)
            hf_free(bounds);
    }
    if (!status)
        status = write_key(&key, wish->metric->name, labels.data);
    if (!status) {
        wish->labels = labels.data;
        hf_mutex_lock(&meter->mutex);
        status = find_or_make(meter, wish, key.data, out);
        hf_mutex_unlock(&meter->mutex);
    }
    hf_buf_destroy(&key);
    hf_buf_destroy(&labels);
    return status;
}

struct hf_series *hf_meter_find(struct hf_meter *meter, const char *name,
                                const char *labels)
{
    struct hf_buf buf = {0};
    struct hf_series *series = NULL;

    if (write_key(&buf, name, labels) == HF_OK) {
        hf_mutex_lock(&meter->mutex);
        struct hf_meter_entry *entry = find_entry(meter, buf.data);
        series = entry == NULL ? NULL : entry->series;
        hf_mutex_unlock(&meter->mutex);
    }
    hf_buf_destroy(&buf);
    return series;
}

enum hf_status hf_meter_counter(struct hf_meter *meter,
                                const struct hf_metric *metric,
                                struct hf_counter **counter)
{
    struct wish wish = {.metric = metric, .kind = HF_METER_COUNTER};
    struct hf_series *series;
    enum hf_status status =
        counter == NULL ? HF_INVALID : obtain(meter, &wish, &series);

    if (!status)
        *counter = &series->counter;
    return status;
}

enum hf_status hf_meter_gauge(struct hf_meter *meter,
                              const struct hf_metric *metric,
                              struct hf_gauge **gauge)
{
    struct wish wish = {.metric = metric, .kind = HF_METER_GAUGE};
    struct hf_series *series;
    enum hf_status status =
        gauge == NULL ? HF_INVALID : obtain(meter, &wish, &series);

    if (!status)
        *gauge = &series->gauge;
    return status;
}

enum hf_status hf_meter_histogram(struct hf_meter *meter,
                                  const struct hf_metric *metric,
                                  struct hf_histogram **histogram)
{
    struct wish wish = {.metric = metric, .kind = HF_METER_HISTOGRAM};
    struct hf_series *series;
    enum hf_status status =
        histogram == NULL ? HF_INVALID : obtain(meter, &wish, &series);

    if (!status)
        *histogram = series->histogram;
    return status;
}

enum hf_status hf_meter_window(struct hf_meter *meter,
                               const struct hf_metric *metric,
                               const struct hf_window_opts *opts,
                               struct hf_window **window)
{
    struct wish wish = {
        .metric = metric, .kind = HF_METER_SUMMARY, .window = opts};
    struct hf_series *series;
    enum hf_status status =
        window == NULL ? HF_INVALID : obtain(meter, &wish, &series);

    if (!status)
        *window = series->window;
    return status;
}

enum hf_status hf_meter_call(struct hf_meter *meter, enum hf_meter_kind kind,
                             const struct hf_metric *metric,
                             double (*read)(void *context), void *context)
{
    struct wish wish = {
        .metric = metric, .kind = kind, .read = read, .context = context};
    struct hf_series *series;

    if (read == NULL || (kind != HF_METER_COUNTER && kind != HF_METER_GAUGE))
        return HF_INVALID;
    return obtain(meter, &wish, &series);
}

void hf_meter_stats(struct hf_meter *meter, struct hf_meter_stats *out)
{
    if (meter == NULL || out == NULL)
        return;
    hf_mutex_lock(&meter->mutex);
    out->families = meter->families;
    hf_mutex_unlock(&meter->mutex);
    /* Relaxed: figures. */
    out->series = (uint32_t)hf_u64_load(&meter->series, __ATOMIC_RELAXED);
    out->rejected = hf_u64_load(&meter->rejected, __ATOMIC_RELAXED);
}
