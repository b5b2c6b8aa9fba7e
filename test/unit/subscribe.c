/* subscribe.c - tests of what it costs to tell subscribers. */
#include "server/subscribe.h"

#include "support/batch.h"

static void ask(struct conn *conn, command_fn *run, struct hf_bytes first,
                struct hf_bytes second)
{
    struct hf_bytes words[] = {first, second};
    struct asked asked = {.server = &server,
                          .conn = conn,
                          .reply = &conn->reply,
                          .args = words,
                          .count = second.len > 0 ? 2 : 1};

    run(&asked);
}

/* A turn ends after so many steps, so that others have theirs: a long text to
 * many is more work than a short one. */
TEST(a_long_message_counts_by_its_bytes_for_each_who_gets_it)
{
    static char text[64000];
    struct hf_bytes name = hf_bytes_text("news");
    struct conn subscribers[10];
    struct conn sender;
    uint64_t steps[2];

    start();
    listening(&sender);
    for (int i = 0; i < 10; i++) {
        listening(&subscribers[i]);
        ask(&subscribers[i], subscribe_channels, name, hf_bytes("", 0));
    }
    for (int i = 0; i < 2; i++) {
        uint64_t before = server.turn_steps;
        ask(&sender, publish_text, name,
            hf_bytes(text, i == 0 ? 1 : sizeof text));
        steps[i] = server.turn_steps - before;
    }
    CHECK_EQ(server.subscriptions.delivered, 20);
    CHECK_EQ(steps[1] - steps[0], 10 * sizeof text / 64);
    CHECK_EQ(server.subscriptions.turn_steps, 2 * 10 * 16); /* of patterns */
    for (int i = 0; i < 10; i++) {
        subscribe_leave(&server, &subscribers[i]);
        hf_buf_destroy(&subscribers[i].out);
    }
    hf_buf_destroy(&sender.out);
    stop();
}
