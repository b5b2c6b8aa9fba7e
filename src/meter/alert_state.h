/* alert_state.h - what a set of rules is made of. */
#ifndef METER_ALERT_STATE_H
#define METER_ALERT_STATE_H

#include "holdfast/alert.h"
#include "meter/meter_state.h"
#include "meter/past.h"
#include "sync/listed.h"
#include "sync/mutex.h"

#define HF_ALERT_SLICES 10u

/* A rule. Evaluation owns what is marked (e); it is one thread at a time. */
struct hf_rule {
    struct hf_rule *next; /* (m) by id */
    uint64_t id;          /* (i) as all up to past */
    char *name;
    char *metric;
    char *labels;             /* as in the text */
    struct hf_alert alert;    /* texts of it are not kept */
    struct hf_past past;      /* (e) of rates and percentiles; empty at first */
    struct hf_spread *now;    /* (e) scratch of percentiles */
    struct hf_series *series; /* (e) NULL: not found yet */
    uint64_t since_ns;        /* (e) when the comparison began to hold */
    bool has_past;            /* (e) the first reading was taken */
    bool removed;             /* (m) */
    enum hf_alert_state state; /* (m) */
    double value;              /* (m) NAN: none */
};

struct hf_alerts {
    struct hf_meter *meter;         /* (i) */
    const struct hf_clock *clock;   /* (i) */
    struct hf_scheduler *scheduler; /* (m) NULL: none */
    uint64_t task;                  /* (m) of the scheduler */
    struct hf_mutex mutex;
    struct hf_rule *rules;        /* (m) the first */
    struct hf_rule *last;         /* (m) */
    uint64_t ids;                 /* (m) given out */
    uint64_t now_ns;              /* (m) of the latest evaluation */
    bool evaluating;              /* (m) */
    struct hf_alerts_stats stats; /* (m) counts only */
    struct hf_listed listed;
};

/* alert_rule.c */

enum hf_status hf_rule_new(const struct hf_alert *alert, struct hf_rule **out);
void hf_rule_free(struct hf_rule *rule);
/* The figure now; NAN if there is none. HF_NOMEM. */
enum hf_status hf_rule_look(struct hf_rule *rule, struct hf_meter *meter,
                            uint64_t now_ns, double *value);
/* Does the comparison hold? Never of NAN. */
bool hf_rule_holds(const struct hf_rule *rule, double value);

#endif
