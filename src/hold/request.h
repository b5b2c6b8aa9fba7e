/* request.h - REQ: what is remembered of requests, and how they are answered.
 */
#ifndef HOLD_REQUEST_H
#define HOLD_REQUEST_H

#include "hold/state.h"

subject_loaded_fn request_loaded;
bool request_is_answered(const void *record);
subject_link_fn request_link;
/* The request that is remembered under this id, or 0. */
uint32_t request_find(const struct hold_engine *e, struct hf_bytes id);
/* True if the request is answered: with its first answer, or a conflict. */
bool request_repeat(struct hold_engine *e, const struct hold_command *c,
                    struct hf_bytes record);
/* True, and OVERLOADED, if there is no room for a request that is not
 * remembered, and none to be made by dropping refusals. */
bool request_refuse(struct hold_engine *e, struct hf_bytes id);
/* Makes room for it. False, and OVERLOADED, if that cannot be. */
bool request_admit(struct hold_engine *e, struct hf_bytes id);
/* True if the first is still waiting: the wait goes on under a new ticket. */
bool request_resume(struct hold_engine *e, const struct hold_command *c);
void request_store(struct hold_engine *e, const struct hold_command *c,
                   struct hf_bytes record);
/* Keeps the answer to a request whose wait is over. */
void request_answer(struct hold_engine *e, uint32_t number, enum hold_code code,
                    struct hf_bytes body);
/* TIMEOUT was told: it becomes the answer, or ends the wait. */
void request_time_out(struct hold_engine *e, struct hf_bytes id);
/* Forgets a request whose wait was given up. */
void request_drop(struct hold_engine *e, uint32_t number);
/* The request that was answered first of all, or 0. */
uint32_t request_oldest(const struct hold_engine *e);
void request_forget(struct hold_engine *e, uint32_t number);

#endif
