/* manifest.h - the file that says what must be in the folder.
 *
 *   first open   made, before the first segment is
 *   open         "not clean" from here on; on disk before anything is changed
 *   switch       names the new segment, before a batch goes into it
 *   snapshot     names it, before what it stands for is removed
 *   clean stop   "clean", and the number of the last batch of all
 *
 * So a segment or snapshot that it names and that is not there was taken away,
 * and after a clean stop every single batch is proven. What it does not name
 * may be there all the same: a crash came before the note of it.
 *
 * The file has two slots, written in turn, so that a write that is torn leaves
 * the one before it. A slot that cannot be read is either that or damage: the
 * other slot counts, and the end was not clean.
 *
 * Threads: the setters from any thread, one writes at a time; read, open,
 *          replace and close from one.
 */
#ifndef JOURNAL_MANIFEST_H
#define JOURNAL_MANIFEST_H

#include "journal/folder.h"
#include "journal/format.h"
#include "sync/mutex.h"

struct manifest {
    struct folder *folder;
    int fd; /* -1: not open */
    struct hf_mutex mutex;
    struct manifest_slot slot; /* under mutex: what the file says */
};

/* What the file says; `clean` only if both slots can be read. HF_NOTFOUND:
 * there is none; HF_CORRUPT: damaged, told in `error`; HF_IO. */
enum hf_status manifest_read(struct folder *folder, struct manifest_slot *out,
                             char *error);

/* Makes the file, or puts a new one in the place of what is there; gives
 * `slot` its serial. */
enum hf_status manifest_replace(struct folder *folder,
                                struct manifest_slot *slot, char *error);

/* Opens the file to write; it says `known`. */
enum hf_status manifest_open(struct manifest *manifest, struct folder *folder,
                             const struct manifest_slot *known, char *error);
void manifest_close(struct manifest *manifest);

/* What the file says, to be changed and written by manifest_end(), with the
 * mutex held in between. */
struct manifest_slot manifest_begin(struct manifest *manifest);
/* Returns when it is on disk. HF_IO: the file may say either; that harms
 * nobody, since what it would say is true already. */
enum hf_status manifest_end(struct manifest *manifest,
                            struct manifest_slot next, char *error);

#endif
