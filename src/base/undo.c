/* undo.c - a log of notes, each the bytes and behind them place and length, so
 * that it can be read backwards. */
#include "base/undo.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct hf_undo hf_undo_none;

struct tail {
    void *at;
    size_t bytes;
};

void hf_undo_destroy(struct hf_undo *undo)
{
    hf_free(undo->log);
    *undo = (struct hf_undo){0};
}

enum hf_status hf_undo_reserve(struct hf_undo *undo, size_t bytes)
{
    if (bytes <= undo->cap)
        return HF_OK;
    char *log = hf_realloc(undo->log, bytes);
    if (log == NULL)
        return HF_NOMEM;
    undo->log = log;
    undo->cap = bytes;
    return HF_OK;
}

void hf_undo_begin(struct hf_undo *undo)
{
    assert(!undo->on);
    undo->on = true;
    undo->len = 0;
}

void hf_undo_end(struct hf_undo *undo)
{
    assert(undo->on);
    undo->on = false;
    undo->len = 0;
}

void hf_undo_note(struct hf_undo *undo, const void *at, size_t bytes)
{
    struct tail tail = {(void *)at, bytes};
    size_t padded = (bytes + 7) / 8 * 8;

    assert(undo->on);
    if (undo->cap - undo->len < padded + sizeof tail &&
        hf_undo_reserve(undo, 2 * (undo->len + padded + sizeof tail)) != HF_OK)
        abort();
    memcpy(undo->log + undo->len, at, bytes);
    memcpy(undo->log + undo->len + padded, &tail, sizeof tail);
    undo->len += padded + sizeof tail;
}

void hf_undo_back(struct hf_undo *undo)
{
    assert(undo->on);
    while (undo->len > 0) {
        struct tail tail;
        memcpy(&tail, undo->log + undo->len - sizeof tail, sizeof tail);
        undo->len -= sizeof tail + (tail.bytes + 7) / 8 * 8;
        memcpy(tail.at, undo->log + undo->len, tail.bytes);
    }
    undo->on = false;
}
