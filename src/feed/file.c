/* file.c - files of blocks: added to, read, and removed when they are old. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/little.h"
#include "base/memory.h"
#include "feed/state.h"

#define MAGIC "HFEVNT01"

/* One file is an eighth of what is kept, in these bounds. */
#define FILE_BYTES_MIN (64u * 1024)
#define FILE_BYTES_MAX (8u * 1024 * 1024)

void files_name(char out[FEED_NAME_MAX], uint64_t start)
{
    snprintf(out, FEED_NAME_MAX, "events-%016llx.feed",
             (unsigned long long)start);
}

static bool parse_name(const char *name, uint64_t *start)
{
    char again[FEED_NAME_MAX];

    if (strncmp(name, "events-", 7) != 0)
        return false;
    *start = strtoull(name + 7, NULL, 16);
    files_name(again, *start);
    return strcmp(name, again) == 0;
}

void files_failed(struct feed *feed, const char *what, const char *name,
                  int cause)
{
    hf_mutex_lock(&feed->mutex);
    feed->failing = true;
    feed->failures++;
    snprintf(feed->error, FEED_ERROR_MAX, "cannot %s %s/%s: %s", what,
             feed->opts.dir, name, strerror(cause));
    hf_mutex_unlock(&feed->mutex);
}

/* ---- Blocks. ---- */

static uint64_t checksum(const char *block, size_t len)
{
    return XXH3_64bits(block + 16, BLOCK_HEAD_BYTES - 16 + len);
}

/* Are these events in their order, and between the numbers of the block? */
static bool are_events(const struct feed_block *block, struct hf_bytes events)
{
    uint64_t last = block->before;
    struct hold_event event;
    uint64_t now_us;

    while (events.len > 0) {
        size_t len = event_decode(events, &event, &now_us);
        if (len == 0 || event.seq <= last || event.seq > block->up_to)
            return false;
        last = event.seq;
        events = hf_bytes(events.data + len, events.len - len);
    }
    return true;
}

bool files_block(struct feed *feed, int fd, uint64_t offset,
                 struct feed_block *out)
{
    struct journal_io *io = feed->io;
    char *block = feed->scratch;
    size_t got;

    if (io->read(io, fd, block, BLOCK_HEAD_BYTES, offset, &got) != 0 ||
        got < BLOCK_HEAD_BYTES || memcmp(block, MAGIC, 8) != 0)
        return false;
    *out = (struct feed_block){hf_get_u64(block + 16), hf_get_u64(block + 24),
                               hf_get_u64(block + 32), hf_get_u32(block + 40)};
    if (out->len > FEED_CHUNK_BYTES || out->up_to < out->before ||
        io->read(io, fd, block + BLOCK_HEAD_BYTES, out->len,
                 offset + BLOCK_HEAD_BYTES, &got) != 0)
        return false;
    return got == out->len && hf_get_u64(block + 8) == checksum(block, got) &&
           are_events(out, hf_bytes(block + BLOCK_HEAD_BYTES, got));
}

static bool add_mark(struct feed_file *file, uint64_t offset, uint64_t before)
{
    uint64_t last =
        file->mark_count > 0 ? file->marks[file->mark_count - 1].offset : 0;

    if (file->mark_count > 0 && offset - last < MARK_BYTES)
        return true;
    void *more =
        hf_realloc(file->marks, (file->mark_count + 1) * sizeof *file->marks);
    if (more == NULL)
        return false; /* a read begins earlier */
    file->marks = more;
    file->marks[file->mark_count++] = (struct feed_mark){offset, before};
    return true;
}

/* The block is one more of the file. */
static void count_block(struct feed_file *file, const struct feed_block *block)
{
    (void)add_mark(file, file->bytes, block->before);
    file->bytes += BLOCK_HEAD_BYTES + block->len;
    file->up_to = block->up_to;
    if (block->last_us != 0)
        file->last_us = block->last_us;
}

/* ---- Opening. ---- */

static struct feed_file *add_file(struct feed *feed, uint64_t start)
{
    if (feed->file_count == feed->file_cap) {
        size_t cap = feed->file_cap > 0 ? 2 * feed->file_cap : 16;
        void *more = hf_realloc(feed->files, cap * sizeof *feed->files);
        if (more == NULL)
            return NULL;
        feed->files = more;
        feed->file_cap = cap;
    }
    struct feed_file *file = &feed->files[feed->file_count++];
    *file = (struct feed_file){.start = start, .up_to = start};
    return file;
}

static void drop_file(struct feed *feed, size_t at)
{
    hf_free(feed->files[at].marks);
    memmove(&feed->files[at], &feed->files[at + 1],
            (feed->file_count - at - 1) * sizeof feed->files[0]);
    feed->file_count--;
}

/* All its blocks; what is behind them makes it torn. */
static int walk_file(struct feed *feed, struct feed_file *file)
{
    char name[FEED_NAME_MAX];
    struct feed_block block;
    struct stat info;
    int fd;

    files_name(name, file->start);
    int cause = feed->io->open(feed->io, feed->dir, name, O_RDONLY, &fd);
    if (cause != 0)
        return cause;
    while (files_block(feed, fd, file->bytes, &block) &&
           block.before >= file->up_to)
        count_block(file, &block);
    file->torn = fstat(fd, &info) != 0 || (uint64_t)info.st_size != file->bytes;
    close(fd);
    return 0;
}

static int compare_files(const void *left, const void *right)
{
    uint64_t a = ((const struct feed_file *)left)->start;
    uint64_t b = ((const struct feed_file *)right)->start;

    return (a > b) - (a < b);
}

static int list_files(struct feed *feed)
{
    int fd = openat(feed->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    uint64_t start;
    int cause = 0;

    if (dir == NULL) {
        cause = errno;
        if (fd >= 0)
            close(fd);
        return cause;
    }
    while (cause == 0 && (entry = readdir(dir)) != NULL) {
        if (parse_name(entry->d_name, &start) && add_file(feed, start) == NULL)
            cause = ENOMEM;
    }
    closedir(dir);
    if (feed->file_count > 1)
        qsort(feed->files, feed->file_count, sizeof feed->files[0],
              compare_files);
    return cause;
}

enum hf_status files_open(struct feed *feed, char error[FEED_ERROR_MAX])
{
    int cause = list_files(feed);

    for (size_t i = 0; cause == 0 && i < feed->file_count; i++)
        cause = walk_file(feed, &feed->files[i]);
    /* What an older file has above the start of a newer one does not count. */
    for (size_t i = 1; cause == 0 && i < feed->file_count; i++) {
        if (feed->files[i - 1].up_to > feed->files[i].start)
            feed->files[i - 1].up_to = feed->files[i].start;
    }
    if (cause == 0)
        return HF_OK;
    snprintf(error, FEED_ERROR_MAX, "cannot read the events in %s: %s",
             feed->opts.dir, strerror(cause));
    return cause == ENOMEM ? HF_NOMEM : HF_IO;
}

void files_close(struct feed *feed)
{
    if (feed->fd >= 0)
        close(feed->fd);
    while (feed->file_count > 0)
        drop_file(feed, feed->file_count - 1);
    hf_free(feed->files);
}

/* ---- Adding. ---- */

/* The next file begins behind that number. */
static bool begin_file(struct feed *feed, uint64_t before)
{
    char name[FEED_NAME_MAX];
    int fd;

    files_name(name, before);
    int cause = feed->io->open(feed->io, feed->dir, name,
                               O_RDWR | O_CREAT | O_TRUNC, &fd);
    if (cause != 0) {
        files_failed(feed, "make", name, cause);
        return false;
    }
    hf_mutex_lock(&feed->mutex);
    struct feed_file *last =
        feed->file_count > 0 ? &feed->files[feed->file_count - 1] : NULL;
    if (last != NULL && last->start == before)
        drop_file(feed, feed->file_count - 1);
    bool added = add_file(feed, before) != NULL;
    hf_mutex_unlock(&feed->mutex);
    if (!added) {
        close(fd);
        files_failed(feed, "note", name, ENOMEM);
        return false;
    }
    feed->fd = fd;
    feed->folder_dirty = true;
    return true;
}

/* The last file, to go on with. */
static bool reopen(struct feed *feed)
{
    const struct feed_file *last = &feed->files[feed->file_count - 1];
    char name[FEED_NAME_MAX];

    files_name(name, last->start);
    int cause = feed->io->open(feed->io, feed->dir, name, O_RDWR, &feed->fd);
    if (cause == 0)
        return true;
    feed->fd = -1;
    files_failed(feed, "open", name, cause);
    return false;
}

/* The last file has enough: nothing more is written to it. */
static bool end_file(struct feed *feed)
{
    bool synced = files_sync(feed);

    if (feed->fd >= 0)
        close(feed->fd);
    feed->fd = -1;
    return synced;
}

/* The file that the next block goes to is open. */
static bool open_last(struct feed *feed, uint64_t before)
{
    uint64_t most = feed->opts.keep_bytes / 8;
    const struct feed_file *last =
        feed->file_count > 0 ? &feed->files[feed->file_count - 1] : NULL;

    if (most < FILE_BYTES_MIN)
        most = FILE_BYTES_MIN;
    if (most > FILE_BYTES_MAX)
        most = FILE_BYTES_MAX;
    if (last == NULL || last->torn)
        return begin_file(feed, before);
    if (feed->fd < 0 && !reopen(feed))
        return false;
    if (last->bytes < most)
        return true;
    return end_file(feed) && begin_file(feed, before);
}

bool files_append(struct feed *feed, uint64_t before,
                  const struct feed_ready *ready, struct hf_bytes events)
{
    char *block = feed->scratch;
    struct feed_block made = {before, ready->up_to,
                              events.len > 0 ? ready->last_us : 0,
                              (uint32_t)events.len};

    if (!open_last(feed, before))
        return false;
    struct feed_file *last = &feed->files[feed->file_count - 1];
    memcpy(block, MAGIC, 8);
    hf_put_u64(block + 16, made.before);
    hf_put_u64(block + 24, made.up_to);
    hf_put_u64(block + 32, made.last_us);
    hf_put_u32(block + 40, made.len);
    hf_put_u32(block + 44, ready->count);
    if (events.len > 0)
        memcpy(block + BLOCK_HEAD_BYTES, events.data, events.len);
    hf_put_u64(block + 8, checksum(block, events.len));
    int cause = feed->io->write(feed->io, feed->fd, block,
                                BLOCK_HEAD_BYTES + events.len, last->bytes);
    hf_mutex_lock(&feed->mutex);
    if (cause == 0)
        count_block(last, &made);
    else
        last->torn = true; /* part of it may be there */
    hf_mutex_unlock(&feed->mutex);
    if (cause == 0)
        return true;
    char name[FEED_NAME_MAX];
    files_name(name, last->start);
    files_failed(feed, "write", name, cause);
    close(feed->fd);
    feed->fd = -1;
    return false;
}

bool files_sync(struct feed *feed)
{
    int cause = 0;

    if (feed->fd >= 0)
        cause = feed->io->sync(feed->io, feed->fd);
    if (cause == 0 && feed->folder_dirty)
        cause = feed->io->sync_folder(feed->io, feed->dir);
    if (cause != 0) {
        files_failed(feed, "sync", "events", cause);
        return false;
    }
    feed->folder_dirty = false;
    return true;
}

/* ---- Removing. ---- */

static void remove_last(struct feed *feed)
{
    char name[FEED_NAME_MAX];

    files_name(name, feed->files[feed->file_count - 1].start);
    (void)feed->io->remove(feed->io, feed->dir, name);
    drop_file(feed, feed->file_count - 1);
}

/* Overwrites the head of the file's first block that has something above `seq`.
 * That needs no room on the disk; what the block has up to `seq` is lost. */
static bool spoil_tail(struct feed *feed, struct feed_file *file, uint64_t seq)
{
    static const char nothing[sizeof MAGIC - 1];
    char name[FEED_NAME_MAX];
    struct feed_block block;
    uint64_t offset = 0;
    int fd;

    files_name(name, file->start);
    if (feed->io->open(feed->io, feed->dir, name, O_RDWR, &fd) != 0)
        return false;
    while (files_block(feed, fd, offset, &block) && block.up_to <= seq)
        offset += BLOCK_HEAD_BYTES + block.len;
    bool done =
        feed->io->write(feed->io, fd, nothing, sizeof nothing, offset) == 0 &&
        feed->io->sync(feed->io, fd) == 0;
    close(fd);
    hf_free(file->marks);
    *file = (struct feed_file){.start = file->start, .up_to = file->start};
    return done && walk_file(feed, file) == 0;
}

/* The next file is begun at once: by its name it says that what an older one
 * has above that number does not count, also after a crash. If there is no room
 * for it, the older one is changed: the numbers go on far above those that it
 * has, so that the next start would not know what does not count. */
void files_cut(struct feed *feed, uint64_t seq)
{
    while (feed->file_count > 0 &&
           feed->files[feed->file_count - 1].start >= seq)
        remove_last(feed);
    struct feed_file *last =
        feed->file_count > 0 ? &feed->files[feed->file_count - 1] : NULL;
    bool cuts = last != NULL && last->up_to > seq;
    if (cuts) {
        last->up_to = seq;
        last->torn = true;
    }
    if (begin_file(feed, seq)) /* which may move the files in memory */
        (void)files_sync(feed);
    else if (cuts && !spoil_tail(feed, &feed->files[feed->file_count - 1], seq))
        remove_last(feed);
}

static bool is_old(const struct feed *feed, uint64_t now_us)
{
    uint64_t keep_us = feed->opts.keep_ms * 1000;
    uint64_t bytes = 0;

    for (size_t i = 0; i < feed->file_count; i++)
        bytes += feed->files[i].bytes;
    return bytes > feed->opts.keep_bytes ||
           (now_us > keep_us && feed->files[0].last_us < now_us - keep_us);
}

void files_expire(struct feed *feed)
{
    char name[FEED_NAME_MAX];
    bool removed = true;

    while (removed) {
        uint64_t start = 0;
        hf_mutex_lock(&feed->mutex);
        removed = feed->file_count > 1 && is_old(feed, feed->now_us);
        if (removed) {
            start = feed->files[0].start;
            drop_file(feed, 0);
        }
        hf_mutex_unlock(&feed->mutex);
        if (!removed)
            return;
        files_name(name, start);
        int cause = feed->io->remove(feed->io, feed->dir, name);
        if (cause != 0 && cause != ENOENT)
            files_failed(feed, "remove", name, cause);
    }
}

/* ---- Reading. ---- */

/* The place in the file to read from. */
static uint64_t find_mark(const struct feed_file *file, uint64_t after)
{
    uint64_t offset = 0;

    for (size_t i = 0; i < file->mark_count; i++) {
        if (file->marks[i].before <= after)
            offset = file->marks[i].offset;
    }
    return offset;
}

/* How long the events up to that number are. */
static size_t len_up_to(struct hf_bytes events, uint64_t up_to)
{
    size_t at = 0;

    while (at + EVENT_HEAD_BYTES <= events.len &&
           event_seq(events.data + at) <= up_to)
        at += hf_get_u32(events.data + at);
    return at;
}

/* Adds events of a block to the page: all, or those that are searched for. */
static enum hf_status add_events(struct feed_read *read, struct hf_bytes events)
{
    enum hf_status status = HF_OK;
    struct hold_event event;
    uint64_t now_us;

    if (!read->searches)
        return hf_buf_append(&read->bytes, events.data, events.len);
    read->searched += events.len;
    for (size_t at = 0; at < events.len && status == HF_OK;) {
        struct hf_bytes rest = hf_bytes(events.data + at, events.len - at);
        size_t len = event_decode(rest, &event, &now_us);
        if (len == 0)
            break; /* not in a block that was checked */
        if (event_is_about(&event, &read->about))
            status = hf_buf_append(&read->bytes, rest.data, len);
        at += len;
    }
    return status;
}

/* The block belongs to what is asked for: adds it to the page. False: the page
 * has enough. */
static bool take_block(struct feed *feed, struct feed_read *read,
                       const struct feed_file *file,
                       const struct feed_block *block)
{
    struct feed_page *page = &read->page;
    struct hf_bytes events =
        hf_bytes(feed->scratch + BLOCK_HEAD_BYTES, block->len);
    uint64_t up_to = block->up_to;

    if (up_to > file->up_to) { /* the next file says how much of it counts */
        up_to = file->up_to;
        events.len = len_up_to(events, up_to);
    }
    if (up_to <= page->up_to)
        return true;
    bool first = page->up_to == read->after && page->gap == 0;
    if (block->before > page->up_to && !first)
        return false; /* a gap comes first in the next page */
    size_t had = read->bytes.len;
    if (had + events.len > FEED_CHUNK_BYTES)
        return false;
    if (add_events(read, events) != HF_OK) {
        read->bytes.len = had; /* a part of them does not count */
        return false;
    }
    if (block->before > page->up_to)
        page->gap = page->after = block->before;
    page->up_to = up_to;
    return read->searched < FEED_SEARCH_BYTES;
}

/* False: the page has enough. */
static bool read_file(struct feed *feed, struct feed_read *read,
                      const struct feed_file *file)
{
    uint64_t offset = find_mark(file, read->page.up_to);
    char name[FEED_NAME_MAX];
    struct feed_block block;
    bool more = true;
    int fd;

    files_name(name, file->start);
    if (feed->io->open(feed->io, feed->dir, name, O_RDONLY, &fd) != 0)
        return true; /* a gap, as far as readers see */
    while (more && offset < file->bytes &&
           files_block(feed, fd, offset, &block)) {
        more = take_block(feed, read, file, &block);
        offset += BLOCK_HEAD_BYTES + block.len;
    }
    close(fd);
    return more;
}

void files_read(struct feed *feed, struct feed_read *read)
{
    bool more = true;

    read->page = (struct feed_page){.after = read->after, .up_to = read->after};
    for (size_t i = 0; more && i < feed->file_count; i++) {
        if (feed->files[i].up_to > read->page.up_to)
            more = read_file(feed, read, &feed->files[i]);
    }
    read->page.events = hf_buf_bytes(&read->bytes);
}
