/* journal_enemy.c - damage to every file of a folder, at a dense set of places,
 * after a clean stop and after a crash.
 *
 * Either the folder is refused with the name of the file, or it opens with
 * every acknowledged record. Only after a crash may the last batch of all be
 * lost, to damage in that batch itself, and then the end is called unclean.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/memory.h"
#include "journal/format.h"
#include "support/disk.h"
#include "support/journal.h"
#include "support/test.h"

#define FILES_MAX   16
#define BATCHES_MAX 64
#define NAME_BYTES  64

/* Every place of these blocks' beginnings, and every so many bytes of the
 * rest. */
#define DENSE_BYTES 72
#define STEP_BYTES  127

/* Every so many cases the folder is really opened, not only read. */
#define OPEN_EVERY 67

enum hurt { HURT_FLIP, HURT_CUT, HURT_LONGER, HURT_REMOVE };

struct enemy {
    struct test_disk disk;
    struct rig whole;
    struct rig copy;
    bool clean;                     /* how it was left */
    struct tally past[BATCHES_MAX]; /* after each batch */
    int batches;
    char names[FILES_MAX][NAME_BYTES];
    int count;
    struct hf_buf file; /* the one being hurt */
    uint64_t end;       /* of its last batch, if it is a segment */
    uint64_t last;      /* where that begins */
    bool newest;        /* it is the last segment */
    uint64_t cases;
    uint64_t refused;
    uint64_t lost; /* opened without the last batch */
};

static void write_batches(struct enemy *enemy, int count)
{
    for (int i = 0; i < count; i++) {
        CHECK_EQ(rig_write(&enemy->whole, 1), HF_OK);
        enemy->past[enemy->batches++] = enemy->whole.acked;
    }
}

static void enemy_init(struct enemy *enemy, bool clean, enum journal_sync sync)
{
    struct rig *whole = &enemy->whole;

    test_folder_in_memory();
    *enemy = (struct enemy){.clean = clean};
    struct journal_io *io = test_disk_quick(&enemy->disk);
    rig_init(whole, "whole", io);
    rig_init(&enemy->copy, "copy", io);
    whole->opts.sync = enemy->copy.opts.sync = sync;
    CHECK_EQ(rig_open(whole), HF_OK);
    write_batches(enemy, 12);
    CHECK_EQ(log_snapshot(whole->journal), HF_OK);
    rig_await_snapshot(whole);
    write_batches(enemy, 8);
    if (clean)
        rig_stop(whole);
    else
        rig_close(whole);
    enemy->count = rig_files(whole, "", 0, NULL);
    CHECK(enemy->count < FILES_MAX);
    CHECK(rig_files(whole, "journal-", 0, NULL) >= 2);
    for (int i = 0; i < enemy->count; i++)
        rig_files(whole, "", i, enemy->names[i]);
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* Takes the file up, and looks where its batches end. */
static void take_up(struct enemy *enemy, const char *name)
{
    struct segment_header header;
    struct batch batch;
    char last[NAME_BYTES];
    int segments = rig_files(&enemy->whole, "journal-", 0, NULL);

    hf_buf_destroy(&enemy->file);
    enemy->file = rig_read_file(rig_path(&enemy->whole, name));
    rig_files(&enemy->whole, "journal-", segments - 1, last);
    enemy->newest = strcmp(name, last) == 0;
    enemy->end = enemy->last = 0;
    if (!begins(name, "journal-"))
        return;
    CHECK_EQ(segment_header_decode(enemy->file.data, &header), HF_OK);
    enemy->end = JOURNAL_BLOCK;
    while (enemy->end < enemy->file.len &&
           batch_decode(hf_bytes(enemy->file.data + enemy->end,
                                 enemy->file.len - enemy->end),
                        header.salt, &batch) == HF_OK) {
        enemy->last = enemy->end;
        enemy->end += batch.disk_bytes;
    }
}

static void write_byte(const char *path, size_t at, char byte)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_EQ(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

static void hurt_file(struct enemy *enemy, const char *path, enum hurt hurt,
                      size_t at)
{
    struct hf_buf *file = &enemy->file;

    switch (hurt) {
    case HURT_FLIP:
        write_byte(path, at, (char)(file->data[at] ^ 1 << at % 8));
        break;
    case HURT_CUT:
        rig_write_file(path, file->data, at);
        break;
    case HURT_LONGER:
        CHECK_EQ(hf_buf_reserve(file, 1), HF_OK);
        file->data[file->len] = 0;
        rig_write_file(path, file->data, file->len + 1);
        break;
    case HURT_REMOVE:
        CHECK_EQ(unlink(path), 0);
        break;
    }
}

/* What nobody needs: what is behind the last batch was never written to, a
 * spare is written anew before it counts. */
static bool is_idle(const struct enemy *enemy, const char *name, enum hurt hurt,
                    size_t at)
{
    return begins(name, "spare-") || begins(name, "lock") ||
           (hurt == HURT_FLIP && begins(name, "journal-") && at >= enemy->end);
}

/* A write that a crash has torn might look the same. */
static bool may_be_torn(const struct enemy *enemy, enum hurt hurt, size_t at)
{
    return !enemy->clean && enemy->newest && hurt == HURT_FLIP &&
           at >= enemy->last && at < enemy->end;
}

/* The manifest has two slots: one that is damaged is no reason to refuse. */
static bool may_open(const struct enemy *enemy, const char *name,
                     enum hurt hurt, size_t at)
{
    bool sealed = begins(name, "journal-") && !enemy->newest;

    return is_idle(enemy, name, hurt, at) || may_be_torn(enemy, hurt, at) ||
           (hurt == HURT_FLIP && begins(name, "manifest")) ||
           (hurt == HURT_LONGER && sealed) ||
           (hurt == HURT_CUT && sealed && at >= enemy->end);
}

static void check_verdict(struct enemy *enemy, const char *name, enum hurt hurt,
                          size_t at, enum hf_status status,
                          const struct tally *state, bool unclean,
                          const char *error)
{
    const struct tally *all = &enemy->past[enemy->batches - 1];
    const struct tally *before = &enemy->past[enemy->batches - 2];

    if (status != HF_OK) {
        CHECK_EQ(status, HF_CORRUPT);
        CHECK(!is_idle(enemy, name, hurt, at));
        CHECK(!may_be_torn(enemy, hurt, at));
        if (strstr(error, name) == NULL || strstr(error, "--apply") == NULL)
            test_fail(__FILE__, __LINE__, "%s, %d at %zu: %s", name, hurt, at,
                      error);
        enemy->refused++;
        return;
    }
    if (!may_open(enemy, name, hurt, at))
        test_fail(__FILE__, __LINE__, "%s, %d at %zu: not noticed", name, hurt,
                  at);
    if (may_be_torn(enemy, hurt, at)) {
        all = before;
        enemy->lost++;
    }
    CHECK_EQ(state->count, all->count);
    CHECK(state->hash == all->hash);
    if (!enemy->clean || begins(name, "manifest"))
        CHECK(unclean);
}

/* What is left opens after a repair, as it was after some batch. */
static void check_repair(struct enemy *enemy)
{
    struct rig *copy = &enemy->copy;
    struct hf_buf text = {0};
    int i = 0;

    CHECK_EQ(journal_repair(copy->opts.dir, true, &text, copy->error), HF_OK);
    CHECK(memmem(text.data, text.len, "done; ", 6) != NULL);
    hf_buf_destroy(&text);
    CHECK_EQ(rig_open(copy), HF_OK);
    CHECK(rig_stats(copy).unclean);
    while (i < enemy->batches && enemy->past[i].hash != copy->state->hash)
        i++;
    CHECK(i < enemy->batches || copy->state->count == 0);
}

/* The same in a copy that is opened, and goes on. */
static void open_copy(struct enemy *enemy, const char *name, enum hurt hurt,
                      size_t at)
{
    struct rig *copy = &enemy->copy;

    rig_copy(&enemy->whole, copy);
    hurt_file(enemy, rig_path(copy, name), hurt, at);
    enum hf_status status = rig_open(copy);
    if (status == HF_OK)
        check_verdict(enemy, name, hurt, at, status, copy->state,
                      rig_stats(copy).unclean, copy->error);
    else
        check_verdict(enemy, name, hurt, at, status, NULL, false, copy->error);
    if (status != HF_OK)
        check_repair(enemy);
    copy->acked = copy->tried = *copy->state;
    rig_check(copy);
    CHECK_EQ(rig_write(copy, 3), HF_OK);
    rig_stop(copy);
    CHECK_EQ(rig_open(copy), HF_OK);
    rig_check(copy);
    CHECK(!rig_stats(copy).unclean);
    rig_close(copy);
}

static void try_case(struct enemy *enemy, const char *name, enum hurt hurt,
                     size_t at)
{
    const char *dir = enemy->whole.opts.dir;
    char path[512];
    char error[JOURNAL_ERROR_MAX];
    struct log_stats stats = {.unclean = false};
    void *state = NULL;

    snprintf(path, sizeof path, "%s", rig_path(&enemy->whole, name));
    hurt_file(enemy, path, hurt, at);
    enum hf_status status =
        journal_read(dir, tally_machine(), &state, &stats, error);
    if (hurt == HURT_FLIP)
        write_byte(path, at, enemy->file.data[at]);
    else
        rig_write_file(path, enemy->file.data, enemy->file.len);
    check_verdict(enemy, name, hurt, at, status, state, stats.unclean, error);
    hf_free(state);
    if (enemy->cases++ % OPEN_EVERY == 0)
        open_copy(enemy, name, hurt, at);
}

static void try_file(struct enemy *enemy, const char *name)
{
    size_t len;

    take_up(enemy, name);
    len = enemy->file.len;
    for (size_t at = 0; at < len;) {
        try_case(enemy, name, HURT_FLIP, at);
        size_t in_block = at % JOURNAL_BLOCK;
        size_t rest = JOURNAL_BLOCK - in_block;
        size_t step = in_block < DENSE_BYTES ? 1 : STEP_BYTES;
        at += step < rest ? step : rest;
    }
    for (size_t at = 0; at < len; at += at % 4096 == 4095 ? 1 : 455)
        try_case(enemy, name, HURT_CUT, at);
    if (len > 0)
        try_case(enemy, name, HURT_CUT, len - 1);
    try_case(enemy, name, HURT_LONGER, 0);
    try_case(enemy, name, HURT_REMOVE, 0);
}

static void try_all(bool clean, enum journal_sync sync)
{
    struct enemy enemy;

    enemy_init(&enemy, clean, sync);
    for (int i = 0; i < enemy.count; i++)
        try_file(&enemy, enemy.names[i]);
    CHECK(enemy.refused > 500);
    CHECK(clean ? enemy.lost == 0 : enemy.lost > 50);
    hf_buf_destroy(&enemy.file);
    test_disk_destroy(&enemy.disk);
}

TEST(after_a_clean_stop_no_damage_is_silent)
{
    try_all(true, JOURNAL_ALWAYS);
}

TEST(after_a_clean_stop_no_damage_is_silent_in_the_other_modes)
{
    try_all(true, JOURNAL_NONE);
}

TEST(after_a_crash_only_the_last_batch_may_pass_for_torn)
{
    try_all(false, JOURNAL_ALWAYS);
}
