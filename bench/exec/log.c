/* log.c - hf_log beside spdlog's asynchronous logger.
 *
 * Both have one thread that writes the file, wait when there is no room, and
 * write lines of the same form. Room is as each has it by default, 256 KiB for
 * each thread here and 8192 lines for all there; in `burst-` for all lines.
 */
#include "log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/log.h"

extern const struct contest_side log_spdlog;

#define LINES_BURST 20000
#define LINES       500000

#define WORK(text, kind, count, lines)                                \
    {                                                                 \
        .name = text, .threads = count, .shape = kind, .size = lines, \
        .exact = lines, .fresh = true, .roam = true,                  \
    }

static const struct contest_work works[] = {
    WORK("burst-1", LOG_BURST, 1, LINES_BURST),
    WORK("burst-2", LOG_BURST, 2, 2 * LINES_BURST),
    WORK("caller-2", LOG_CALLER, 2, LINES),
    WORK("total-2", LOG_TOTAL, 2, LINES),
    {.name = NULL},
};

/* The same for all sides. */

void log_file_make(struct log_file *file, const struct contest_work *work)
{
    const char *folder = getenv("TMPDIR");
    int length = snprintf(file->path, sizeof file->path, "%s/log.XXXXXX",
                          folder != NULL ? folder : "/var/tmp");

    if (length < 0 || (size_t)length >= sizeof file->path)
        contest_fail("TMPDIR is too long");
    int fd = mkstemp(file->path);
    if (fd < 0)
        contest_fail("no file can be made in TMPDIR");
    close(fd);
    file->lines = work->exact;
}

/* A side that is only asked whether it takes part has written nothing. */
void log_file_end(struct log_file *file)
{
    static char block[1 << 16];
    uint64_t lines = 0;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (fd < 0)
        contest_fail("the file is not there");
    while ((got = read(fd, block, sizeof block)) > 0)
        for (ssize_t i = 0; i < got; i++)
            lines += block[i] == '\n';
    close(fd);
    unlink(file->path);
    if (lines != 0 && lines != file->lines)
        contest_fail("the file has too many lines, or too few");
}

/* Ours. */

struct ours {
    struct log_file file; /* first */
    struct hf_log *log;
};

static void *ours_open(const struct contest_work *work)
{
    struct ours *ours = contest_alloc(sizeof *ours);
    bool burst = work->shape == LOG_BURST;
    struct hf_log_opts opts = {
        .name = work->name,
        .path = ours->file.path,
        .overflow = HF_LOG_WAIT,
        .buffer_bytes = burst ? LOG_BURST_ROOM * LOG_LINE_BYTES : 0,
    };

    log_file_make(&ours->file, work);
    if (hf_log_open(&ours->log, &opts))
        contest_fail("hf_log_open");
    return ours;
}

static void ours_finish(void *self)
{
    struct ours *ours = self;

    hf_log_close(ours->log);
    ours->log = NULL;
}

static void ours_close(void *self)
{
    struct ours *ours = self;

    ours_finish(ours);
    log_file_end(&ours->file);
    free(ours);
}

CONTEST_INLINE void ours_write(void *self, uint64_t number, unsigned thread)
{
    struct ours *ours = self;

    hf_log_write(ours->log, HF_LOG_INFO,
                 "request %llu of client %u: reserved %s, %d of %d left",
                 (unsigned long long)number, thread, "product-000042", 17, 100);
}

static void ours_run(struct contest_thread *thread)
{
    log_run(thread, ours_write, ours_finish);
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
};

static const struct contest_side *const sides[] = {
    &ours,
    &log_spdlog,
    NULL,
};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
