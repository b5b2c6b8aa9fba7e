/* meter_text.h - the text into a buffer that grows, for the server. */
#ifndef METER_METER_TEXT_H
#define METER_METER_TEXT_H

#include "base/bytes.h"
#include "holdfast/meter.h"

/* Appends what hf_meter_text() would write. HF_NOMEM: nothing appended. */
enum hf_status hf_meter_write(struct hf_meter *meter, unsigned flags,
                              struct hf_buf *out);

#endif
