/* folder.h - the data folder: its lock, the names in it, what it holds.
 *
 *   lock                            held while somebody has the folder open
 *   journal-<first batch>.seg       a segment that holds, or may hold, batches
 *   snapshot-<last batch>.snap      a snapshot
 *   spare-0.seg, spare-1.seg        files of full size, for later segments
 *   manifest                        says which of them must be there
 *   *.tmp                           being made; removed by the next open
 *   dropped/                        what a repair took out
 *
 * Numbers in names have 16 hexadecimal digits. Anything else is not ours and
 * stays as it is.
 */
#ifndef JOURNAL_FOLDER_H
#define JOURNAL_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/status.h"
#include "journal/disk.h"

/* Longest name of ours, with its end mark. */
#define FOLDER_NAME_MAX 40

#define FOLDER_SPARES_MAX         2
#define FOLDER_SEGMENT_TEMPORARY  "segment.tmp"
#define FOLDER_SNAPSHOT_TEMPORARY "snapshot.tmp"
#define FOLDER_MANIFEST           "manifest"
#define FOLDER_MANIFEST_TEMPORARY "manifest.tmp"

enum folder_mode {
    FOLDER_READ,  /* must exist; nothing is changed, not even a lock made */
    FOLDER_WRITE, /* must exist */
    FOLDER_MAKE,  /* created if absent */
};

struct folder {
    const char *path; /* the caller's, for texts */
    struct journal_io *io;
    int fd;
    int lock_fd; /* -1: read without one */
};

/* What lies in a folder; numbers in rising order. */
struct folder_list {
    uint64_t *segments; /* first batch of each */
    size_t segment_count;
    uint64_t *snapshots; /* last batch of each */
    size_t snapshot_count;
    uint64_t spare_bytes[FOLDER_SPARES_MAX]; /* size; 0: there is none */
    uint64_t bytes;                          /* of all files of ours */
};

/* HF_EXISTS: somebody else has it open; HF_NOTFOUND; HF_IO. */
enum hf_status folder_open(struct folder *folder, const char *path,
                           enum folder_mode mode, struct journal_io *io,
                           char *error);
void folder_close(struct folder *folder);

enum hf_status folder_list(struct folder *folder, struct folder_list *list,
                           char *error);
void folder_list_destroy(struct folder_list *list);

/* Makes the names in it durable. */
enum hf_status folder_sync(const struct folder *folder, char *error);
/* Size of the file `name`; 0 if it cannot be had. */
uint64_t folder_size(const struct folder *folder, const char *name);

void folder_segment_name(char *name, uint64_t first);
void folder_snapshot_name(char *name, uint64_t last);
void folder_spare_name(char *name, int slot);

/* Writes the text of a failure and returns `status`. */
enum hf_status journal_say(char *error, enum hf_status status,
                           const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* HF_IO: what could not be done to the file `name`, and why. */
enum hf_status folder_failed(const struct folder *folder, const char *what,
                             const char *name, int cause, char *error);
/* HF_CORRUPT. The text is the folder's path, what `format` makes, and how to
 * repair it. */
enum hf_status folder_damaged(const struct folder *folder, char *error,
                              const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
