/* record.c - from a run's connections to a history file. */
#include "cli/record.h"

#include <assert.h>
#include <stdio.h>

#include "cli/client.h"
#include "resp/resp.h"

static uint64_t now_us(void)
{
    return client_now_ns() / 1000;
}

bool record_open(struct record *record, const char *path)
{
    char error[HISTORY_ERROR_MAX];

    *record = (struct record){.next_id = 1};
    if (path == NULL || history_open(&record->history, path, error) == HF_OK)
        return true;
    fprintf(stderr, "holdfast bench: %s\n", error);
    return false;
}

bool record_close(struct record *record)
{
    char error[HISTORY_ERROR_MAX];

    if (record->history == NULL)
        return true;
    enum hf_status status = history_close(record->history, error);
    record->history = NULL;
    if (status != HF_OK)
        fprintf(stderr, "holdfast bench: %s\n", error);
    return status == HF_OK;
}

uint64_t record_call(struct record *record, uint32_t client,
                     const struct hf_bytes *words, size_t count)
{
    if (record->history == NULL)
        return 0;
    /* what cannot be written is told at the end */
    (void)history_call(record->history, now_us(), client, record->next_id,
                       words, count);
    return record->next_id++;
}

uint64_t record_requests(struct record *record, uint32_t client,
                         struct hf_bytes requests)
{
    static struct resp_request request;
    uint64_t first = record->next_id;

    if (record->history == NULL)
        return 0;
    for (size_t at = 0; at < requests.len; at += request.used) {
        /* framed requests are not changed by decoding */
        enum hf_status status = resp_decode((char *)requests.data + at,
                                            requests.len - at, &request);
        assert(status == HF_OK);
        (void)status;
        (void)record_call(record, client, request.args, request.count);
    }
    return first;
}

void record_answer(struct record *record, uint32_t client, uint64_t id,
                   struct hf_bytes reply)
{
    if (record->history != NULL)
        (void)history_answer(record->history, now_us(), client, id, reply);
}

void record_mark(struct record *record, uint32_t client,
                 enum history_event event)
{
    if (record->history != NULL)
        (void)history_mark(record->history, now_us(), client, 0, event);
}
