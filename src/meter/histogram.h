/* histogram.h - histograms that belong to another object. */
#ifndef METER_HISTOGRAM_H
#define METER_HISTOGRAM_H

#include "holdfast/histogram.h"
#include "meter/layout.h"

/* As open, but hf_inspect() does not list it. */
enum hf_status hf_histogram_make(struct hf_histogram **histogram,
                                 const struct hf_spread_opts *opts);
const struct hf_layout *
hf_histogram_layout(const struct hf_histogram *histogram);

#endif
