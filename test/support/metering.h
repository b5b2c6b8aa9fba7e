/* metering.h - short words for the tests of the registry.
 *
 * Threads: the test's own.
 */
#ifndef TEST_SUPPORT_METERING_H
#define TEST_SUPPORT_METERING_H

#include <stdlib.h>
#include <string.h>

#include "holdfast/meter.h"
#include "support/prometheus.h"
#include "support/test.h"

static inline struct hf_meter *open_meter(void)
{
    struct hf_meter *meter;

    CHECK_EQ(hf_meter_open(&meter, NULL), HF_OK);
    return meter;
}

static inline enum hf_status counter(struct hf_meter *meter, const char *name,
                                     const char *label, const char *value,
                                     struct hf_counter **out)
{
    struct hf_label labels = {label, value};
    struct hf_metric metric = {.name = name,
                               .help = "Help.",
                               .labels = &labels,
                               .label_count = label != NULL};

    return hf_meter_counter(meter, &metric, out);
}

/* The text, which must be well-formed; free it. */
static inline char *text_of(struct hf_meter *meter, unsigned flags)
{
    struct prometheus told;
    size_t len = hf_meter_text(meter, flags, NULL, 0);
    char *text = malloc(len + 1);

    CHECK(text != NULL);
    CHECK_EQ(hf_meter_text(meter, flags, text, len + 1), len);
    CHECK_EQ(strlen(text), len);
    bool good = prometheus_read(&told, text, len);
    if (!good)
        test_fail(__FILE__, __LINE__, "%s", told.wrong);
    prometheus_release(&told);
    return text;
}

#endif
