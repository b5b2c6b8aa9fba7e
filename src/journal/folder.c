/* folder.c - opens, locks and lists the data folder. */
#include "journal/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "journal/journal.h"

#define LOCK_NAME   "lock"
#define FOLDER_MODE 0750
#define NUMBER_LEN  16

enum hf_status journal_say(char *error, enum hf_status status,
                           const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error, JOURNAL_ERROR_MAX, format, args);
    va_end(args);
    return status;
}

enum hf_status folder_failed(const struct folder *folder, const char *what,
                             const char *name, int cause, char *error)
{
    return journal_say(error, HF_IO, "cannot %s %s/%s: %s", what, folder->path,
                       name, strerror(cause));
}

enum hf_status folder_damaged(const struct folder *folder, char *error,
                              const char *format, ...)
{
    const char *path = folder->path;
    char what[256];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return journal_say(error, HF_CORRUPT,
                       "%s%s'holdfast repair %s' shows what repairing would "
                       "drop, 'holdfast repair %s --apply' does it",
                       path, what, path, path);
}

void folder_segment_name(char *name, uint64_t first)
{
    snprintf(name, FOLDER_NAME_MAX, "journal-%016llx.seg",
             (unsigned long long)first);
}

void folder_snapshot_name(char *name, uint64_t last)
{
    snprintf(name, FOLDER_NAME_MAX, "snapshot-%016llx.snap",
             (unsigned long long)last);
}

void folder_spare_name(char *name, int slot)
{
    snprintf(name, FOLDER_NAME_MAX, "spare-%d.seg", slot);
}

static enum hf_status take_lock(struct folder *folder, enum folder_mode mode,
                                char *error)
{
    bool read = mode == FOLDER_READ;
    int flags = read ? O_RDONLY : O_RDWR | O_CREAT;

    folder->lock_fd = openat(folder->fd, LOCK_NAME, flags | O_CLOEXEC, 0640);
    if (folder->lock_fd < 0 && read && errno == ENOENT)
        return HF_OK; /* a copy that nobody has opened */
    if (folder->lock_fd < 0)
        return folder_failed(folder, "open", LOCK_NAME, errno, error);
    if (flock(folder->lock_fd, (read ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0)
        return HF_OK;
    if (errno == EWOULDBLOCK)
        return journal_say(error, HF_EXISTS,
                           "%s is in use by another process (it holds "
                           "%s/" LOCK_NAME ")",
                           folder->path, folder->path);
    return folder_failed(folder, "lock", LOCK_NAME, errno, error);
}

/* A new folder must not vanish with all that is acknowledged in it. Whoever
 * made it may have died before it could see to that: it is new until it has a
 * manifest. */
static enum hf_status sync_parent(struct folder *folder, char *error)
{
    int fd = openat(folder->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int cause = errno;

    if (fd < 0 && cause == EACCES)
        return HF_OK; /* whoever may not even look there cannot do more */
    if (fd >= 0) {
        cause = folder->io->sync_folder(folder->io, fd);
        close(fd);
    }
    if (cause == 0)
        return HF_OK;
    return journal_say(error, HF_IO, "cannot sync the folder above %s: %s",
                       folder->path, strerror(cause));
}

enum hf_status folder_open(struct folder *folder, const char *path,
                           enum folder_mode mode, struct journal_io *io,
                           char *error)
{
    *folder = (struct folder){path, io, -1, -1};
    if (mode == FOLDER_MAKE && mkdir(path, FOLDER_MODE) != 0 && errno != EEXIST)
        return journal_say(error, HF_IO, "cannot make the folder %s: %s", path,
                           strerror(errno));
    folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd < 0)
        return journal_say(error, errno == ENOENT ? HF_NOTFOUND : HF_IO,
                           "cannot open the folder %s: %s", path,
                           strerror(errno));
    enum hf_status status = take_lock(folder, mode, error);
    if (status == HF_OK && mode == FOLDER_MAKE &&
        faccessat(folder->fd, FOLDER_MANIFEST, F_OK, 0) != 0)
        status = sync_parent(folder, error);
    if (status != HF_OK)
        folder_close(folder);
    return status;
}

void folder_close(struct folder *folder)
{
    if (folder->lock_fd >= 0)
        close(folder->lock_fd);
    if (folder->fd >= 0)
        close(folder->fd);
    folder->fd = folder->lock_fd = -1;
}

enum hf_status folder_sync(const struct folder *folder, char *error)
{
    int cause = folder->io->sync_folder(folder->io, folder->fd);

    return cause == 0 ? HF_OK
                      : folder_failed(folder, "sync", ".", cause, error);
}

uint64_t folder_size(const struct folder *folder, const char *name)
{
    struct stat info;

    return fstatat(folder->fd, name, &info, 0) == 0 ? (uint64_t)info.st_size
                                                    : 0;
}

/* The number in `name` if it is `prefix`, 16 digits, `suffix`. */
static bool parse_name(const char *name, const char *prefix, const char *suffix,
                       uint64_t *number)
{
    size_t prefix_len = strlen(prefix);

    if (strncmp(name, prefix, prefix_len) != 0)
        return false;
    name += prefix_len;
    if (strlen(name) != NUMBER_LEN + strlen(suffix) ||
        strcmp(name + NUMBER_LEN, suffix) != 0 ||
        strspn(name, "0123456789abcdef") < NUMBER_LEN)
        return false;
    *number = strtoull(name, NULL, 16);
    return true;
}

static enum hf_status add_number(uint64_t **numbers, size_t *count,
                                 uint64_t number)
{
    uint64_t *grown = hf_realloc(*numbers, (*count + 1) * sizeof **numbers);

    if (grown == NULL)
        return HF_NOMEM;
    grown[(*count)++] = number;
    *numbers = grown;
    return HF_OK;
}

static enum hf_status add_entry(struct folder *folder, const char *name,
                                struct folder_list *list)
{
    char spare[FOLDER_NAME_MAX];
    struct stat info;
    uint64_t number;
    int slot = 0;

    for (; slot < FOLDER_SPARES_MAX; slot++) {
        folder_spare_name(spare, slot);
        if (strcmp(name, spare) == 0)
            break;
    }
    bool segment = parse_name(name, "journal-", ".seg", &number);
    bool snapshot = parse_name(name, "snapshot-", ".snap", &number);
    if (!segment && !snapshot && slot == FOLDER_SPARES_MAX)
        return HF_OK; /* not ours */
    if (fstatat(folder->fd, name, &info, 0) != 0)
        return errno == ENOENT ? HF_OK : HF_IO; /* renamed meanwhile */
    list->bytes += (uint64_t)info.st_size;
    if (segment)
        return add_number(&list->segments, &list->segment_count, number);
    if (snapshot)
        return add_number(&list->snapshots, &list->snapshot_count, number);
    list->spare_bytes[slot] = (uint64_t)info.st_size;
    return HF_OK;
}

static int compare_numbers(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

static void sort(uint64_t *numbers, size_t count)
{
    if (count > 1)
        qsort(numbers, count, sizeof *numbers, compare_numbers);
}

enum hf_status folder_list(struct folder *folder, struct folder_list *list,
                           char *error)
{
    enum hf_status status = HF_OK;
    struct dirent *entry;

    *list = (struct folder_list){0};
    int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        int cause = errno;
        if (fd >= 0)
            close(fd);
        return journal_say(error, HF_IO, "cannot list %s: %s", folder->path,
                           strerror(cause));
    }
    do {
        errno = 0;
        entry = readdir(dir);
        if (entry != NULL)
            status = add_entry(folder, entry->d_name, list);
        else if (errno != 0)
            status = HF_IO;
    } while (entry != NULL && status == HF_OK);
    if (status != HF_OK)
        journal_say(error, status, "cannot list %s: %s", folder->path,
                    status == HF_IO ? strerror(errno) : hf_status_text(status));
    closedir(dir);
    sort(list->segments, list->segment_count);
    sort(list->snapshots, list->snapshot_count);
    if (status != HF_OK)
        folder_list_destroy(list);
    return status;
}

void folder_list_destroy(struct folder_list *list)
{
    hf_free(list->segments);
    hf_free(list->snapshots);
    *list = (struct folder_list){0};
}
