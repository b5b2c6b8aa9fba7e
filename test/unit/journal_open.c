/* journal_open.c - tests of opening and reading a journal: what is left when
 * that fails, and that no descriptor is lost or closed twice. */
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "support/disk.h"
#include "support/journal.h"
#include "support/test.h"

/* Closes of what was not open: by then the number may be somebody else's. */
static struct hf_atomic_u32 strays;

int close(int fd)
{
    typedef int function(int);
    int result = ((function *)dlsym(RTLD_NEXT, "close"))(fd);

    if (result != 0 && errno == EBADF && fd >= 0)
        (void)hf_u32_add(&strays, 1, __ATOMIC_RELAXED);
    return result;
}

/* A tally of which the journal must give back each one that it does not hand
 * over. */
static int states;
static bool none; /* there is no memory for one */
static enum hf_status load_end;

static void *create(void *context)
{
    void *state = none ? NULL : tally_machine()->create(context);

    states += state != NULL;
    return state;
}

static void destroy(void *state)
{
    CHECK(state != NULL);
    states--;
    hf_free(state);
}

/* The second piece cannot be loaded, if the test says so. */
static enum hf_status load(void *machine, struct hf_bytes data)
{
    bool second = ((struct tally *)machine)->pieces == 1;

    return second && load_end != HF_OK ? load_end
                                       : tally_machine()->load(machine, data);
}

static struct journal_machine machine;

static void start(struct rig *rig, struct journal_io *io)
{
    states = 0;
    none = false;
    load_end = HF_OK;
    machine = *tally_machine();
    machine.create = create;
    machine.destroy = destroy;
    machine.load = load;
    strays.value = 0;
    rig_init(rig, "j", io);
}

/* Refused with this status by open and by read; nothing is left. */
static void expect_refused(struct rig *rig, enum hf_status status)
{
    struct log_stats stats;
    void *state = &stats;

    CHECK_EQ(rig_open(rig), status);
    CHECK_EQ(states, 0);
    CHECK(rig->error[0] != '\0');
    CHECK_EQ(journal_read(rig->opts.dir, &machine, &state, &stats, rig->error),
             status);
    CHECK_EQ(states, 0);
    CHECK(state == &stats);
}

/* A snapshot and several segments behind it. */
static void write_files(struct rig *rig)
{
    rig_write_with_snapshot(rig);
    CHECK_EQ(rig_open(rig), HF_OK);
    CHECK_EQ(rig_write(rig, 30), HF_OK);
    rig_close(rig);
    CHECK(rig_files(rig, "journal-", 0, NULL) > 2);
}

/* One open, of which something may have been made to fail. */
static enum hf_status open_and_close(struct rig *rig, int descriptors)
{
    rig->opts.machine = &machine;
    enum hf_status status = rig_open(rig);
    CHECK_EQ(states, status == HF_OK);
    CHECK(status == HF_OK || rig->error[0] != '\0');
    rig_close(rig);
    states = 0;
    CHECK_EQ(rig_descriptors(), descriptors);
    CHECK_EQ(strays.value, 0);
    return status;
}

TEST(an_open_that_fails_leaves_no_state_and_no_descriptor)
{
    static const unsigned kinds[] = {TEST_DISK_LOOK, TEST_DISK_READ,
                                     TEST_DISK_OPEN, TEST_DISK_WRITES,
                                     TEST_DISK_SYNC, TEST_DISK_CREATE};
    struct test_disk disk;
    struct rig rig;
    char name[16];
    int refused = 0;

    start(&rig, test_disk_quick(&disk));
    write_files(&rig);
    int descriptors = rig_descriptors();
    for (size_t i = 0; i < 2 * sizeof kinds / sizeof kinds[0]; i++) {
        for (uint64_t at = 0; at == 0 || test_disk_failed(&disk); at++) {
            snprintf(name, sizeof name, "%zu-%u", i, (unsigned)at);
            if (i % 2 == 0) /* a new one, else what is there */
                rig_init(&rig, name, &disk.io);
            else
                rig_init(&rig, "j", &disk.io);
            test_disk_fail(&disk, kinds[i / 2], at, EIO);
            enum hf_status status = open_and_close(&rig, descriptors);
            CHECK(status == HF_OK || status == HF_IO);
            if (i / 2 < 3) /* the others happen in the background, too */
                CHECK_EQ(status == HF_IO, test_disk_failed(&disk));
            refused += status != HF_OK;
        }
    }
    CHECK(refused > 20);
    test_disk_destroy(&disk);
}

TEST(an_open_without_memory_leaves_no_state_and_no_descriptor)
{
    struct test_disk disk;
    struct rig rig;
    bool no_disk = false;

    start(&rig, test_disk_quick(&disk));
    write_files(&rig);
    int descriptors = rig_descriptors();
    for (int own = 0; own < 2; own++) { /* or the disk of its choice */
        enum hf_status status = HF_NOMEM;
        rig.opts.io = own ? &disk.io : NULL;
        for (uint64_t at = 0; status == HF_NOMEM; at++) {
            hf_memory_fail_after(at);
            status = open_and_close(&rig, descriptors);
            hf_memory_fail_never();
            no_disk = no_disk || strstr(rig.error, "cannot start to write to ");
        }
        CHECK_EQ(status, HF_OK);
    }
    CHECK(no_disk);
    test_disk_destroy(&disk);
}

TEST(a_state_that_cannot_be_made_is_not_given_back)
{
    struct test_disk disk;
    struct rig rig;
    char text[JOURNAL_ERROR_MAX];

    start(&rig, test_disk_quick(&disk));
    write_files(&rig);
    rig.opts.machine = &machine;
    none = true;
    snprintf(text, sizeof text, "no memory for the state of %s", rig.opts.dir);
    CHECK_EQ(rig_open(&rig), HF_NOMEM);
    CHECK(strcmp(rig.error, text) == 0);
    expect_refused(&rig, HF_NOMEM);
    CHECK(strcmp(rig.error, text) == 0);
    test_disk_destroy(&disk);
}

TEST(a_piece_of_a_snapshot_that_cannot_be_loaded_is_named)
{
    struct test_disk disk;
    struct rig rig;
    char name[64];
    char text[JOURNAL_ERROR_MAX];

    start(&rig, test_disk_quick(&disk));
    write_files(&rig);
    rig.opts.machine = &machine;
    load_end = HF_FULL;
    expect_refused(&rig, HF_FULL);
    rig_files(&rig, "snapshot-", 0, name);
    snprintf(text, sizeof text, "%s/%s: piece 1 cannot be loaded: %s",
             rig.opts.dir, name, hf_status_text(HF_FULL));
    CHECK(strcmp(rig.error, text) == 0);
    test_disk_destroy(&disk);
}

/* It stands at the end of what may be read. */
TEST(the_name_of_the_folder_is_read_up_to_its_end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct test_disk disk;
    struct rig rig;

    start(&rig, test_disk_quick(&disk));
    char *space = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(space != MAP_FAILED);
    CHECK_EQ(mprotect(space + page, page, PROT_NONE), 0);
    size_t len = strlen(rig.opts.dir) + 1;
    rig.opts.dir = memcpy(space + page - len, rig.opts.dir, len);
    CHECK_EQ(rig_open(&rig), HF_OK);
    rig_close(&rig);
    CHECK_EQ(munmap(space, 2 * page), 0);
    test_disk_destroy(&disk);
}

TEST(an_empty_folder_is_read_as_an_empty_journal)
{
    struct rig rig;
    struct log_stats stats;
    void *state = NULL;

    start(&rig, NULL);
    CHECK_EQ(mkdir(rig.opts.dir, 0700), 0);
    CHECK_EQ(journal_read(rig.opts.dir, &machine, &state, &stats, rig.error),
             HF_OK);
    CHECK_EQ(((struct tally *)state)->count, 0);
    CHECK(stats.disk_bytes == 0 && stats.replayed_batches == 0);
    CHECK(!stats.unclean);
    destroy(state);
    CHECK_EQ(states, 0);
}

/* The disk that the journal has chosen for itself is one of them. */
TEST(no_descriptor_is_lost_or_closed_twice)
{
    struct rig rig;

    start(&rig, NULL);
    int descriptors = rig_descriptors();
    for (int mode = JOURNAL_ALWAYS; mode <= JOURNAL_NONE; mode++) {
        rig.opts.sync = (enum journal_sync)mode;
        CHECK_EQ(rig_open(&rig), HF_OK);
        if (mode != JOURNAL_ALWAYS)
            rig_check(&rig);
        CHECK_EQ(rig_write(&rig, 30), HF_OK);
        rig_close(&rig);
        CHECK_EQ(rig_descriptors(), descriptors);
        CHECK_EQ(strays.value, 0);
    }
}

TEST(no_descriptor_is_closed_twice_when_there_is_no_next_segment)
{
    struct test_disk disk;
    struct rig rig;

    start(&rig, test_disk_quick(&disk));
    int descriptors = rig_descriptors();
    CHECK_EQ(rig_open(&rig), HF_OK);
    disk.repeat = true;
    test_disk_fail(&disk, TEST_DISK_CREATE, 0, ENOSPC);
    CHECK_EQ(rig_write(&rig, 60), HF_IO);
    CHECK(strstr(log_error(rig.journal), "no segment for batch ") != NULL);
    rig_close(&rig);
    CHECK_EQ(rig_descriptors(), descriptors);
    CHECK_EQ(strays.value, 0);
    test_disk_destroy(&disk);
}
