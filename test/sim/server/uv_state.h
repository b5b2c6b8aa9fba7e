/* uv_state.h - what the files of the tests' libuv share. */
#ifndef SIM_SERVER_UV_STATE_H
#define SIM_SERVER_UV_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct wire;

/* Bits in handle->flags. */
#define ACTIVE  1u
#define CLOSING 2u
#define READING 4u
#define LISTENS 8u
#define BLOCKED 16u /* a connection was announced and not accepted */

static inline bool loop_has(const void *handle, unsigned flag)
{
    return (((const uv_handle_t *)handle)->flags & flag) != 0;
}

static inline void loop_set(void *handle, unsigned flag, bool on)
{
    uv_handle_t *h = handle;

    h->flags = on ? h->flags | flag : h->flags & ~flag;
}

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
