/* remote.c - what a client from another machine may not do. */
#include "server/table.h"
#include "support/batch.h"

static struct call call;

static bool run(struct conn *conn, const char *text)
{
    call.request.count = 0;
    for (const char *at = text; *at != '\0';) {
        size_t len = strcspn(at, " ");
        call.request.args[call.request.count++] = hf_bytes(at, len);
        at += len + (at[len] == ' ');
    }
    table_look_up(&call);
    CHECK(call.command != NULL);
    answer_read_begin(&server);
    return table_run(&server, conn, &call);
}

/* Those that docs/commands.md says so of, and no others. */
static const struct {
    const char *name;
    const char *text;
} admin[] = {
    {"FENCE DEL", "FENCE DEL db"},
    {"REVOKE", "REVOKE door 1"},
    {"FLUSHALL", "FLUSHALL"},
    {"CONFIG SET", "CONFIG SET locks-max 5000"},
};
#define ADMIN_COUNT (sizeof admin / sizeof admin[0])

TEST(a_client_from_another_machine_is_refused_what_changes_the_server)
{
    start();
    table_init();
    struct hold_counts before = counts();
    for (size_t i = 0; i < ADMIN_COUNT; i++) {
        struct conn conn;
        listening(&conn);
        CHECK(run(&conn, admin[i].text));
        CHECK(was_told(&conn, "-NOPERM allowed only from the same machine"));
        CHECK(commit_is_idle(&server));
        listening(&conn);
        conn.local = true;
        CHECK(run(&conn, admin[i].text));
        CHECK(!was_told(&conn, "-NOPERM"));
        conn.closing = true; /* whatever becomes of it */
        for (int n = 0; n < 4 || server.flight_count > 0; n++) {
            commit_poll(&server);
            server_turn(&server);
        }
        hf_buf_destroy(&conn.out);
    }
    CHECK_EQ(counts().locks, before.locks);
    stop();
}

TEST(the_table_has_no_other_commands_of_that_kind)
{
    size_t found = 0;

    table_init();
    for (size_t i = 0; i < table_count(); i++) {
        const struct command *row = table_at(i);
        bool listed = false;
        for (size_t j = 0; j < ADMIN_COUNT; j++)
            listed = listed || strcmp(admin[j].name, row->name) == 0;
        CHECK_EQ((row->flags & COMMAND_ADMIN) != 0, listed);
        found += listed;
    }
    CHECK_EQ(found, ADMIN_COUNT);
}
