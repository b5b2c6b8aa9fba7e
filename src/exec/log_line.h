/* log_line.h - how a line looks: time, level, message.
 *
 * Threads: none of its own; a stamp belongs to one thread at a time.
 */
#ifndef EXEC_LOG_LINE_H
#define EXEC_LOG_LINE_H

#include <stdarg.h>

#include "holdfast/log.h"

#define LOG_SECOND_BYTES 19 /* of 2026-11-15T23:20:01 */

/* The last second that was written out: most lines are of the same. */
struct log_stamp {
    uint64_t second_plus_1; /* 0: none yet */
    char text[LOG_SECOND_BYTES + 1];
};

struct log_line {
    size_t len;
    bool cut;
    char text[HF_LOG_LINE_MAX];
};

void hf_log_line_make(struct log_line *line, enum hf_log_form form,
                      enum hf_log_level level, uint64_t wall_us,
                      struct log_stamp *stamp, const char *format, va_list args)
    __attribute__((format(printf, 6, 0)));

/* log_field.c: the same, of an event. */
void hf_log_line_event(struct log_line *line, enum hf_log_form form,
                       enum hf_log_level level, uint64_t wall_us,
                       struct log_stamp *stamp, const char *message,
                       const struct hf_log_field *fields, size_t count);

/* ---- What both are made with. ---- */

/* All that stands before the message. */
void hf_log_line_head(struct log_line *line, enum hf_log_form form,
                      enum hf_log_level level, uint64_t wall_us,
                      struct log_stamp *stamp);
/* One sign as JSON wants it. Returns how many bytes it was. */
size_t hf_log_sign_json(const char *at, size_t left, char out[8], size_t *len);

#endif
