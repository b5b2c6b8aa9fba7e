/* verify.c - tests of `holdfast verify` and `holdfast repair`, and of the
 * proof behind them. */
#include "cli/verify.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <unistd.h>

#include "cli/proof.h"
#include "journal/journal.h"
#include "server/machine.h"
#include "support/engine.h"

static char data_dir[PATH_MAX];
static const struct hf_hash_seed seed = {{7, 8}};

/* A folder with a journal of some commands of every kind, in two batches. */
static void write_journal(bool snapshot)
{
    struct journal_opts opts = {.dir = data_dir,
                                .sync = JOURNAL_ALWAYS,
                                .machine = server_machine(seed, NULL),
                                .segment_bytes = 1 << 20,
                                .slow_ns = UINT64_MAX / 2};
    char error[JOURNAL_ERROR_MAX];
    char record[HOLD_RECORD_MAX];
    struct log *journal;
    void *machine;

    snprintf(data_dir, sizeof data_dir, "%s/data", test_folder());
    if (journal_open(&journal, &opts, &machine, error) != HF_OK)
        test_fail(__FILE__, __LINE__, "journal_open: %s", error);
    engine_start();
    for (int i = 0; i < 200; i++) {
        switch (i % 8) {
        case 0:
            engine_set("apple", 100 + i);
            break;
        case 1:
            engine_lock("door", i % 3 ? "ann" : "bob", 300, 0);
            break;
        case 2:
            engine_reserve(i % 16 == 2 ? "" : "r", "apple 1", 900);
            break;
        case 3:
            engine_lock("door", "eve", 100, 500);
            break;
        case 4:
            engine_confirm("r");
            break;
        case 5:
            engine_fence("disk", (uint64_t)i);
            break;
        case 6:
            engine_unlock("door", hold_seq(engine) - 1);
            break;
        default:
            engine_now_us += 90 * MS;
            engine_tick();
            break;
        }
        size_t len = hold_encode(engine_last(), record);
        CHECK_EQ(log_append(journal, hf_bytes(record, len)), HF_OK);
        if (i == 100)
            CHECK_EQ(log_commit(journal), HF_OK);
    }
    CHECK_EQ(log_commit(journal), HF_OK);
    if (snapshot) {
        CHECK_EQ(log_snapshot(journal), HF_OK);
        while (log_snapshot_running(journal))
            log_tend(journal, 1);
    }
    log_close(journal);
    hold_free(machine);
}

/* Runs a subcommand with its output in a file; returns the exit code. */
static int run_words(int (*command)(int, char **), int argc, char **argv,
                     char *output, size_t size)
{
    char path[PATH_MAX + 16];

    snprintf(path, sizeof path, "%s.out", data_dir);
    fflush(NULL);
    int old_out = dup(STDOUT_FILENO);
    int old_err = dup(STDERR_FILENO);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    int result = command(argc, argv);
    fflush(NULL);
    dup2(old_out, STDOUT_FILENO);
    dup2(old_err, STDERR_FILENO);
    close(old_out);
    close(old_err);
    ssize_t len = pread(file, output, size - 1, 0);
    close(file);
    output[len > 0 ? len : 0] = '\0';
    return result;
}

static int run(int (*command)(int, char **), const char *name,
               const char *option, char *output, size_t size)
{
    char *argv[] = {(char *)name, data_dir, (char *)option, NULL};

    return run_words(command, option == NULL ? 2 : 3, argv, output, size);
}

static char text[65536];

TEST(a_good_journal_is_proved)
{
    write_journal(false);
    CHECK_EQ(run(verify_main, "verify", NULL, text, sizeof text), 0);
    CHECK(strstr(text, "200 records") != NULL);
    CHECK(strstr(text, "tokens strictly increasing") != NULL);
    CHECK(strstr(text, "available + reserved + sold = total") != NULL);
    char digest[32];
    snprintf(digest, sizeof digest, "%016llx",
             (unsigned long long)hold_digest(engine));
    CHECK(strstr(text, digest) != NULL);
    CHECK_EQ(run(verify_main, "verify", "--json", text, sizeof text), 0);
    CHECK(strncmp(text, "{\"ok\": true, ", 13) == 0);
    CHECK(strstr(text, "\"records\": 200,") != NULL);
    CHECK(strstr(text, digest) != NULL);
}

TEST(a_proof_may_start_with_a_snapshot)
{
    write_journal(true);
    CHECK_EQ(run(verify_main, "verify", NULL, text, sizeof text), 0);
    CHECK(strstr(text, "after a snapshot of") != NULL);
    char digest[32];
    snprintf(digest, sizeof digest, "%016llx",
             (unsigned long long)hold_digest(engine));
    CHECK(strstr(text, digest) != NULL);
}

TEST(a_missing_folder_and_wrong_arguments_are_told)
{
    snprintf(data_dir, sizeof data_dir, "%s/nothing", test_folder());
    CHECK_EQ(run(verify_main, "verify", NULL, text, sizeof text), 1);
    CHECK(strstr(text, "nothing") != NULL);
    CHECK(access(data_dir, F_OK) != 0); /* and it was not made */
    CHECK_EQ(run(verify_main, "verify", "--colour", text, sizeof text), 64);
}

/* Changes one byte of the first record that names an apple, if the file has
 * one. */
static bool damage_file(const char *path)
{
    static char bytes[2 << 20];
    int file = open(path, O_RDWR);

    if (file < 0)
        return false;
    ssize_t len = pread(file, bytes, sizeof bytes, 0);
    char *place = len > 0 ? memmem(bytes, (size_t)len, "apple", 5) : NULL;
    if (place != NULL)
        CHECK_EQ(pwrite(file, "appla", 5, place - bytes), 5);
    close(file);
    return place != NULL;
}

static void damage(void)
{
    char pattern[PATH_MAX + 16];
    glob_t found;
    bool done = false;

    snprintf(pattern, sizeof pattern, "%s/*", data_dir);
    CHECK_EQ(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc && !done; i++)
        done = damage_file(found.gl_pathv[i]);
    globfree(&found);
    CHECK(done);
}

TEST(damage_is_told_with_its_place_and_repaired_by_the_command_told)
{
    write_journal(false);
    damage();
    CHECK_EQ(run(verify_main, "verify", NULL, text, sizeof text), 1);
    CHECK(strstr(text, "holdfast repair") != NULL);
    CHECK_EQ(run(verify_main, "verify", "--json", text, sizeof text), 1);
    CHECK(strncmp(text, "{\"ok\": false, ", 14) == 0);
    CHECK_EQ(run(repair_main, "repair", NULL, text, sizeof text), 0);
    CHECK(strstr(text, "--apply") != NULL);
    CHECK_EQ(run(verify_main, "verify", NULL, text, sizeof text), 1);
    CHECK_EQ(run(repair_main, "repair", "--apply", text, sizeof text), 0);
    CHECK_EQ(run(verify_main, "verify", NULL, text, sizeof text), 0);
}

/* The proof itself. */

TEST(bytes_that_are_no_record_are_refused)
{
    struct proof_result result;
    struct proof *proof = proof_new(seed, &result);

    CHECK(proof != NULL);
    CHECK_EQ(proof_apply(proof, hf_bytes_text("hello")), HF_CORRUPT);
    CHECK_TEXT(result.wrong, strlen(result.wrong), "");
    proof_free(proof);
}

TEST(a_proof_counts_what_it_saw)
{
    struct proof_result result;
    struct proof *proof = proof_new(seed, &result);
    char record[HOLD_RECORD_MAX];

    engine_start();
    for (int i = 0; i < 4; i++) {
        if (i == 0)
            engine_set("apple", 5);
        else if (i == 1)
            engine_reserve("r1", "apple 2", 1000);
        else if (i == 2)
            engine_lock("door", "ann", 1000, 0);
        else
            engine_now_us += 1000 * MS, engine_tick();
        size_t len = hold_encode(engine_last(), record);
        CHECK_EQ(proof_apply(proof, hf_bytes(record, len)), HF_OK);
    }
    CHECK_EQ(proof_finish(proof, false), HF_OK);
    CHECK_EQ(result.records, 4);
    CHECK_EQ(result.event_count, 5);
    CHECK_EQ(result.last_seq, 5);
    CHECK_EQ(result.product_checks, 3);
    CHECK_EQ(result.events[EVENT_RESERVATION_EXPIRED], 1);
    CHECK(result.digest == hold_digest(engine));
    proof_free(proof);
}

static void prove(struct proof *proof, const struct hold_out *out)
{
    char record[HOLD_RECORD_MAX];

    CHECK(out->code == HOLD_OK || out->code == HOLD_WAITING);
    size_t len = hold_encode(engine_last(), record);
    CHECK_EQ(proof_apply(proof, hf_bytes(record, len)), HF_OK);
}

/* All that can happen to locks in full, and to sessions. */
static void prove_locks(struct proof *proof)
{
    prove(proof, engine_do("SESSION OPEN TTL 500"));
    unsigned long long id = hold_seq(engine);
    prove(proof, engine_do("SESSION KEEP %llu", id));
    prove(proof,
          engine_do("LOCKSET OWNER ann NAME x NAME y SHARED SESSION %llu", id));
    prove(proof, engine_do("SESSION CLOSE %llu", id));
    prove(proof, engine_do("SESSION OPEN TTL 1"));
    prove(proof, engine_do("LOCK x OWNER ann SESSION %llu",
                           (unsigned long long)hold_seq(engine)));
    engine_now_us += 1 * MS;
    prove(proof, engine_tick());
    prove(proof, engine_do("LOCK x OWNER ann"));
    unsigned long long token = hold_seq(engine);
    prove(proof, engine_do("DOWNGRADE x %llu", token));
    prove(proof, engine_do("LOCK x OWNER bob SHARED"));
    prove(proof, engine_do("REVOKE x %llu GRACE 5000", token));
    prove(proof, engine_do("PROCLAIM x %llu VALUE v", token));
    prove(proof, engine_do("UNLOCK x %llu", token));
}

static void prove_bookings(struct proof *proof)
{
    prove(proof, engine_set("pear", 0));
    prove(proof, engine_do("STOCK EXPECT pear 3 AT %llu",
                           (unsigned long long)(engine_now_us / MS + 1)));
    prove(proof, engine_do("RESERVE x1 ITEM pear 1 PREORDER"));
    prove(proof, engine_do("RESERVE x2 ITEM pear 2 TTL 1 PREORDER"));
    prove(proof, engine_do("CANCEL x1"));
    engine_now_us += 2 * MS;
    prove(proof, engine_tick());
    prove(proof, engine_do("STOCK ARRIVE pear 2"));
    engine_now_us += 2 * MS;
    prove(proof, engine_tick());
    prove(proof, engine_delete("pear"));
}

/* Ann has the door twice when bob's wait is over, while carl's is over, too,
 * and was not swept: how long she has it from then on is not asked. */
TEST(a_proof_does_not_guess_a_time_while_more_is_over)
{
    struct proof_result result;
    struct proof *proof = proof_new(seed, &result);

    engine_start();
    prove(proof, engine_do("LOCK door OWNER zoe"));
    unsigned long long token = hold_seq(engine);
    prove(proof, engine_do("LOCK door OWNER ann TTL 2000 WAIT 5000"));
    prove(proof, engine_do("LOCK door OWNER bob WAIT 100"));
    prove(proof, engine_do("LOCK door OWNER ann TTL 3000 WAIT 5000"));
    for (unsigned i = 0; i < HOLD_STEP_MAX; i++)
        prove(proof, engine_do("LOCK other/%u OWNER eve TTL 100", i));
    prove(proof, engine_do("LOCK door OWNER carl WAIT 100"));
    prove(proof, engine_do("UNLOCK door %llu", token));
    engine_now_us += 100 * MS;
    prove(proof, engine_tick());
    CHECK(hold_is_behind(engine));
    prove(proof, engine_tick());
    engine_now_us += 3000 * MS;
    prove(proof, engine_tick());
    CHECK_EQ(result.events[EVENT_LOCK_EXPIRED], HOLD_STEP_MAX + 1);
    CHECK_EQ(proof_finish(proof, false), HF_OK);
    proof_free(proof);
}

/* What ended can begin again: the book has heard of every end. */
TEST(a_proof_knows_every_event)
{
    struct proof_result result;
    struct proof *proof = proof_new(seed, &result);

    engine_start();
    for (uint64_t turn = 0; turn < 2; turn++) {
        prove(proof, engine_lock("door", "ann", 1000, 0));
        prove(proof, engine_lock("door", "ann", 1000, 0));
        prove(proof, engine_unlock("door", hold_seq(engine) - 1));
        prove(proof, engine_renew("door", hold_seq(engine) - 2, 900));
        prove(proof, engine_fence("disk", 1));
        prove(proof, engine_fence_delete("disk"));
        prove_locks(proof);
        prove(proof, engine_do("CLASS SET vip GRACE 5000"));
        prove(proof, engine_do("CLASS SET old"));
        prove(proof, engine_do("CLASS DEL old"));
        prove(proof, engine_set("apple", 9));
        prove(proof, engine_do("STOCK LOW apple 8"));
        prove(proof, engine_do("STOCK ATTR apple colour red"));
        prove(proof, engine_do("STOCK LIMIT apple 0"));
        prove(proof, engine_do("RESERVE late%d ITEM apple 1 TTL 1 CLASS vip",
                               (int)turn));
        engine_now_us += MS;
        prove(proof, engine_do("CONFIRM late%d", (int)turn));
        prove(proof, engine_reserve("a", "apple 2", 1000));
        prove(proof, engine_do("CANCEL a ITEM apple 1"));
        prove(proof, engine_extend("a", 2000));
        prove(proof, engine_cancel("a", ""));
        prove(proof, engine_reserve("b", "apple 1", 1000));
        prove(proof, engine_confirm("b"));
        prove(proof, engine_reserve("c", "apple 1", 1000));
        engine_now_us += 1000 * MS;
        prove(proof, engine_tick());
        prove(proof,
              engine_do("WAITLIST JOIN apple 1 OWNER ann ID e%d", (int)turn));
        prove(proof, engine_do("CANCEL e%d", (int)turn));
        if (turn == 0)
            prove_bookings(proof);
        prove(proof, engine_delete("apple"));
        prove(proof, engine_lock("door", "bob", 1000, 0));
        prove(proof, engine_set("apple", 9));
        prove(proof, engine_reserve("d", "apple 1", 1000));
        if (turn == 0)
            prove(proof, engine_flush());
    }
    CHECK_EQ(proof_finish(proof, false), HF_OK);
    for (unsigned i = 0; i < HOLD_EVENT_COUNT; i++) {
        if (result.events[i] == 0)
            test_fail(__FILE__, __LINE__, "no %s",
                      hold_event_name((enum hold_event_kind)i));
    }
    proof_free(proof);
}

TEST(the_history_of_one_is_printed_with_its_numbers)
{
    char *argv[] = {"verify", data_dir, "--sku", "apple", NULL};

    write_journal(false);
    CHECK_EQ(run_words(verify_main, 4, argv, text, sizeof text), 0);
    CHECK(strncmp(text, "1 stock_changed at_ms 1000000 apple: total 100, ",
                  48) == 0);
    CHECK(strstr(text, " reserved at_ms ") != NULL);
    CHECK(strstr(text, "above 0 are proved by a replay") != NULL);
    CHECK(strstr(text, "door") == NULL);
    argv[2] = "--reservation";
    argv[3] = "r";
    CHECK_EQ(run_words(verify_main, 4, argv, text, sizeof text), 0);
    CHECK(strstr(text, " confirmed at_ms ") != NULL);
    CHECK(strstr(text, "stock_changed") == NULL);
    char *both[] = {"verify",        data_dir, "--sku", "a",
                    "--reservation", "r",      NULL};
    CHECK_EQ(run_words(verify_main, 6, both, text, sizeof text), 64);
}
