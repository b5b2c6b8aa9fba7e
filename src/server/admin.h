/* admin.h - commands about the connection and the server itself. */
#ifndef SERVER_ADMIN_H
#define SERVER_ADMIN_H

#include "server/table.h"

/* What HELLO takes. */
struct admin_words {
    uint64_t version;
    struct hf_bytes name;
};
extern const struct shape admin_hello_shape;

command_fn admin_ping, admin_echo, admin_hello, admin_select, admin_client_id,
    admin_client_info, admin_client_getname, admin_client_setname,
    admin_client_setinfo, admin_quit, admin_config_get, admin_config_set,
    admin_command_count, admin_command_list, admin_command_docs,
    admin_command_info, admin_help, admin_info, admin_metrics;

/* A change of bounds was applied: the settings are as the engine has them. */
void admin_bounds_changed(struct server *server, const struct conn *conn);

#endif
