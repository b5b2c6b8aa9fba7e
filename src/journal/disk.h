/* disk.h - the seam between the journal and the disk.
 *
 * Everything the journal does to files goes through one table, so that a test
 * can put a disk there that fails or stalls where it likes.
 *
 *   files   open, read, write, sync, rename, remove: block until done
 *   batch   start ... wait: the one write that somebody waits for. wait()
 *           gives up after a time; the write goes on, and `wake_fd` becomes
 *           readable when it has ended. It stays so until cleared, which is
 *           done before wait() is called again: an end in between is then
 *           seen by wait(), a later one makes it readable anew
 *
 *             batch write made by     use
 *   uring     the kernel's ring       where io_uring is allowed
 *   thread    a thread of its own     everywhere else
 *   plain     the caller, in start()  offline tools; never gives up
 *
 * Threads: file calls from any thread; start and wait from one.
 * Memory:  `data` given to start() stays untouched until wait() says HF_OK.
 */
#ifndef JOURNAL_DISK_H
#define JOURNAL_DISK_H

#include <stddef.h>
#include <stdint.h>

#include "base/disk.h"
#include "holdfast/status.h"

struct journal_io {
    hf_disk_open_fn *open; /* the calls of base/disk.h; the context is io */
    hf_disk_read_fn *read;
    hf_disk_write_fn *write;
    hf_disk_sync_fn *sync;
    hf_disk_sync_fn *sync_folder;
    hf_disk_rename_fn *rename;
    hf_disk_remove_fn *remove;

    /* One write at a time; every start() is followed by wait() until HF_OK. */
    void (*start)(struct journal_io *io, int fd, const void *data, size_t len,
                  uint64_t offset);
    /* The same as wait() for no time, but cheap: HF_PENDING promises nothing
     * of `wake_fd`. NULL: to ask again and again gains nothing. */
    enum hf_status (*ask)(struct journal_io *io, int *error);
    /* HF_OK: ended, with `*error`. HF_PENDING: `timeout_ns` passed first. */
    enum hf_status (*wait)(struct journal_io *io, uint64_t timeout_ns,
                           int *error);
    int wake_fd; /* an eventfd, not blocking */

    void (*close)(struct journal_io *io);
};

/* Makes one; close it with its close(). HF_NOTFOUND: the system has no (or
 * forbids) io_uring; HF_NOMEM; HF_IO. */
enum hf_status journal_io_uring(struct journal_io **out);
enum hf_status journal_io_thread(struct journal_io **out);
enum hf_status journal_io_plain(struct journal_io **out);

/* For those who make one: `*out` is `bytes` of zeros that begin with `calls`,
 * completed by the file calls and `wake_fd`. HF_NOMEM; HF_IO: no file
 * descriptor is left. */
enum hf_status journal_io_new(size_t bytes, struct journal_io calls, void *out);
void journal_io_free(struct journal_io *io);

/* Makes `wake_fd` readable, or unreadable. */
void journal_io_wake(struct journal_io *io);
void journal_io_wake_clear(struct journal_io *io);

#endif
