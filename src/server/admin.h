/* admin.h - commands about the connection and the server itself.
 *
 * Each puts its whole reply into the connection's reply. The number of
 * arguments has been checked against the table.
 */
#ifndef SERVER_ADMIN_H
#define SERVER_ADMIN_H

#include "server/table.h"

command_fn admin_ping, admin_echo, admin_hello, admin_select, admin_client,
    admin_quit, admin_config_get, admin_config_set, admin_command, admin_help,
    admin_info, admin_metrics;

/* A change of bounds was applied: the settings are as the engine has them. */
void admin_bounds_changed(struct server *server, const struct conn *conn);

#endif
