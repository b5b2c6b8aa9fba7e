/* model_owners.h - the parts of the model about limits per owner and groups of
 * reservations. Included by model.h. */
#ifndef SIM_ENGINE_MODEL_OWNERS_H
#define SIM_ENGINE_MODEL_OWNERS_H

#include "sim/engine/model.h"

/* model_quota.c */
/* How many more units the owner may have. */
uint64_t model_left(const struct model *model, const struct model_product *p,
                    struct hf_bytes owner);
/* Limits that are none any more, and that nobody has anything of, are gone. */
void model_settle_limits(struct model *model);
/* Would the owner have too much of an item? */
bool model_is_over(struct model *model, const struct hold_command *c,
                   uint32_t i);
/* True if the command wants more than the limits leave, or has no owner, with
 * the refusal written. */
bool model_exceeds(struct model *model, const struct hold_command *c);
bool model_refuse_excess(struct model *model, const struct hold_command *c,
                         struct model_product *const *products,
                         const uint64_t *wanted, size_t count);
void model_write_excess(struct model *model, struct hf_buf *out,
                        const struct model_product *p, struct hf_bytes owner,
                        uint64_t wanted, uint32_t more);
void model_limit(struct model *model, struct model_product *product,
                 const struct hold_command *c);

/* model_bundle.c */
/* True, and refused, if the command's group has as many as it may have. */
bool model_group_is_full(struct model *model, const struct hold_command *c);
void model_end_group(struct model *model, const struct hold_command *c);
void model_show_group(struct model *model, const struct hold_command *c,
                      uint64_t now_us);
/* Of a reservation; empty if it has none, or is no member any more. */
struct hf_bytes model_group_of(const struct model_reservation *r);
/* It is confirmed, or cancelled. */
void model_finish(struct model *model, struct model_reservation *r,
                  bool confirm, struct hf_bytes reason);
/* Confirms one in its time of grace, whose units are there. */
void model_sell_late(struct model *model, struct model_reservation *r);

#endif
