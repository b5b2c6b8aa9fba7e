/* push.c - tests of which grants a connection is told of. */
#include "support/batch.h"

static void settle(void)
{
    for (int i = 0; i < 4 || server.flight_count > 0; i++) {
        commit_poll(&server);
        server_turn(&server);
    }
}

/* Holds `door`, and speaks the protocol that has pushes. */
static void begin(struct conn *conn)
{
    start();
    listening(conn);
    conn->reply.codec = &resp3_codec;
    lock_at_once(conn, "");
    settle();
    CHECK(was_told(conn, "%"));
    CHECK_EQ(hf_index_count(&server.pushes.grants), 1);
    server.conns = conn;
}

static void end(struct conn *conn)
{
    server.conns = NULL;
    push_leave(&server, conn);
    CHECK_EQ(hf_index_count(&server.pushes.grants), 0);
    hf_buf_destroy(&conn->out);
    stop();
}

TEST(a_holder_is_not_told_of_what_it_does_itself)
{
    struct conn conn;

    begin(&conn);
    uint64_t token = hold_seq(server.engine);
    lock_at_once(&conn, "");
    settle();
    CHECK(was_told(&conn, "%"));
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(hf_index_count(&server.pushes.grants), 1);
        command = (struct hold_command){
            .kind = HOLD_UNLOCK, .name = hf_bytes_text("door"), .token = token};
        submit(&conn);
        settle();
        CHECK(was_told(&conn, "%"));
    }
    CHECK_EQ(hf_index_count(&server.pushes.grants), 0);
    end(&conn);
}

TEST(nothing_is_known_after_all_was_flushed)
{
    struct conn conn;

    begin(&conn);
    command = (struct hold_command){.kind = HOLD_FLUSH};
    submit(&conn);
    settle();
    CHECK_EQ(hf_index_count(&server.pushes.grants), 0);
    CHECK_EQ(conn.pushed, 0);
    end(&conn);
}
