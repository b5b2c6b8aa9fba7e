/* disk.h - what a log does to files, as a table of calls.
 *
 * Code that writes a log goes through such a table, so that a test can put a
 * disk there that fails or stalls where it likes.
 *
 * Names are relative to `dir`, an open folder. Results are errno values, 0 is
 * success; a write that could not be finished is an error, whatever part of it
 * reached the file.
 *
 * Threads: any.
 */
#ifndef BASE_DISK_H
#define BASE_DISK_H

#include <stddef.h>
#include <stdint.h>

/* As openat(2) with mode 0640; O_DIRECT is dropped where the file system has
 * none. */
typedef int hf_disk_open_fn(void *context, int dir, const char *name, int flags,
                            int *fd);
/* Up to `len` bytes at `offset`; `*got` is less only at the file's end. */
typedef int hf_disk_read_fn(void *context, int fd, void *data, size_t len,
                            uint64_t offset, size_t *got);
typedef int hf_disk_write_fn(void *context, int fd, const void *data,
                             size_t len, uint64_t offset);
typedef int hf_disk_sync_fn(void *context, int fd);
typedef int hf_disk_rename_fn(void *context, int dir, const char *from,
                              const char *to);
typedef int hf_disk_cut_fn(void *context, int fd, uint64_t len);
typedef int hf_disk_remove_fn(void *context, int dir, const char *name);

struct hf_disk {
    hf_disk_open_fn *open;
    hf_disk_read_fn *read;
    hf_disk_write_fn *write;
    hf_disk_sync_fn *sync;
    hf_disk_sync_fn *sync_folder;
    hf_disk_rename_fn *rename;
    hf_disk_cut_fn *cut;
    hf_disk_remove_fn *remove;
    void *context; /* given to each call; the system's disk uses none */
};

const struct hf_disk *hf_disk_system(void);
/* Its calls that move bytes; they go on until all is done or an error comes. */
hf_disk_read_fn hf_disk_read;
hf_disk_write_fn hf_disk_write;

#endif
