/* The real PostgreSQL and Redis that tests stand on: they come up, are killed,
 * come back where they were, and leave nothing behind. */
#include <hiredis/hiredis.h>
#include <libpq-fe.h>

#include "support/postgres.h"
#include "support/redis.h"
#include "support/test.h"

static void ask(const struct test_postgres *postgres, const char *sql,
                const char *expected)
{
    PGconn *conn = PQconnectdb(postgres->conninfo);
    PGresult *result = PQexec(conn, sql);
    char found[64] = "";

    if (PQresultStatus(result) == PGRES_TUPLES_OK)
        snprintf(found, sizeof found, "%s", PQgetvalue(result, 0, 0));
    else if (PQresultStatus(result) != PGRES_COMMAND_OK)
        snprintf(found, sizeof found, "%s", PQerrorMessage(conn));
    PQclear(result);
    PQfinish(conn);
    CHECK_TEXT(found, strlen(found), expected);
}

TEST(postgres_keeps_its_data_and_its_port_over_stop_and_kill)
{
    struct test_postgres *postgres = test_postgres_start(NULL);
    uint16_t port = postgres->port;

    ask(postgres, "create table t as select 7 as n", "");
    test_postgres_stop(postgres);
    CHECK(PQping(postgres->conninfo) == PQPING_NO_RESPONSE);
    test_postgres_restart(postgres);
    ask(postgres, "select n from t", "7");
    ask(postgres, "update t set n = 8", "");
    test_postgres_kill(postgres);
    test_postgres_restart(postgres);
    CHECK_EQ(postgres->port, port);
    ask(postgres, "select n from t", "8");
    test_postgres_end(postgres);
}

TEST(two_servers_share_nothing)
{
    struct test_postgres_opts opts = {.connections = 10};
    struct test_postgres *one = test_postgres_start(&opts);
    struct test_postgres *two = test_postgres_start(NULL);

    ask(one, "create table t as select 1 as n", "");
    ask(two, "create table t as select 2 as n", "");
    ask(one, "select n from t", "1");
    ask(one, "show max_connections", "10");
    test_postgres_end(one);
    ask(two, "select n from t", "2");
    test_postgres_kill(two);
    test_postgres_end(two);
}

static void ping(const struct test_redis *redis)
{
    redisContext *context = redisConnect("127.0.0.1", redis->port);
    redisReply *reply = redisCommand(context, "DBSIZE");
    long long found = reply != NULL ? reply->integer : -1;

    freeReplyObject(reply);
    redisFree(context);
    CHECK_EQ(found, 0);
}

TEST(redis_comes_back_on_its_port)
{
    struct test_redis *redis = test_redis_start(NULL);
    uint16_t port = redis->port;

    ping(redis);
    test_redis_kill(redis);
    test_redis_restart(redis);
    ping(redis);
    test_redis_stop(redis);
    test_redis_restart(redis);
    CHECK_EQ(redis->port, port);
    test_redis_end(redis);
}
