/* layout.h - the places that the options of a spread ask for. */
#ifndef METER_LAYOUT_H
#define METER_LAYOUT_H

#include "base/layout.h"
#include "holdfast/spread.h"

/* HF_INVALID: a field is out of its range. NULL: all defaults. */
enum hf_status hf_layout_init(struct hf_layout *layout,
                              const struct hf_spread_opts *opts);

#endif
