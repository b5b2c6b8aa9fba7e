/* answers.c - every request gets its answer, whole and in its turn.
 * tests: also under sanitizers
 */
#include <signal.h>
#include <sys/socket.h>

#include "server/server.h"
#include "support/scene.h"
#include "support/test.h"

/* More than may be owed to one client, in one write. */
TEST(more_answers_than_a_client_may_be_owed_all_come)
{
    struct test_scene *scene = test_scene_open();
    struct test_wire wire;

    test_server_connect(&scene->server, &wire);
    for (int i = 0; i < 600; i++)
        test_wire_add(&wire, "COMMAND DOCS");
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < 600; i++)
        CHECK(TEST_ANSWER(&wire).data[0] == '*');
    for (int i = 0; i < 600; i++)
        test_wire_add(&wire, "COMMAND DOCS");
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    CHECK_EQ(shutdown(wire.fd, SHUT_WR), 0);
    for (int i = 0; i < 600; i++)
        CHECK(TEST_ANSWER(&wire).data[0] == '*');
    CHECK(test_wire_ends(&wire));
    test_wire_close(&wire);
    test_scene_close(scene);
}

/* The server reads it at once, and finds nothing when it reads on. */
TEST(as_much_as_is_read_at_once_is_all_that_came)
{
    enum { COUNT = SERVER_READ_BYTES / 14 };
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    struct test_scene *scene = test_scene_open();
    struct test_wire wire;

    test_server_connect(&scene->server, &wire);
    CHECK(test_server_signal(&scene->server, SIGSTOP));
    for (int i = 0; i < COUNT; i++)
        test_wire_add_raw(&wire, ping, 14);
    test_wire_add_raw(&wire, "\r\n", 2); /* is passed over */
    CHECK_EQ(wire.out.len, SERVER_READ_BYTES);
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    CHECK(test_server_signal(&scene->server, SIGCONT));
    for (int i = 0; i < COUNT; i++)
        CHECK(test_is(TEST_ANSWER(&wire), "+PONG\r\n"));
    TEST_SEND(&wire, "PING");
    CHECK(test_is(TEST_ANSWER(&wire), "+PONG\r\n"));
    test_wire_close(&wire);
    test_scene_close(scene);
}

TEST(an_error_of_framing_comes_after_the_answers_before_it)
{
    struct test_scene *scene = test_scene_open();
    struct test_wire wire;

    test_server_connect(&scene->server, &wire);
    test_wire_add(&wire, "STOCK SET apple 7");
    test_wire_add_raw(&wire, "*x\r\n", 4);
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    CHECK_EQ(test_number(TEST_ANSWER(&wire), "total"), 7);
    CHECK(test_is_error(TEST_ANSWER(&wire), "ERR"));
    CHECK(test_wire_ends(&wire));
    test_wire_close(&wire);
    CHECK_DONE(test_ask(&scene->good, "STOCK DEL apple"));
    test_scene_close(scene);
}

/* The next request is read before one is run: whatever it is, and wherever the
 * input ends, each is answered in its place, once. */
TEST(requests_of_all_forms_are_answered_in_order_however_they_are_cut)
{
    static const char *const forms[] = {
        "*2\r\n$4\r\nECHO\r\n$1\r\na\r\n",
        "\r\n",
        "ECHO b\r\n",
        "*0\r\n",
        "*6\r\n$5\r\nLIMIT\r\n$1\r\nk\r\n$4\r\nRATE\r\n$1\r\n9\r\n"
        "$3\r\nPER\r\n$4\r\n1000\r\n",
        "*2\r\n$4\r\nECHO\r\n$1\r\nc\r\n",
        "*4\r\n$5\r\nLIMIT\r\n$1\r\nk\r\n$6\r\nPOLICY\r\n$4\r\nnone\r\n",
        "*3\r\n$5\r\nLIMIT\r\n$1\r\nk\r\n$4\r\nRATE\r\n",
        "*1\r\n$5\r\nLIMIT\r\n",
        "*2\r\n$4\r\nECHO\r\n$1\r\nd\r\n",
    };
    struct test_scene *scene = test_scene_open();
    char all[1024];
    size_t len = 0;
    struct test_wire wire;

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        len += (size_t)snprintf(all + len, sizeof all - len, "%s", forms[i]);
    for (size_t cut = 0; cut <= len; cut += cut < 400 ? 7 : 1) {
        test_server_connect(&scene->server, &wire);
        test_wire_add_raw(&wire, all, cut);
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        CHECK_REPLY(test_ask(&scene->good, "PING"), "+PONG"); /* it was read */
        test_wire_add_raw(&wire, all + cut, len - cut);
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        CHECK_REPLY(TEST_ANSWER(&wire), "$1\r\na");
        CHECK_REPLY(TEST_ANSWER(&wire), "$1\r\nb");
        CHECK(test_number(TEST_ANSWER(&wire), "limit") == 9);
        CHECK_REPLY(TEST_ANSWER(&wire), "$1\r\nc");
        CHECK(test_is_error(TEST_ANSWER(&wire), "NOTFOUND"));
        CHECK(test_is_error(TEST_ANSWER(&wire), "BADARG"));
        CHECK(test_is_error(TEST_ANSWER(&wire), "BADARG"));
        CHECK_REPLY(TEST_ANSWER(&wire), "$1\r\nd");
        test_wire_close(&wire);
    }
    test_scene_close(scene);
}

TEST(lists_behind_a_write_are_answered_after_it)
{
    struct test_scene *scene = test_scene_open();
    struct test_wire wire;

    test_server_connect(&scene->server, &wire);
    for (int i = 0; i < 50; i++) {
        test_wire_add(&wire, "STOCK SET pear %d", i);
        test_wire_add(&wire, "STOCK GET pear");
        test_wire_add(&wire, "LOCKINFO nobody");
        test_wire_add(&wire, "STOCK LIST pear");
    }
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(test_number(TEST_ANSWER(&wire), "total"), i);
        CHECK_EQ(test_number(TEST_ANSWER(&wire), "total"), i);
        CHECK(test_is_error(TEST_ANSWER(&wire), "NOTFOUND"));
        struct hf_bytes list = test_part(TEST_ANSWER(&wire), "products");
        CHECK_EQ(test_length(list), 1);
        CHECK_EQ(test_number(test_element(list, 0), "total"), i);
    }
    CHECK_DONE(test_ask(&wire, "STOCK DEL pear"));
    test_wire_close(&wire);
    test_scene_close(scene);
}

/* What a browser sends when a page makes it post to this port. */
TEST(lines_of_http_are_not_taken_for_commands)
{
    static const char post[] = "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"
                               "FLUSHALL\r\n";
    static const char get[] = "GET / HTTP/1.1\r\nHost: localhost\r\n"
                              "\r\nFLUSHALL\r\n";
    const char *const texts[] = {post, get};
    struct test_scene *scene = test_scene_open();
    struct test_wire wire;

    CHECK_DONE(test_ask(&scene->good, "STOCK SET plum 3"));
    for (int i = 0; i < 2; i++) {
        test_server_connect(&scene->server, &wire);
        test_wire_add_raw(&wire, texts[i], strlen(texts[i]));
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        CHECK(test_wire_ends(&wire));
        test_wire_close(&wire);
    }
    CHECK_EQ(test_number(test_ask(&scene->good, "STOCK GET plum"), "total"), 3);
    CHECK_DONE(test_ask(&scene->good, "STOCK DEL plum"));
    test_scene_close(scene);
}

TEST(names_with_a_nul_do_not_cut_the_sentence)
{
    struct test_scene *scene = test_scene_open();
    struct hf_bytes args[] = {hf_bytes_text("STOCK"), hf_bytes_text("GET"),
                              hf_bytes("a\0b", 3)};

    test_wire_add_args(&scene->good, 3, args);
    CHECK_EQ(test_wire_send(&scene->good), HF_OK);
    CHECK(test_is(TEST_ANSWER(&scene->good), "-NOTFOUND no product 'a?b'\r\n"));
    test_scene_close(scene);
}

TEST(a_stop_tells_those_who_wait)
{
    struct test_scene *scene = test_scene_open();
    struct test_wire wire;

    CHECK_DONE(test_ask(&scene->good, "LOCK gate OWNER a TTL 60000"));
    test_server_connect(&scene->server, &wire);
    TEST_SEND(&wire, "LOCK gate OWNER b WAIT 60000");
    test_scene_await(scene, "gate", 1);
    CHECK(test_server_signal(&scene->server, SIGTERM));
    CHECK(test_is_error(TEST_ANSWER(&wire), "TIMEOUT"));
    test_wire_close(&wire);
    CHECK_EQ(test_server_end(&scene->server), 0);
}
