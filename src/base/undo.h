/* undo.h - changes to memory that can be taken back.
 *
 * Whoever is about to change some bytes notes them first; hf_undo_back() writes
 * all that was noted back, the last first, so that every byte is again what it
 * was when it began:
 *
 *   begin   note A   change A   note B   change B   note A   change A   back
 *           '-- log: [A before] [B before] [A in between] --> read backwards
 *
 * What may be noted must stay where it is until then: nothing that lies in it
 * is given back to the system.
 *
 * Nothing is noted while it is not on, which is what costs users that never
 * take anything back: one comparison.
 *
 * Threads: one thread at a time. Memory: the log is the struct's own.
 */
#ifndef BASE_UNDO_H
#define BASE_UNDO_H

#include <stdbool.h>
#include <stddef.h>

#include "holdfast/status.h"

/* What a note of `bytes` takes in the log. */
#define HF_UNDO_NOTE_BYTES(bytes) (((bytes) + 7) / 8 * 8 + 2 * sizeof(void *))

struct hf_undo {
    bool on;
    char *log;
    size_t len;
    size_t cap;
};

/* Never on: of those who take nothing back. */
extern struct hf_undo hf_undo_none;

/* Also of a zeroed one. */
void hf_undo_destroy(struct hf_undo *undo);
/* Makes room for notes of that size together. HF_NOMEM. */
enum hf_status hf_undo_reserve(struct hf_undo *undo, size_t bytes);

void hf_undo_begin(struct hf_undo *undo);
/* What was noted stays as it is now. */
void hf_undo_end(struct hf_undo *undo);
/* Everything is as it was at the begin; it is off. */
void hf_undo_back(struct hf_undo *undo);

/* It is on. Beyond what was reserved the log grows; without memory for that the
 * process ends, since nothing that was noted may be lost. */
void hf_undo_note(struct hf_undo *undo, const void *at, size_t bytes);
/* The place, of which `bytes` are about to be changed. */
static inline void *hf_undo_keep(struct hf_undo *undo, void *at, size_t bytes)
{
    if (undo->on)
        hf_undo_note(undo, at, bytes);
    return at;
}

#endif
