/* prometheus.h - a strict reader of the Prometheus text format, 0.0.4.
 *
 * It takes nothing on trust: names, labels, escapes and numbers by the
 * grammar; one HELP and one TYPE for a family, before its samples; families in
 * one piece; no sample twice; buckets that grow up to +Inf, which is _count; a
 * _sum for each.
 *
 *   struct prometheus told;
 *   CHECK(prometheus_read(&told, text, len));
 *   prometheus_value(&told, "orders_total{kind=\"buy\"}")
 */
#ifndef TEST_SUPPORT_PROMETHEUS_H
#define TEST_SUPPORT_PROMETHEUS_H

#include <stdbool.h>
#include <stddef.h>

#define PROMETHEUS_KEY_MAX 2048

struct prometheus_sample {
    char *key;  /* name{labels} as it stands in the text */
    char *name; /* without labels */
    char *bare; /* the family's name and the labels but `le` */
    double value;
    double le;  /* of a bucket */
    int family; /* which */
};

struct prometheus_family {
    char *name;
    char kind[16];
    bool has_help;
    bool has_type;
    bool has_samples;
};

struct prometheus {
    struct prometheus_sample *samples;
    size_t sample_count;
    struct prometheus_family *families;
    size_t family_count;
    char wrong[256]; /* what is wrong, and where; empty: nothing */
};

/* False: `told->wrong` says why. Release in either case. */
bool prometheus_read(struct prometheus *told, const char *text, size_t len);
void prometheus_release(struct prometheus *told);
/* The value of a sample, as `name` or `name{a="b"}`; NAN if it is not there. */
double prometheus_value(const struct prometheus *told, const char *key);
/* "counter", "gauge", ...; "" if there is no such family. */
const char *prometheus_kind(const struct prometheus *told, const char *name);

#endif
