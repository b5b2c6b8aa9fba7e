/* file.h - reading and writing all of it, not some of it.
 *
 * The system may move fewer bytes than it was asked to, or be interrupted.
 * These go on until all is done or an error comes. Results are errno values; 0
 * is success.
 *
 * Threads: any; the file's own position is not used.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Up to `len` bytes at `offset`; `*got` is less only at the file's end. */
int hf_file_read(int fd, void *data, size_t len, uint64_t offset, size_t *got);
/* If it fails, any part may have been written. */
int hf_file_write(int fd, const void *data, size_t len, uint64_t offset);

#endif
