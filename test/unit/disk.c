/* Tests of reads and writes that do not stop half-way. */
#include "base/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "support/test.h"

TEST(all_is_written_and_read_at_its_offset)
{
    char path[512], data[8] = "";
    size_t got = 9;

    snprintf(path, sizeof path, "%s/file", test_folder());
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(hf_disk_write(NULL, fd, "holdfast", 8, 3), 0);
    CHECK_EQ(hf_disk_read(NULL, fd, data, 4, 3, &got), 0);
    CHECK_EQ(got, 4);
    CHECK_TEXT(data, 4, "hold");
    CHECK_EQ(hf_disk_read(NULL, fd, data, 8, 7, &got),
             0); /* the end comes first */
    CHECK_EQ(got, 4);
    CHECK_TEXT(data, 4, "fast");
    CHECK_EQ(hf_disk_read(NULL, fd, data, 8, 100, &got), 0);
    CHECK_EQ(got, 0);
    CHECK_EQ(hf_disk_write(NULL, fd, data, 0, 0), 0);
    close(fd);
}

TEST(errors_are_told)
{
    char data[8];
    size_t got;

    CHECK_EQ(hf_disk_read(NULL, -1, data, 8, 0, &got), EBADF);
    CHECK_EQ(hf_disk_write(NULL, -1, data, 8, 0), EBADF);
    int fd = open("/dev/full", O_WRONLY);
    CHECK(fd >= 0);
    CHECK_EQ(hf_disk_write(NULL, fd, data, 1, 0), ENOSPC);
    close(fd);
}
