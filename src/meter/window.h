/* window.h - windows that belong to a registry. */
#ifndef METER_WINDOW_H
#define METER_WINDOW_H

#include "holdfast/window.h"
#include "meter/past.h"

/* As open, but hf_inspect() does not list it. */
enum hf_status hf_window_make(struct hf_window **window,
                              const struct hf_window_opts *opts,
                              uint64_t now_ns);
const struct hf_layout *hf_window_layout(const struct hf_window *window);
/* All since open; `out->spread` is the caller's, NULL: counts only. */
enum hf_status hf_window_total(struct hf_window *window,
                               struct hf_reading *out);

#endif
