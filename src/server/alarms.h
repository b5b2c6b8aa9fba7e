/* alarms.h - what an operator should look at: rules over the server's figures,
 * told in the log when they begin to hold and when they do not any more.
 */
#ifndef SERVER_ALARMS_H
#define SERVER_ALARMS_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/alert.h"

struct server;

/* More rules than there are. */
#define ALARMS_MAX 32u

/* HF_NOMEM. After metrics_open(). */
enum hf_status alarms_open(struct server *server);
void alarms_close(struct server *server);
/* Looks at all rules; about once a second. */
void alarms_tend(struct server *server);
/* The rule's name in figures; NULL: there is none of that number. */
const char *alarms_rule(size_t index);
/* How many hold now. */
uint32_t alarms_firing(const struct server *server);

#endif
