/* postgres.c - a real PostgreSQL as a child of the test. */
#include "support/postgres.h"

#include <dirent.h>
#include <glob.h>
#include <libpq-fe.h>
#include <limits.h>
#include <signal.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holdfast/clock.h"
#include "support/daemon.h"
#include "support/test.h"

#define POSTGRES_MAX      8
#define ARGS_MAX          64
#define CHILDREN_MAX      512
#define START_TIMES       5 /* a port that looked free may be taken meanwhile */
#define CONNECTIONS_USUAL 50

static struct test_postgres servers[POSTGRES_MAX];
static char cluster[PATH_MAX]; /* what every server starts with */

/* The newest version that is installed. */
static void find_program(const char *name, char *out, size_t cap)
{
    glob_t found;
    unsigned long newest = 0;

    out[0] = '\0';
    if (glob("/usr/lib/postgresql/*/bin", 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            unsigned long version = strtoul(
                found.gl_pathv[i] + strlen("/usr/lib/postgresql/"), NULL, 10);
            if (version >= newest) {
                newest = version;
                snprintf(out, cap, "%s/%s", found.gl_pathv[i], name);
            }
        }
    }
    globfree(&found);
    if (out[0] == '\0')
        test_fail(__FILE__, __LINE__, "PostgreSQL is not installed");
}

static bool now_is_past(uint64_t end_ns)
{
    return hf_clock_now_ns(hf_clock_system()) >= end_ns;
}

/* A folder that belongs to whoever runs the server. */
static void make_folder(const char *path)
{
    struct test_daemon_user user = test_daemon_user("postgres");

    CHECK_EQ(mkdir(path, 0700), 0);
    CHECK(!user.other || chown(path, user.uid, user.gid) == 0);
}

static void make_cluster(void)
{
    char program[PATH_MAX];
    char path[PATH_MAX];
    char log[PATH_MAX];
    const char *args[] = {program,
                          "-D",
                          path,
                          "-U",
                          "postgres",
                          "-A",
                          "trust",
                          "-E",
                          "UTF8",
                          "--locale=C",
                          "--no-sync",
                          "--no-instructions",
                          "--wal-segsize=1",
                          NULL};

    if (cluster[0] != '\0')
        return;
    find_program("initdb", program, sizeof program);
    CHECK(snprintf(path, sizeof path, "%s/cluster", test_daemon_folder()) <
          (int)sizeof path);
    CHECK(snprintf(log, sizeof log, "%s/initdb.log", test_daemon_folder()) <
          (int)sizeof log);
    make_folder(path);
    if (test_daemon_run(args, log, test_daemon_user("postgres")) != 0)
        test_daemon_fail("initdb", log);
    memcpy(cluster, path, sizeof path);
}

static void remove_data(const struct test_postgres *postgres)
{
    const char *args[] = {"/bin/rm", "-rf", postgres->dir, NULL};

    (void)test_daemon_run(args, "/dev/null",
                          (struct test_daemon_user){.other = false});
}

static void spawn(struct test_postgres *postgres)
{
    char program[PATH_MAX];
    char port[16];
    char connections[32];
    const char *args[ARGS_MAX] = {program,
                                  "-D",
                                  postgres->dir,
                                  "-p",
                                  port,
                                  "-c",
                                  connections,
                                  "-c",
                                  "listen_addresses=127.0.0.1",
                                  "-c",
                                  "unix_socket_directories=",
                                  "-c",
                                  "shared_buffers=16MB",
                                  "-c",
                                  "dynamic_shared_memory_type=mmap",
                                  "-c",
                                  "autovacuum=off",
                                  "-c",
                                  "max_wal_senders=0",
                                  "-c",
                                  "wal_level=minimal"};
    int count = 0;

    while (args[count] != NULL)
        count++;
    if (!postgres->opts.durable) {
        args[count++] = "-c";
        args[count++] = "fsync=off";
    }
    for (int i = 0;
         postgres->opts.settings != NULL && postgres->opts.settings[i] != NULL;
         i++) {
        CHECK(count < ARGS_MAX - 2);
        args[count++] = "-c";
        args[count++] = postgres->opts.settings[i];
    }
    find_program("postgres", program, sizeof program);
    snprintf(port, sizeof port, "%u", postgres->port);
    snprintf(connections, sizeof connections, "max_connections=%u",
             postgres->opts.connections);
    postgres->pid =
        test_daemon_spawn(args, postgres->log, test_daemon_user("postgres"));
}

/* False if it ended instead of accepting. */
static bool accepts(struct test_postgres *postgres)
{
    uint64_t end_ns = hf_clock_after_ms(NULL, DAEMON_DEADLINE_MS);

    while (PQping(postgres->conninfo) != PQPING_OK) {
        if (!test_daemon_alive(postgres->pid)) {
            postgres->pid = 0;
            return false;
        }
        if (now_is_past(end_ns))
            test_daemon_fail("PostgreSQL does not answer", postgres->log);
        test_daemon_pause();
    }
    return true;
}

/* The processes that the server has started. */
static int children_of(pid_t parent, pid_t *out)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    int count = 0;

    CHECK(proc != NULL);
    while ((entry = readdir(proc)) != NULL && count < CHILDREN_MAX) {
        char path[300];
        char text[512];
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = entry->d_name[0] > '0' && entry->d_name[0] <= '9'
                         ? fopen(path, "re")
                         : NULL;
        if (file == NULL)
            continue;
        size_t len = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[len] = '\0';
        /* pid (name) state parent: the name may hold anything */
        char *end = strrchr(text, ')');
        if (end != NULL && strlen(end) > 4 &&
            strtol(end + 4, NULL, 10) == (long)parent)
            out[count++] = (pid_t)strtol(text, NULL, 10);
    }
    closedir(proc);
    return count;
}

/* The small segment by which a server sees that another has its data: it
 * outlives a kill. Its number is in line 7 of postmaster.pid. */
static void forget_memory(const struct test_postgres *postgres)
{
    char path[sizeof postgres->dir + 32];
    char line[256];
    long id = -1;

    snprintf(path, sizeof path, "%s/postmaster.pid", postgres->dir);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    for (int i = 0; fgets(line, sizeof line, file) != NULL; i++) {
        char *rest = line;
        if (i == 6 && strtoul(line, &rest, 10) != 0)
            id = strtol(rest, NULL, 10);
    }
    fclose(file);
    if (id >= 0)
        (void)shmctl((int)id, IPC_RMID, NULL);
}

static void end_all(void)
{
    for (int i = 0; i < POSTGRES_MAX; i++) {
        if (servers[i].pid > 0)
            test_daemon_end(servers[i].pid, SIGQUIT);
        if (servers[i].used)
            forget_memory(&servers[i]);
        servers[i].pid = 0;
    }
}

struct test_postgres *test_postgres_start(const struct test_postgres_opts *opts)
{
    struct test_postgres *postgres = servers;

    while (postgres < servers + POSTGRES_MAX && postgres->used)
        postgres++;
    CHECK(postgres < servers + POSTGRES_MAX);
    test_daemon_at_exit(end_all);
    make_cluster();
    *postgres = (struct test_postgres){.used = true};
    if (opts != NULL)
        postgres->opts = *opts;
    if (postgres->opts.connections == 0)
        postgres->opts.connections = CONNECTIONS_USUAL;
    snprintf(postgres->dir, sizeof postgres->dir, "%s/postgres-%d",
             test_daemon_folder(), (int)(postgres - servers));
    snprintf(postgres->log, sizeof postgres->log, "%s.log", postgres->dir);
    remove_data(postgres);
    const char *args[] = {"/bin/cp", "-a",          "--reflink=auto",
                          cluster,   postgres->dir, NULL};
    if (test_daemon_run(args, postgres->log,
                        (struct test_daemon_user){.other = false}) != 0)
        test_daemon_fail("copying the cluster", postgres->log);
    for (int tries = 0; tries < START_TIMES; tries++) {
        postgres->port = test_daemon_port();
        snprintf(postgres->conninfo, sizeof postgres->conninfo,
                 "host=127.0.0.1 port=%u user=postgres dbname=postgres "
                 "connect_timeout=20 sslmode=disable gssencmode=disable",
                 postgres->port);
        spawn(postgres);
        if (accepts(postgres))
            return postgres;
    }
    test_daemon_fail("PostgreSQL did not start", postgres->log);
}

void test_postgres_stop(struct test_postgres *postgres)
{
    test_daemon_end(postgres->pid, SIGINT);
    postgres->pid = 0;
}

void test_postgres_kill(struct test_postgres *postgres)
{
    uint64_t end_ns = hf_clock_after_ms(NULL, DAEMON_DEADLINE_MS);
    pid_t children[CHILDREN_MAX];

    if (postgres->pid <= 0)
        return;
    /* stopped first, so that no child is born while they are counted */
    kill(postgres->pid, SIGSTOP);
    int count = children_of(postgres->pid, children);
    for (int i = 0; i < count; i++)
        kill(children[i], SIGKILL);
    test_daemon_end(postgres->pid, SIGKILL);
    postgres->pid = 0;
    /* a child that is not quite gone would keep the data from the next */
    for (int i = 0; i < count; i++) {
        while (kill(children[i], 0) == 0 && !now_is_past(end_ns)) {
            char path[64];
            char line[64] = "";
            snprintf(path, sizeof path, "/proc/%d/stat", (int)children[i]);
            FILE *file = fopen(path, "re");
            if (file == NULL)
                break;
            size_t len = fread(line, 1, sizeof line - 1, file);
            fclose(file);
            line[len] = '\0';
            const char *end = strrchr(line, ')');
            if (end == NULL || end[2] == 'Z') /* nobody may reap orphans here */
                break;
            test_daemon_pause();
        }
    }
}

void test_postgres_relaunch(struct test_postgres *postgres)
{
    CHECK_EQ(postgres->pid, 0);
    spawn(postgres);
}

void test_postgres_await(struct test_postgres *postgres)
{
    if (!accepts(postgres))
        test_daemon_fail("PostgreSQL did not come back", postgres->log);
}

void test_postgres_restart(struct test_postgres *postgres)
{
    test_postgres_relaunch(postgres);
    test_postgres_await(postgres);
}

void test_postgres_end(struct test_postgres *postgres)
{
    if (postgres == NULL)
        return;
    if (postgres->pid > 0)
        test_daemon_end(postgres->pid, SIGQUIT);
    postgres->pid = 0;
    forget_memory(postgres);
    remove_data(postgres);
    postgres->used = false;
}
