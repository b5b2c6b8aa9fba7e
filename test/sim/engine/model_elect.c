/* model_elect.c - elections in the model: exclusive locks with a value. */
#include "sim/engine/model_lock.h"

static void clear(struct model *model)
{
    (void)model; /* they are locks */
}

MODEL_PART("election", model_lock_command, clear);
