/* journal_folder.c - tests of the data folder: its lock and what lies in it. */
#include "journal/folder.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "journal/journal.h"
#include "support/disk.h"
#include "support/test.h"

TEST_ONE_THREAD;

static char error[JOURNAL_ERROR_MAX];
static char path[256];
static struct folder folder;
static struct journal_io *io;

/* Why the next lock cannot be had; 0: the system decides. */
static int lock_failure;

int flock(int fd, int operation)
{
    if (lock_failure == 0)
        return (int)syscall(SYS_flock, fd, operation);
    errno = lock_failure;
    return -1;
}

/* As if there were no memory for the system's own list. */
static bool list_fails;

DIR *fdopendir(int fd)
{
    typedef DIR *function(int);

    if (!list_fails)
        return ((function *)dlsym(RTLD_NEXT, "fdopendir"))(fd);
    errno = ENOMEM;
    return NULL;
}

static void start(void)
{
    if (io == NULL)
        CHECK_EQ(journal_io_plain(&io), HF_OK);
    lock_failure = 0;
    list_fails = false;
    error[0] = '\0';
    snprintf(path, sizeof path, "%s/data", test_folder());
}

/* A file in the folder, of so many bytes. */
static void put(const char *name, int64_t bytes)
{
    int fd = openat(folder.fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, bytes), 0);
    close(fd);
}

static bool there(const char *name)
{
    return faccessat(folder.fd, name, F_OK, 0) == 0;
}

/* The text is `before`, the path, `after`. */
static bool says(const char *before, const char *after)
{
    char expected[JOURNAL_ERROR_MAX];

    snprintf(expected, sizeof expected, "%s%s%s", before, path, after);
    return strcmp(error, expected) == 0;
}

TEST(only_one_who_may_make_it_makes_a_folder)
{
    struct stat info;

    start();
    CHECK_EQ(folder_open(&folder, path, FOLDER_READ, io, error), HF_NOTFOUND);
    CHECK(says("cannot open the folder ", ": No such file or directory"));
    CHECK_EQ(folder_open(&folder, path, FOLDER_WRITE, io, error), HF_NOTFOUND);
    CHECK_EQ(stat(path, &info), -1);
    mode_t mask = umask(0);
    CHECK_EQ(folder_open(&folder, path, FOLDER_MAKE, io, error), HF_OK);
    umask(mask);
    CHECK_EQ(stat(path, &info), 0);
    CHECK_EQ(info.st_mode & 07777, 0750);
    CHECK_EQ(fstat(folder.lock_fd, &info), 0);
    CHECK_EQ(info.st_mode & 07777, 0640);
    CHECK(there("lock"));
    folder_close(&folder);
    CHECK_EQ(folder.fd, -1);
    CHECK_EQ(folder.lock_fd, -1);
    folder_close(&folder); /* is nothing */
    CHECK_EQ(folder_open(&folder, path, FOLDER_MAKE, io, error), HF_OK);
    folder_close(&folder);
}

TEST(what_is_no_folder_cannot_be_opened)
{
    start();
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0);
    close(fd);
    CHECK_EQ(folder_open(&folder, path, FOLDER_MAKE, io, error), HF_IO);
    CHECK(says("cannot open the folder ", ": Not a directory"));
    snprintf(path, sizeof path, "%s/data/below", test_folder());
    CHECK_EQ(folder_open(&folder, path, FOLDER_MAKE, io, error), HF_IO);
    CHECK(says("cannot make the folder ", ": Not a directory"));
    CHECK(folder.fd < 0 && folder.lock_fd < 0);
}

TEST(a_reader_makes_no_lock_and_shares_one)
{
    struct folder second;

    start();
    CHECK_EQ(mkdir(path, 0700), 0);
    CHECK_EQ(folder_open(&folder, path, FOLDER_READ, io, error), HF_OK);
    CHECK(folder.lock_fd < 0 && !there("lock"));
    put("lock", 0);
    folder_close(&folder);
    CHECK_EQ(folder_open(&folder, path, FOLDER_READ, io, error), HF_OK);
    CHECK(folder.lock_fd >= 0);
    CHECK_EQ(folder_open(&second, path, FOLDER_READ, io, error), HF_OK);
    folder_close(&second);
    CHECK_EQ(folder_open(&second, path, FOLDER_WRITE, io, error), HF_EXISTS);
    CHECK(strstr(error, "data is in use by another process (it holds ") !=
          NULL);
    CHECK(strstr(error, "data/lock)") != NULL);
    CHECK(second.fd < 0 && second.lock_fd < 0);
    folder_close(&folder);
    CHECK_EQ(folder_open(&second, path, FOLDER_WRITE, io, error), HF_OK);
    CHECK_EQ(folder_open(&folder, path, FOLDER_READ, io, error), HF_EXISTS);
    folder_close(&second);
}

/* Such as a file system that knows no locks: nobody else is to be blamed. */
TEST(a_lock_that_fails_is_not_taken_for_somebody_elses)
{
    start();
    lock_failure = ENOLCK;
    CHECK_EQ(folder_open(&folder, path, FOLDER_MAKE, io, error), HF_IO);
    CHECK_EQ(folder_open(&folder, path, FOLDER_WRITE, io, error), HF_IO);
    CHECK(says("cannot lock ", "/lock: No locks available"));
    lock_failure = EWOULDBLOCK;
    CHECK_EQ(folder_open(&folder, path, FOLDER_WRITE, io, error), HF_EXISTS);
    lock_failure = 0;
    CHECK_EQ(folder_open(&folder, path, FOLDER_WRITE, io, error), HF_OK);
    CHECK_EQ(unlinkat(folder.fd, "lock", 0), 0);
    CHECK_EQ(mkdirat(folder.fd, "lock", 0700), 0);
    folder_close(&folder);
    CHECK_EQ(folder_open(&folder, path, FOLDER_WRITE, io, error), HF_IO);
    CHECK(says("cannot open ", "/lock: Is a directory"));
}

/* Only a new folder may vanish: the one above is synced then. It is new until
 * there is a manifest in it, whoever made it. */
TEST(a_new_folder_is_there_for_good_or_not_opened)
{
    struct test_disk disk;

    start();
    struct journal_io *failing = test_disk_quick(&disk);
    for (int i = 0; i < 2; i++) {
        test_disk_fail(&disk, TEST_DISK_CHANGES, 0, EIO);
        CHECK_EQ(folder_open(&folder, path, FOLDER_MAKE, failing, error),
                 HF_IO);
        CHECK(says("cannot sync the folder above ", ": Input/output error"));
        CHECK(folder.fd < 0 && folder.lock_fd < 0);
    }
    CHECK_EQ(folder_open(&folder, path, FOLDER_MAKE, failing, error), HF_OK);
    int fd = openat(folder.fd, FOLDER_MANIFEST, O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0);
    close(fd);
    folder_close(&folder);
    test_disk_fail(&disk, TEST_DISK_CHANGES, 0, EIO);
    CHECK_EQ(folder_open(&folder, path, FOLDER_MAKE, failing, error), HF_OK);
    CHECK(!test_disk_failed(&disk));
    folder_close(&folder);
    test_disk_destroy(&disk);
}

TEST(what_is_ours_is_listed_in_order_with_its_size)
{
    static const char *const others[] = {"journal-000000000000000.seg",
                                         "journal-00000000000000001.seg",
                                         "journal-000000000000000A.seg",
                                         "journal-000000000000000g.seg",
                                         "journal-0000000000000001.segm",
                                         "journal-0000000000000001.snap",
                                         "journal-0000000000000001",
                                         "ournal-0000000000000001.seg",
                                         "snapshot-0000000000000001.seg",
                                         "snapshot-000000000000001.snap",
                                         "spare-2.seg",
                                         "spare-00.seg",
                                         "spare-.seg",
                                         "segment.tmp",
                                         "manifest",
                                         "journal-",
                                         "snapshot-"};
    struct folder_list list;

    start();
    CHECK_EQ(folder_open(&folder, path, FOLDER_MAKE, io, error), HF_OK);
    CHECK_EQ(folder_list(&folder, &list, error), HF_OK);
    CHECK(list.segments == NULL && list.segment_count == 0);
    CHECK(list.snapshots == NULL && list.snapshot_count == 0);
    CHECK_EQ(list.bytes, 0);
    folder_list_destroy(&list);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        put(others[i], 1000000);
    put("journal-00000000000000ff.seg", 1);
    put("journal-0123456789abcdef.seg", 10);
    put("journal-0000000000000000.seg", 100);
    put("journal-ffffffffffffffff.seg", 1000);
    put("snapshot-000000000000000a.snap", 20);
    put("snapshot-0000000000000009.snap", 30);
    put("spare-1.seg", 4096);
    CHECK_EQ(folder_list(&folder, &list, error), HF_OK);
    CHECK_EQ(list.segment_count, 4);
    CHECK(list.segments[0] == 0 && list.segments[1] == 0xff);
    CHECK(list.segments[2] == 0x0123456789abcdef);
    CHECK(list.segments[3] == UINT64_MAX);
    CHECK_EQ(list.snapshot_count, 2);
    CHECK(list.snapshots[0] == 9 && list.snapshots[1] == 10);
    CHECK(list.spare_bytes[0] == 0 && list.spare_bytes[1] == 4096);
    CHECK_EQ(list.bytes, 1111 + 50 + 4096);
    folder_list_destroy(&list);
    CHECK(list.segments == NULL && list.segment_count == 0);
    put("spare-0.seg", 8192);
    CHECK_EQ(folder_list(&folder, &list, error), HF_OK);
    CHECK(list.spare_bytes[0] == 8192 && list.spare_bytes[1] == 4096);
    folder_list_destroy(&list);
    folder_close(&folder);
}

/* As a file that goes while the list is made. */
TEST(a_file_that_is_gone_is_not_listed)
{
    struct folder_list list;

    start();
    CHECK_EQ(folder_open(&folder, path, FOLDER_MAKE, io, error), HF_OK);
    CHECK_EQ(symlinkat("nowhere", folder.fd, "journal-0000000000000001.seg"),
             0);
    put("journal-0000000000000002.seg", 5);
    CHECK_EQ(folder_list(&folder, &list, error), HF_OK);
    CHECK_EQ(list.segment_count, 1);
    CHECK_EQ(list.segments[0], 2);
    folder_list_destroy(&list);
    CHECK_EQ(symlinkat("snapshot-0000000000000003.snap", folder.fd,
                       "snapshot-0000000000000003.snap"),
             0);
    CHECK_EQ(folder_list(&folder, &list, error), HF_IO);
    CHECK(says("cannot list ", ": Too many levels of symbolic links"));
    CHECK(list.segments == NULL && list.segment_count == 0);
    folder_close(&folder);
    folder.fd = 1 << 20; /* no such descriptor */
    CHECK_EQ(folder_list(&folder, &list, error), HF_IO);
    CHECK(says("cannot list ", ": Bad file descriptor"));
    folder.fd = -1;
}

TEST(a_list_without_memory_says_so)
{
    struct folder_list list;
    enum hf_status status = HF_NOMEM;

    start();
    CHECK_EQ(folder_open(&folder, path, FOLDER_MAKE, io, error), HF_OK);
    put("journal-0000000000000002.seg", 5);
    put("snapshot-0000000000000001.snap", 5);
    for (uint64_t allowed = 0; status != HF_OK; allowed++) {
        CHECK_EQ(allowed < 10, 1);
        hf_memory_fail_after(allowed);
        status = folder_list(&folder, &list, error);
        hf_memory_fail_never();
        CHECK_EQ(status, allowed < 2 ? HF_NOMEM : HF_OK);
        if (status != HF_OK)
            CHECK(says("cannot list ", ": out of memory"));
    }
    folder_list_destroy(&list);
    folder_close(&folder);
}

/* Whatever number it was given: 0 too, when nobody has that one. */
TEST(a_list_that_fails_keeps_no_file_open)
{
    struct folder_list list;

    start();
    CHECK_EQ(folder_open(&folder, path, FOLDER_MAKE, io, error), HF_OK);
    int input = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    list_fails = true;
    enum hf_status status = folder_list(&folder, &list, error);
    list_fails = false;
    bool kept = fcntl(STDIN_FILENO, F_GETFD) >= 0;
    if (input >= 0) {
        dup2(input, STDIN_FILENO);
        close(input);
    }
    CHECK_EQ(status, HF_IO);
    CHECK(says("cannot list ", ": Cannot allocate memory"));
    CHECK(!kept);
    folder_close(&folder);
}
