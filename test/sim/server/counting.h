/* counting.h - do the server's figures say what it did?
 *
 * Between the server's memory and the wires is counted what it has read and
 * what it has told since its start. INFO and METRICS show the same from the
 * inside:
 *
 *   told <= commands counted <= read     errors told <= errors counted
 *
 * One answer of the engine to one who waits is one wait that ended, or none if
 * that was counted before.
 *
 * They are not equal, because a client may be gone before it is answered, and a
 * request may be read and left for later.
 */
#ifndef SIM_SERVER_COUNTING_H
#define SIM_SERVER_COUNTING_H

#include "base/bytes.h"

struct server;

/* A server starts: it has counted nothing. */
void counting_start(void);
/* It has read a request; or something that is not counted as requests. */
void counting_read(bool whole);
/* It has told a reply. */
void counting_told(struct hf_bytes reply);
/* What is wrong in its figures; NULL: nothing. */
const char *counting_check(const struct server *server);

#endif
