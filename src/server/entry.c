/* entry.c - what one commit covers: requests in order, with their records. */
#include "server/entry.h"

#include "base/memory.h"

struct entry *entry_add(struct batch *batch, enum hold_kind kind,
                        uint64_t came_ns)
{
    if (batch->count == batch->cap) {
        size_t cap = batch->cap ? batch->cap * 2 : 64;
        void *entries = hf_realloc(batch->entries, cap * sizeof(struct entry));
        if (entries == NULL)
            return NULL;
        batch->entries = entries;
        batch->cap = cap;
    }
    batch->entries[batch->count] =
        (struct entry){.kind = kind, .came_ns = came_ns};
    return &batch->entries[batch->count++];
}

void entry_free(struct entry *entry)
{
    hf_free(entry->holds);
    hf_free(entry->denied);
    entry->holds = NULL;
    entry->denied = NULL;
}

struct hf_bytes entry_record(const struct batch *batch,
                             const struct entry *entry)
{
    return hf_bytes(batch->records.data + entry->at, entry->len);
}

void entry_put(struct batch *batch, struct entry *entry,
               const struct hold_command *command)
{
    entry->at = (uint32_t)batch->records.len;
    entry->len =
        (uint32_t)hold_encode(command, batch->records.data + entry->at);
    batch->records.len += entry->len;
}

enum hf_status entry_reserve(struct batch *batch,
                             const struct hold_command *command)
{
    return hf_buf_reserve(&batch->records, hold_record_bound(command));
}
