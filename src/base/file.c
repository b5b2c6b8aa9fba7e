/* file.c - see file.h. */
#include "base/file.h"

#include <errno.h>
#include <unistd.h>

int hf_file_read(int fd, void *data, size_t len, uint64_t offset, size_t *got)
{
    for (*got = 0; *got < len;) {
        ssize_t n =
            pread(fd, (char *)data + *got, len - *got, (off_t)(offset + *got));
        if (n == 0)
            break;
        if (n > 0)
            *got += (size_t)n;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

int hf_file_write(int fd, const void *data, size_t len, uint64_t offset)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(fd, (const char *)data + done, len - done,
                           (off_t)(offset + done));
        if (n == 0)
            return EIO;
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}
