/* uv_state.h - what the two files of the tests' libuv share. */
#ifndef SIM_SERVER_UV_STATE_H
#define SIM_SERVER_UV_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct wire;

void loop_init_handle(uv_loop_t *loop, void *handle, uv_handle_type type,
                      size_t size);
/* The wire of a TCP handle; NULL: none yet. */
struct wire *loop_wire(const void *handle);
void loop_listens(void *handle);
void loop_accepted(void *listener);
void loop_reads(void *handle, bool on);
/* The server hears that the wire was reset; once. */
void loop_tell_reset(struct wire *wire);

#endif
