/* snapshot.h - one snapshot file: written, read, checked.
 *
 * It appears under its name only when it is whole and on disk; until then it
 * is a temporary file.
 *
 * Threads: any, one per file.
 */
#ifndef JOURNAL_SNAPSHOT_H
#define JOURNAL_SNAPSHOT_H

#include "journal/folder.h"
#include "journal/journal.h"

/* Saves the state after batch `last`. `*bytes` is the file's size. On failure
 * nothing is left behind. */
enum hf_status snapshot_save(struct folder *folder,
                             const struct journal_machine *machine, void *state,
                             uint64_t last, uint64_t *bytes, char *error);

/* Loads the snapshot named `last` into `state`, or only checks it if `machine`
 * is NULL. HF_CORRUPT: damaged, told in `error`. */
enum hf_status snapshot_load(struct folder *folder,
                             const struct journal_machine *machine, void *state,
                             uint64_t last, uint64_t *bytes, char *error);

/* True if what is being made with this machine is not wanted any more: it ends
 * with HF_CANCELLED. */
bool snapshot_unwanted(const struct journal_machine *machine);

#endif
