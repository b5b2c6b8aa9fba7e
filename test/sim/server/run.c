/* run.c - starts, hurts, restarts and judges the server. */
#include "sim/server/run.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "hold/image.h"
#include "server/server.h"
#include "sim/server/counting.h"
#include "sim/server/exec.h"
#include "sim/server/feeding.h"
#include "sim/server/loop.h"
#include "sim/server/past.h"
#include "sim/server/record.h"
#include "sim/server/sale.h"
#include "support/failing.h"
#include "support/history.h"

#define WATCH_NS       (20 * MS)
#define QUIET_NS       (240 * S)  /* all must be answered by then */
#define CHECK_TURNS    400u       /* of the loop, between two looks inside */
#define OPENS_MAX      50         /* tries to start with all faults gone */
#define START_NS       (120 * S)  /* no fault lasts so long */
#define FAILED_NS      (500 * MS) /* all are told of a failed journal by then */
#define ANSWER_US      UINT64_C(400000000)
#define WAIT_WITHIN_US UINT64_C(500000)
#define MADE_SLACK_US  UINT64_C(60000) /* a long turn */
#define LATE_READ_NS   (65 * S)
#define STOP_NS        (2500 * MS) /* most, when nobody is owed anything */

enum phase { PHASE_WORK, PHASE_QUIET, PHASE_READ, PHASE_LATE, PHASE_STOP };

static struct {
    const struct run_opts *opts;
    struct run_result *result;
    struct mix mix;
    struct server *server;
    enum phase phase;
    uint64_t phase_ns;
    bool up;    /* the loop runs */
    bool power; /* the next death takes what was not synced */
    uint64_t stop_ns;
    bool stop_asked;    /* of this run of the server */
    bool stop_full;     /* then requests may have been left where they were */
    bool dated;         /* somebody has set the date */
    bool ending;        /* a restart is planned because the journal failed */
    uint64_t failed_ns; /* when that was seen */
    bool lossy;         /* acknowledged things may have been lost */
    size_t fault_next;
    uint64_t memory_left; /* callbacks that get no memory */
    uint64_t memory_after;
    uint64_t run;
    uint64_t check_at;
    bool done[FAULTS_MAX];
} run;

static void fail(const char *rule, const char *format, ...)
{
    struct run_result *result = run.result;
    va_list args;

    if (result->failed)
        return;
    result->failed = true;
    snprintf(result->rule, sizeof result->rule, "%s", rule);
    va_start(args, format);
    vsnprintf(result->text, sizeof result->text, format, args);
    va_end(args);
    record_say("FAILED %s: %s", rule, result->text);
}

static void fail_if(const char *rule, const char *wrong)
{
    if (wrong != NULL)
        fail(rule, "%s", wrong);
}

/* ---- Faults. ---- */

static void ask_stop(void)
{
    if (!run.up || run.stop_asked || world_is_dead())
        return;
    run.stop_asked = true;
    run.stop_full = commit_is_full(run.server) || run.server->parked != NULL;
    run.stop_ns = world_now_ns();
    record_say("SIGTERM");
    loop_signal(SIGTERM);
    clients_excuse(true, true);
}

static void die(bool power)
{
    if (!run.up || world_is_dead())
        return;
    run.power = power;
    world_kill();
}

/* What was acknowledged without a sync may be gone: nothing is promised. */
static void lose(void)
{
    run.lossy = true;
    record_lossy();
    feeding_lose();
}

static void on_killed(void)
{
    disk_cut();
    remote_cut();
    net_kill();
    record_say(run.power ? "power fails" : "SIGKILL");
    if (run.power && run.mix.sync != JOURNAL_ALWAYS)
        lose();
    record_run_end(HISTORY_CRASH, run.server->failed);
    run.result->crashes++;
}

/* A second SIGTERM to the same run of the server. */
static void on_again(void *context, uint64_t number)
{
    (void)context;
    if (!run.up || number != run.run || world_is_dead())
        return;
    record_say("SIGTERM, again");
    run.power = false;
    loop_signal(SIGTERM);
}

static void on_later(void *context, uint64_t kind)
{
    const struct fault *fault = context;

    if (run.phase != PHASE_WORK)
        return;
    if (kind == FAULT_STALL_KILL) {
        die(fault->power);
        return;
    }
    ask_stop();
    if (fault->power) /* and somebody is impatient */
        world_after(fault->size_ns / 8, on_again, NULL, run.run);
}

static void fill_fault(const struct fault *fault)
{
    switch (fault->kind) {
    case FAULT_SIDE:
        disk_fail(fault->number % 2 ? EIO : ENOSPC, false);
        record_say("the next write that is no batch, or sync, fails");
        break;
    case FAULT_FULL:
        disk_fill(world_now_ns() + fault->size_ns);
        record_say("no room for %llu ms",
                   (unsigned long long)(fault->size_ns / MS));
        break;
    case FAULT_DATE: {
        int64_t by_us = (int64_t)(fault->size_ns / 1000);
        world_set_date(fault->number % 2 ? by_us : -by_us);
        record_mark(0, 0, HISTORY_DATE);
        run.dated = true;
        record_say("the date is set %s by %lld ms",
                   fault->number % 2 ? "forth" : "back",
                   (long long)(by_us / 1000));
        break;
    }
    case FAULT_MEMORY:
        run.memory_left = 1 + fault->number % 20;
        run.memory_after = fault->number / 20;
        clients_excuse(true, run.stop_asked);
        record_say("no memory for %llu callbacks, after %llu allocations each",
                   (unsigned long long)run.memory_left,
                   (unsigned long long)run.memory_after);
        break;
    case FAULT_SALE:
        sale_open();
        break;
    default:
        clients_pause(fault->size_ns);
        record_say("clients pause for %llu ms",
                   (unsigned long long)(fault->size_ns / MS));
        break;
    }
}

static void strike(const struct fault *fault)
{
    bool also =
        fault->kind == FAULT_STALL_KILL || fault->kind == FAULT_STALL_STOP;

    switch (fault->kind) {
    case FAULT_KILL:
        die(fault->power);
        break;
    case FAULT_KILL_DISK:
        if (!world_is_dead())
            disk_kill_in(fault->number);
        run.power = world_is_dead() ? run.power : fault->power;
        break;
    case FAULT_STOP:
        ask_stop();
        break;
    case FAULT_STALL:
    case FAULT_STALL_KILL:
    case FAULT_STALL_STOP:
        disk_stall(fault->size_ns);
        record_say("the next batch takes %llu ms",
                   (unsigned long long)(fault->size_ns / MS));
        if (also)
            world_after(fault->size_ns / 2 + fault->number * 10 * MS, on_later,
                        (void *)fault, fault->kind);
        break;
    case FAULT_WRITE:
        disk_fail(fault->number % 2 ? EIO : ENOSPC, true);
        record_say("the next batch fails");
        if (fault->number % 3 == 0) /* after it was tried for long */
            disk_stall(fault->size_ns);
        break;
    default:
        fill_fault(fault);
        break;
    }
}

static void on_fault(void *context, uint64_t number)
{
    (void)number;
    if (run.phase == PHASE_WORK)
        strike(context);
}

static void plan_faults(void)
{
    for (size_t i = 0; i < run.mix.fault_count; i++) {
        const struct fault *fault = &run.mix.faults[i];
        bool masked = run.opts->fault_masks != NULL && run.opts->fault_masks[i];
        if (run.done[i] || masked || fault->at > clients_sent())
            continue;
        run.done[i] = true;
        world_after(fault->after_ns, on_fault, (void *)fault, 0);
    }
}

/* ---- Phases. ---- */

static void enter_phase(enum phase phase)
{
    run.phase = phase;
    run.phase_ns = world_now_ns();
}

static void heal(void)
{
    record_say("quiet: no more faults");
    disk_heal();
    net_heal();
    clients_heal();
    run.memory_left = 0;
    run.mix.clients_max = 1000; /* as by CONFIG SET: the last reader gets in */
    if (run.up)
        run.server->config.clients_max = 1000;
}

static void next_phase(void)
{
    uint64_t spent_ns = world_now_ns() - run.phase_ns;

    switch (run.phase) {
    case PHASE_WORK:
        if (!clients_done() && spent_ns < 100000 * S)
            return;
        heal();
        enter_phase(PHASE_QUIET);
        break;
    case PHASE_QUIET:
        if (!clients_quiet() && spent_ns < QUIET_NS)
            return;
        if (!clients_quiet())
            fail("answered", "a client waits for ever");
        clients_read_all();
        enter_phase(PHASE_READ);
        break;
    case PHASE_READ:
    case PHASE_LATE:
        if (!clients_quiet() && spent_ns < QUIET_NS)
            return;
        if (run.phase == PHASE_READ && spent_ns < LATE_READ_NS)
            return;
        if (!clients_quiet())
            fail("answered", "the last reader waits for ever");
        if (run.phase == PHASE_READ) {
            clients_read_all();
            enter_phase(PHASE_LATE);
            break;
        }
        enter_phase(PHASE_STOP);
        ask_stop();
        break;
    case PHASE_STOP:
        if (spent_ns > QUIET_NS) {
            fail("stops", "the server does not stop");
            die(false);
        }
        break;
    }
}

static void on_restart(void *context, uint64_t kill)
{
    (void)context;
    run.ending = false;
    if (run.up && run.server->failed && !run.stop_asked && !world_is_dead() &&
        world_now_ns() > run.failed_ns + FAILED_NS)
        clients_failed(run.failed_ns);
    if (kill)
        die(false);
    else
        ask_stop();
}

static void on_watch(void *context, uint64_t number)
{
    (void)context;
    (void)number;
    if (run.phase == PHASE_WORK && !sale_is_calm())
        plan_faults();
    if (run.up && run.server->failed && !run.ending) {
        struct dice dice = dice_make(world_seed(), "failed", run.run, 0);
        run.ending = true;
        run.failed_ns = world_now_ns();
        uint64_t ns = dice_hit(&dice, 400) ? dice_between(&dice, 1 * S, 10 * S)
                                           : dice_scale(&dice, 1 * MS, 10 * S);
        world_after(ns, on_restart, NULL, dice_below(&dice, 2));
    }
    next_phase();
    world_after(WATCH_NS, on_watch, NULL, 0);
}

/* ---- The server. ---- */

/* Between two callbacks of the loop. */
static void on_between(void)
{
    char error[256];

    hf_memory_fail_never();
    if (run.memory_left > 0 && run.up) {
        run.memory_left--;
        hf_memory_fail_after(run.memory_after);
        return;
    }
    if (run.up && loop_turns() >= run.check_at) {
        run.check_at = loop_turns() + CHECK_TURNS;
        if (hold_check(run.server->engine, error) != HF_OK)
            fail("invariant", "%s", error);
        fail_if("figures", counting_check(run.server));
    }
}

static struct config make_config(void)
{
    struct config config = config_default();
    const struct mix *mix = &run.mix;

    config.dir = run.opts->dir;
    config.io = disk_io();
    if (mix->remote.flights > 0)
        config.open_log = remote_open;
    config.durability = mix->sync;
    config.segment_bytes = mix->segment_bytes;
    config.snapshot_bytes = mix->snapshot_bytes;
    config.clients_max = mix->clients_max;
    config.output_max_bytes = mix->output_max;
    config.idle_ms = mix->idle_ms;
    config.memory_max_bytes = mix->memory_max;
    config.limit_keys_max = 1000;
    config.limit_log_bytes = 1u << 20;
    mix_bounds(mix, &config.bounds);
    config.events_keep_bytes = mix->events_bytes;
    config.events_keep_ms = HOLD_TTL_MAX_MS;
    return config;
}

static bool start_server(void)
{
    struct config config = make_config();
    char error[JOURNAL_ERROR_MAX] = "";

    exec_begin(++run.run);
    counting_start();
    clients_excuse(run.memory_left > 0, false);
    run.stop_asked = run.ending = false;
    run.check_at = 0;
    record_mark(0, 0, HISTORY_START);
    run.result->starts++;
    run.up = true; /* may die from here on */
    enum hf_status status = server_open(run.server, &config, error);
    if (status == HF_OK && !world_is_dead())
        return true;
    run.up = false;
    if (!world_is_dead())
        record_say("does not start: %s", error);
    return false;
}

static void end_server(void)
{
    /* time was told that no record has, and is told again */
    if (run.server->failed && run.dated)
        lose();
    run.up = false;
    hf_memory_fail_never();
    bool clean = run.server->stopping && !run.server->failed &&
                 commit_is_idle(run.server);
    server_close(run.server);
    if (world_is_dead()) {
        while (world_fibers() > 0)
            world_step();
        disk_restart(run.power);
        world_revive();
    } else {
        record_run_end(HISTORY_STOP, run.server->failed);
        run.result->stops++;
        disk_restart(false);
        uint64_t kept = clean ? run.mix.events_bytes : 0;
        fail_if("feed", feeding_check(run.opts->dir, kept));
    }
    fail_if("past", past_wrong());
}

/* A stop waits for the disk and for those who are owed something. */
static void judge_stop(void)
{
    uint64_t owed_ns = net_owed_ns();
    uint64_t since_ns = owed_ns > run.stop_ns ? owed_ns : run.stop_ns;
    bool far = run.mix.remote.flights > 0;
    uint64_t done_ns = far ? remote_done_ns() : disk_done_ns();

    if (done_ns == UINT64_MAX)
        return; /* what was on its way then is judged elsewhere */
    if (done_ns > since_ns)
        since_ns = done_ns;
    for (const struct wire *wire = net_first(); wire; wire = wire->next) {
        if (wire->write != NULL)
            return;
    }
    if (world_now_ns() > since_ns + STOP_NS)
        fail("stops", "the stop took %llu ms, and nobody was owed anything",
             (unsigned long long)((world_now_ns() - run.stop_ns) / MS));
}

/* Runs it until it ends; false: it did not even start. */
static bool serve(void)
{
    bool started = start_server();

    if (started)
        server_run(run.server);
    if (started && !world_is_dead() && !run.server->failed) {
        if (!run.stop_full)
            clients_stopped(run.stop_ns);
        judge_stop();
    }
    end_server();
    return started;
}

static void serve_all(void)
{
    struct dice dice = dice_make(world_seed(), "restart", 0, 0);
    int failures = 0;
    uint64_t served_ns = world_now_ns();

    while (run.phase != PHASE_STOP && !run.result->failed) {
        bool healed = run.phase != PHASE_WORK;
        if (serve()) {
            failures = 0;
            served_ns = world_now_ns();
        } else if ((healed && ++failures > OPENS_MAX) ||
                   world_now_ns() > served_ns + START_NS) {
            fail("starts", "the server does not start any more");
        }
        world_run_until(world_now_ns() + dice_scale(&dice, 100 * US, 5 * S));
    }
}

/* ---- Judging. ---- */

/* May so much be gathered while the disk hangs that requests are left where
 * they are? A wait among them begins when they are taken up again. */
static bool may_fill(void)
{
    const struct mix *mix = &run.mix;

    for (size_t i = 0; i < mix->fault_count; i++) {
        if (mix->faults[i].kind == FAULT_SALE)
            return true;
    }
    return mix->bulk > 0 || (mix->pipeline > 0 && mix->segment_bytes < 262144);
}

static void judge(void)
{
    struct history *history = record_history();
    struct history_report report;
    struct hold_bounds bounds = make_config().bounds;
    struct history_opts opts = {
        .request_keep_us = bounds.request_keep_ms * 1000,
        .ended_keep_us = bounds.ended_keep_ms * 1000,
        .answer_within_us = run.lossy ? 0 : ANSWER_US,
        .wait_within_us = run.lossy || may_fill() ? 0 : WAIT_WITHIN_US,
        .start_slack_us = 1000,
        .made_slack_us = run.mix.step_ns > 0 ? MADE_SLACK_US : 0,
        .ended_full = run.mix.memory_max != 0,
        .requests_full = run.mix.requests_max != 0,
    };
    char error[HISTORY_ERROR_MAX];

    assert(history != NULL);
    if (run.opts->history != NULL &&
        test_save_history(history, run.opts->history, error) != HF_OK)
        fprintf(stderr, "%s\n", error);
    enum hf_status status = history_check(history, &opts, &report);
    assert(status == HF_OK);
    (void)status;
    run.result->answers = report.answers;
    run.result->grants = report.grants;
    run.result->reads = report.reads;
    run.result->reservations = report.reservations;
    if (report.violations > 0) {
        run.result->id = report.found[0].id;
        run.result->other = report.found[0].other;
        fail(report.found[0].rule, "%s", report.found[0].text);
    }
    fail_if("protocol", clients_wrong());
    history_free(history);
}

static void on_log(const char *line)
{
    record_say("log: %s", line);
}

void run_seed(const struct run_opts *opts, struct run_result *out)
{
    memset(out, 0, sizeof *out);
    memset(&run, 0, sizeof run);
    run.opts = opts;
    run.result = out;
    run.server = calloc(1, sizeof *run.server);
    assert(run.server != NULL);
    world_begin(opts->seed);
    record_begin();
    feeding_begin();
    past_begin();
    mix_draw(&run.mix, opts->seed, opts->commands, opts->faults_off);
    disk_begin(opts->dir, &run.mix.disk);
    remote_begin(&run.mix, run.server);
    net_begin(&run.mix.net);
    exec_costs(run.mix.step_ns);
    world_killed = on_killed;
    loop_between = on_between;
    exec_log = on_log;
    enter_phase(PHASE_WORK);
    clients_begin(&run.mix, opts->masks,
                  opts->limit ? opts->limit : opts->commands);
    world_after(WATCH_NS, on_watch, NULL, 0);
    serve_all();
    judge();
    out->digest = world_digest();
    out->sent = clients_sent();
    out->simulated_us = world_now_us() - 1000000000;
    out->clients = run.mix.clients;
    out->faults = run.mix.fault_count;
    for (uint64_t i = 0; i < out->clients; i++)
        out->client_turns[i] = clients_turns(i);
    feeding_end();
    clients_end();
    net_end();
    disk_end();
    remote_end();
    world_end();
    exec_end();
    free(run.server);
}

void run_story(const struct run_result *result, FILE *out)
{
    record_story(result->id, result->other, out);
}

void run_describe(const struct run_opts *opts, FILE *out)
{
    mix_describe(&run.mix, opts->seed, out);
}
