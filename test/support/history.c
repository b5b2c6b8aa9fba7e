/* history.c - a history that was kept in memory, as a file. */
#include "support/history.h"

#include <errno.h>
#include <stdio.h>

#include "history/record.h"

static enum hf_status fail(char *error, const char *path, enum hf_status status,
                           int cause)
{
    snprintf(error, HISTORY_ERROR_MAX, "%s: %s", path,
             status == HF_IO ? strerror(cause) : hf_status_text(status));
    return status;
}

static enum hf_status write_event(const struct history *history,
                                  const struct event *event,
                                  struct hf_buf *line, FILE *file)
{
    enum hf_status status;

    line->len = 0;
    if (event->kind == HISTORY_CALL) {
        size_t at = event->data;
        status = history_line(line, event, NULL, 0);
        if (status == HF_OK)
            line->len--; /* the end of the line */
        for (uint32_t i = 0; status == HF_OK && i < event->words; i++) {
            status = hf_buf_append(line, " ", 1);
            if (status == HF_OK)
                status = history_escape(line, history_word(history, &at));
        }
        if (status == HF_OK)
            status = hf_buf_append(line, "\n", 1);
    } else {
        struct hf_bytes reply =
            hf_bytes(history->bytes.data + event->data, event->len);
        status =
            history_line(line, event, &reply, event->kind == HISTORY_ANSWER);
    }
    if (status == HF_OK && fwrite(line->data, 1, line->len, file) != line->len)
        status = HF_IO;
    return status;
}

enum hf_status test_save_history(const struct history *history,
                                 const char *path, char *error)
{
    struct hf_buf line = {0};
    enum hf_status status = HF_OK;
    FILE *file = fopen(path, "we");

    if (file == NULL)
        return fail(error, path, HF_IO, errno);
    if (fputs("holdfast history 1\n", file) < 0)
        status = HF_IO;
    for (size_t i = 0; status == HF_OK && i < history->count; i++)
        status = write_event(history, &history->events[i], &line, file);
    hf_buf_destroy(&line);
    int saved = errno;
    if (fclose(file) != 0 && status == HF_OK) {
        status = HF_IO;
        saved = errno;
    }
    return status == HF_OK ? HF_OK : fail(error, path, status, saved);
}
