/* log.c - the server's log: lines go to whoever listens, at once. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/log.h"
#include "sim/server/exec.h"

#define LINE_MAX_BYTES 600

void (*exec_log)(const char *line);

struct hf_log {
    enum hf_log_level level;
    uint64_t lines;
};

enum hf_status hf_log_open(struct hf_log **log, const struct hf_log_opts *opts)
{
    *log = calloc(1, sizeof **log);
    if (*log == NULL)
        return HF_NOMEM;
    (*log)->level = opts->level;
    return HF_OK;
}

void hf_log_close(struct hf_log *log)
{
    free(log);
}

void hf_log_set_level(struct hf_log *log, enum hf_log_level level)
{
    log->level = level;
}

enum hf_status hf_log_flush(struct hf_log *log, uint64_t deadline_ns)
{
    (void)log;
    (void)deadline_ns;
    return HF_OK;
}

void hf_log_stats(struct hf_log *log, struct hf_log_stats *out)
{
    *out = (struct hf_log_stats){.written = log->lines};
}

void hf_log_write(struct hf_log *log, enum hf_log_level level,
                  const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;

    if (level < log->level)
        return;
    log->lines++;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (exec_log != NULL)
        exec_log(line);
}

void hf_log_event(struct hf_log *log, enum hf_log_level level,
                  const char *message, const struct hf_log_field *fields,
                  size_t count)
{
    char line[LINE_MAX_BYTES];
    size_t at;

    if (level < log->level)
        return;
    log->lines++;
    if (exec_log == NULL)
        return;
    at = (size_t)snprintf(line, sizeof line, "%s", message);
    for (size_t i = 0; i < count && at < sizeof line; i++) {
        const struct hf_log_field *f = &fields[i];
        int put = f->text != NULL
                      ? snprintf(line + at, sizeof line - at, " %s=%.*s",
                                 f->name, (int)f->len, f->text)
                      : snprintf(line + at, sizeof line - at, " %s=%llu",
                                 f->name, (unsigned long long)f->number);
        at += (size_t)put;
    }
    exec_log(line);
}
