/* admin.h - commands about the connection and the server itself.
 *
 * Each writes its whole reply to the connection's output. The number of
 * arguments has been checked against the table.
 */
#ifndef SERVER_ADMIN_H
#define SERVER_ADMIN_H

struct conn;
struct resp_request;
struct server;

void admin_ping(struct server *server, struct conn *conn,
                struct resp_request *request);
void admin_echo(struct server *server, struct conn *conn,
                struct resp_request *request);
void admin_hello(struct server *server, struct conn *conn,
                 struct resp_request *request);
void admin_select(struct server *server, struct conn *conn,
                  struct resp_request *request);
void admin_client(struct server *server, struct conn *conn,
                  struct resp_request *request);
void admin_quit(struct server *server, struct conn *conn,
                struct resp_request *request);
void admin_config_get(struct server *server, struct conn *conn,
                      struct resp_request *request);
void admin_config_set(struct server *server, struct conn *conn,
                      struct resp_request *request);
void admin_command(struct server *server, struct conn *conn,
                   struct resp_request *request);
void admin_help(struct server *server, struct conn *conn,
                struct resp_request *request);
void admin_info(struct server *server, struct conn *conn,
                struct resp_request *request);
void admin_metrics(struct server *server, struct conn *conn,
                   struct resp_request *request);

/* A change of bounds was applied: the settings are as the engine has them. */
void admin_bounds_changed(struct server *server, const struct conn *conn);

#endif
