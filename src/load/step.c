/* Runs a step on the loop: who sends when, what times out, when it is over. Loop thread.
 *
 * Invariant: each call is in the in-flight list from issue until finish, and becomes exactly one
 * sample. Closed and paced loads are users with a next instant; the open load is a plan drawn
 * beforehand and a place in it; "pump" sends whatever is due and arms the timer for the rest.
 * Read next: target.h, then summary.c. */
#include "load/step.h"

#include "base/clock.h"
#include "load/users.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPIN_NS = 100 * 1000,       /* a loop timer fires within some 60 us of its instant */
    CONNECT_PAUSE_NS = 10 * 1000 * 1000, /* a client whose connection failed tries again then */
    SOON_NS = 1000,             /* in the loop's next turn */
    INTERRUPT_WAIT_NS = 1000 * 1000 * 1000,
    WARMUP_OPEN_CLIENTS = 16    /* an open load is warmed up by so many clients */
};

struct runner {
    struct loop *loop;
    struct target *target;
    struct loop_timer *pace, *timeout, *progress, *give_up;
    struct loop_signal *signals[2];
    void (*progress_fn)(void *ctx, const struct step_progress *progress);
    void *progress_ctx;

    /* of the step */
    struct step_config config;
    struct step_result *result;
    enum phase phase;
    enum load_mode mode; /* warm-up of any mode is a closed loop */
    struct users users;
    struct plan plan;
    size_t plan_next;
    bool is_blocked;       /* open: a due request waits for max_in_flight */
    uint64_t unblocked_ns; /* open: since when nothing blocks */
    uint64_t start_ns, end_ns, limit, issued;
    uint64_t pace_armed_ns; /* 0: not armed */
    bool is_timeout_armed;

    struct call *first, *last, *spare; /* in flight in order of issue; spare linked by next */
    uint64_t in_flight, answered, failed;
    bool is_interrupted, is_hopeless;
};

const char *load_mode_name(enum load_mode mode) {
    return mode == LOAD_CLOSED ? "closed" : mode == LOAD_OPEN ? "open" : "paced";
}

void step_result_done(struct step_result *result) {
    sample_list_done(&result->samples);
    histogram_done(&result->lateness_ns);
    *result = (struct step_result){0};
}

static bool is_over(const struct runner *r) { return r->is_interrupted || r->is_hopeless; }

/* ---- calls ---- */

static struct call *call_take(struct runner *r) {
    struct call *call = r->spare;
    if (call != NULL) r->spare = call->next;
    else call = malloc(sizeof *call);
    if (call == NULL) return NULL;
    *call = (struct call){.prev = r->last};
    if (r->last != NULL) r->last->next = call;
    else r->first = call;
    r->last = call;
    r->in_flight++;
    return call;
}

static void call_release(struct runner *r, struct call *call) {
    if (call->prev != NULL) call->prev->next = call->next;
    else r->first = call->next;
    if (call->next != NULL) call->next->prev = call->prev;
    else r->last = call->prev;
    call->next = r->spare;
    r->spare = call;
    r->in_flight--;
}

static void count_error(struct runner *r, const struct sample *sample, const char *detail) {
    struct step_result *result = r->result;
    struct step_error *error = NULL;
    for (uint32_t i = 0; i < result->error_kinds && error == NULL; i++)
        if (result->errors[i].outcome == (enum outcome)sample->outcome &&
            result->errors[i].http == sample->http)
            error = &result->errors[i];
    if (error == NULL && result->error_kinds == STEP_MAX_ERRORS)
        error = &result->errors[STEP_MAX_ERRORS - 1];
    if (error == NULL) {
        error = &result->errors[result->error_kinds++];
        *error = (struct step_error){.outcome = sample->outcome, .http = sample->http};
        snprintf(error->detail, sizeof error->detail, "%s", detail);
    }
    error->count++;
}

static void count_sample(struct runner *r, const struct sample *sample, const char *detail) {
    sample_list_add(&r->result->samples, sample);
    if (sample->outcome == OUTCOME_CANCELLED) return;
    if (sample->outcome == OUTCOME_OK) {
        r->answered++;
        return;
    }
    r->failed++;
    /* Warm-up errors are kept for the sentence when nothing ever succeeds. */
    count_error(r, sample, detail);
    if (r->answered == 0 && r->failed >= STEP_HOPELESS) r->is_hopeless = true;
}

static bool is_window_closed(const struct runner *r, uint64_t planned_ns) {
    return is_over(r) || planned_ns >= r->end_ns || r->issued >= r->limit;
}

static void finish(struct runner *r, struct call *call, bool may_send);

/* Sends one request; user is UINT32_MAX in the open loop. free_ns: since when the sender could
 * have sent. */
static void issue(struct runner *r, uint64_t planned_ns, uint64_t free_ns, uint32_t user) {
    struct call *call = call_take(r);
    if (call == NULL) { /* as if the connection had failed: the load goes on with what is there */
        r->failed++;
        return;
    }
    const struct inputs *inputs = r->target->inputs;
    uint64_t number = r->issued++;
    uint64_t now_ns = mono_ns();
    bool has_plan = r->mode != LOAD_CLOSED;
    call->sample.number = (uint32_t)number;
    call->sample.input = inputs->order[number % inputs->count];
    call->sample.tokens = inputs->items[call->sample.input].tokens;
    call->sample.phase = (uint8_t)r->phase;
    call->sample.planned_ns = has_plan ? planned_ns : now_ns;
    call->issued_ns = now_ns;
    call->user = user;
    snprintf(call->id, sizeof call->id, "%c%u-%llu", r->phase == PHASE_WARMUP ? 'w' : 'b',
             r->config.number, (unsigned long long)number);
    if (has_plan && free_ns <= planned_ns)
        histogram_record(&r->result->lateness_ns, now_ns > planned_ns ? now_ns - planned_ns : 0);
    /* Left armed when the call is answered: firing for nothing is cheaper than a system call a
     * request. */
    if (!r->is_timeout_armed) loop_timer_set(r->timeout, now_ns + r->config.timeout_ns);
    r->is_timeout_armed = true;
    if (!r->target->table->send(r->target, call)) finish(r, call, false);
}

/* A planned request that waited for its turn longer than a user would wait: never sent. */
static void give_up_unsent(struct runner *r, uint64_t planned_ns, uint64_t now_ns) {
    uint64_t number = r->issued++;
    struct sample sample = {
        .planned_ns = planned_ns,
        .done_ns = now_ns,
        .number = (uint32_t)number,
        .input = r->target->inputs->order[number % r->target->inputs->count],
        .outcome = OUTCOME_TIMEOUT,
        .phase = (uint8_t)r->phase,
    };
    r->result->unsent++;
    count_sample(r, &sample, "waited longer than --timeout for its turn to be sent");
}

/* ---- who sends next ---- */

/* A user is free again: its next request now, later, or none any more. May send at once. */
static void user_continue(struct runner *r, uint32_t index, uint64_t now_ns, bool may_send) {
    struct user *user = &r->users.items[index];
    for (;;) {
        if (is_window_closed(r, r->mode == LOAD_CLOSED ? now_ns : user->next_ns)) return;
        if (r->mode == LOAD_CLOSED && user->next_ns < now_ns) user->next_ns = now_ns;
        bool is_due = user->next_ns <= now_ns && user->wake_ns <= now_ns;
        if (!is_due || !may_send) {
            if (user->wake_ns < user->next_ns) user->wake_ns = user->next_ns;
            users_push(&r->users, index);
            return;
        }
        uint64_t planned_ns = user->next_ns;
        if (r->mode == LOAD_PACED) user->next_ns = r->start_ns + user_plan_next(&user->plan);
        if (r->mode == LOAD_PACED && now_ns - planned_ns > r->config.timeout_ns) {
            give_up_unsent(r, planned_ns, now_ns);
            continue;
        }
        issue(r, planned_ns, user->free_ns, index);
        return;
    }
}

/* Sends what is due of the users; returns when the next one is, 0: none. A user whose call ended
 * at once is due after begin_ns: a target that refuses everything must not keep the loop here. */
static uint64_t pump_users(struct runner *r) {
    uint64_t begin_ns = mono_ns();
    uint32_t index;
    while (users_first(&r->users, &index)) {
        uint64_t wake_ns = r->users.items[index].wake_ns;
        if (wake_ns > begin_ns) return is_over(r) ? 0 : wake_ns;
        users_pop(&r->users);
        user_continue(r, index, mono_ns(), true);
    }
    return 0;
}

static uint64_t pump_plan(struct runner *r) {
    while (r->plan_next < r->plan.count && !is_over(r) && r->issued < r->limit) {
        uint64_t planned_ns = r->start_ns + r->plan.at_ns[r->plan_next];
        uint64_t now_ns = mono_ns();
        if (planned_ns >= r->end_ns) break;
        if (planned_ns > now_ns) return planned_ns;
        if (now_ns - planned_ns > r->config.timeout_ns) {
            r->plan_next++;
            give_up_unsent(r, planned_ns, now_ns);
            continue;
        }
        if (r->in_flight >= r->config.max_in_flight) {
            r->is_blocked = true; /* finish() pumps again */
            return 0;
        }
        if (r->is_blocked) {
            r->is_blocked = false;
            r->unblocked_ns = now_ns;
        }
        r->plan_next++;
        issue(r, planned_ns, r->unblocked_ns, UINT32_MAX);
    }
    r->plan_next = r->plan.count; /* the rest is after the end */
    return 0;
}

static bool is_quiet(const struct runner *r) {
    if (r->in_flight > 0) return false;
    if (is_over(r)) return true;
    return r->users.heap_size == 0 && r->plan_next >= r->plan.count;
}

static void pump(struct runner *r) {
    uint64_t next_ns = r->mode == LOAD_OPEN ? pump_plan(r) : pump_users(r);
    if (next_ns != 0 && r->config.spin) next_ns -= SPIN_NS;
    if (next_ns != 0 && next_ns != r->pace_armed_ns) loop_timer_set(r->pace, next_ns);
    if (next_ns != 0) r->pace_armed_ns = next_ns;
    if (is_quiet(r) || r->is_hopeless) loop_stop(r->loop);
}

static void on_pace(void *ctx) {
    struct runner *r = ctx;
    r->pace_armed_ns = 0;
    if (r->config.spin && !is_over(r)) {
        uint32_t index;
        uint64_t until_ns = 0;
        if (r->mode == LOAD_OPEN && r->plan_next < r->plan.count)
            until_ns = r->start_ns + r->plan.at_ns[r->plan_next];
        else if (users_first(&r->users, &index))
            until_ns = r->users.items[index].wake_ns;
        uint64_t now_ns = mono_ns();
        while (now_ns < until_ns && until_ns - now_ns <= SPIN_NS) now_ns = mono_ns();
    }
    pump(r);
}

/* ---- how a call ends ---- */

/* may_send: its user may send again from here; otherwise it waits in the heap for the pump. */
static void finish(struct runner *r, struct call *call, bool may_send) {
    uint32_t index = call->user;
    bool is_connection = call->sample.outcome == OUTCOME_CONNECTION;
    count_sample(r, &call->sample, call->detail);
    if (call->sample.done_ns > r->result->drained_ns)
        r->result->drained_ns = call->sample.done_ns;
    call_release(r, call);
    if (index == UINT32_MAX) return;
    uint64_t now_ns = mono_ns();
    r->users.items[index].free_ns = now_ns;
    r->users.items[index].wake_ns = now_ns;
    if (!may_send) r->users.items[index].wake_ns += SOON_NS;
    if (is_connection) r->users.items[index].wake_ns += CONNECT_PAUSE_NS;
    user_continue(r, index, now_ns, may_send);
}

static void on_done(void *ctx, struct call *call) {
    struct runner *r = ctx;
    uint32_t before = r->users.heap_size;
    finish(r, call, true);
    bool has_waiter = r->mode == LOAD_OPEN ? r->is_blocked : r->users.heap_size != before;
    if (has_waiter || r->in_flight == 0 || is_over(r)) pump(r);
}

static void end_call(struct runner *r, struct call *call, enum outcome outcome,
                     const char *detail) {
    r->target->table->abandon(r->target, call);
    call->sample.outcome = (uint8_t)outcome;
    call->sample.done_ns = mono_ns();
    snprintf(call->detail, sizeof call->detail, "%s", detail);
    finish(r, call, false);
}

static void on_timeout(void *ctx) {
    struct runner *r = ctx;
    while (r->first != NULL && r->first->issued_ns + r->config.timeout_ns <= mono_ns())
        end_call(r, r->first, OUTCOME_TIMEOUT, "no answer within --timeout");
    r->is_timeout_armed = r->first != NULL;
    if (r->first != NULL)
        loop_timer_set(r->timeout, r->first->issued_ns + r->config.timeout_ns);
    pump(r);
}

static void cancel_all(struct runner *r) {
    while (r->first != NULL) end_call(r, r->first, OUTCOME_CANCELLED, "interrupted");
    loop_stop(r->loop);
}

static void on_give_up(void *ctx) { cancel_all(ctx); }

static void on_signal(void *ctx, int signum) {
    struct runner *r = ctx;
    (void)signum;
    if (r->is_interrupted) { /* the second Ctrl-C does not wait for answers */
        cancel_all(r);
        return;
    }
    r->is_interrupted = true;
    uint64_t now_ns = mono_ns();
    if (r->phase == PHASE_MEASURE && now_ns < r->end_ns) r->end_ns = now_ns;
    loop_timer_set(r->give_up, now_ns + INTERRUPT_WAIT_NS);
    if (is_quiet(r)) loop_stop(r->loop);
}

static void on_progress(void *ctx) {
    struct runner *r = ctx;
    uint64_t now_ns = mono_ns();
    loop_timer_set(r->progress, now_ns + 1000000000u);
    r->progress_fn(r->progress_ctx, &(struct step_progress){
                                        .config = &r->config,
                                        .phase = r->phase,
                                        .elapsed_ns = now_ns - r->start_ns,
                                        .answered = r->answered,
                                        .failed = r->failed,
                                        .in_flight = r->in_flight,
                                    });
}

/* ---- phases ---- */

static void run_phase(struct runner *r) {
    if (r->progress_fn != NULL) loop_timer_set(r->progress, mono_ns() + 1000000000u);
    /* From the loop, whose turn's end wakes the engine for all that was sent in it. */
    loop_timer_set(r->pace, mono_ns());
    /* A stop that came for an earlier phase ends one turn too early. */
    while (!is_quiet(r) && !r->is_hopeless) loop_run(r->loop);
    while (r->first != NULL) end_call(r, r->first, OUTCOME_CANCELLED, "the run was stopped");
    r->pace_armed_ns = 0;
    r->is_timeout_armed = false;
    loop_timer_set(r->pace, 0);
    loop_timer_set(r->timeout, 0);
    loop_timer_set(r->progress, 0);
    loop_timer_set(r->give_up, 0);
}

MUST_CHECK static enum status start_users(struct runner *r, uint32_t count, struct err *err) {
    users_done(&r->users);
    enum status status = users_create(count, &r->users, err);
    if (status != ST_OK) return status;
    for (uint32_t i = 0; i < count; i++) {
        struct user *user = &r->users.items[i];
        user->next_ns = r->start_ns;
        if (r->mode == LOAD_PACED) {
            user_plan_init(&user->plan, r->config.arrivals, r->config.rate, count, i,
                           r->config.seed);
            user->next_ns = r->start_ns + user_plan_next(&user->plan);
        }
        user->wake_ns = user->next_ns;
        if (user->next_ns < r->end_ns) users_push(&r->users, i);
    }
    return ST_OK;
}

enum status runner_warm_up(struct runner *runner, const struct step_config *config,
                           struct step_result *out, struct err *err) {
    struct runner *r = runner;
    *out = (struct step_result){.config = *config};
    if (!histogram_init(&out->lateness_ns, 2, 3600000000000u))
        return err_set(err, ST_NO_MEMORY, "out of memory for a histogram");
    r->config = *config;
    r->result = out;
    r->phase = PHASE_WARMUP;
    r->mode = LOAD_CLOSED;
    r->issued = 0;
    r->start_ns = mono_ns();
    r->end_ns = UINT64_MAX;
    uint32_t clients =
        config->mode == LOAD_OPEN ? WARMUP_OPEN_CLIENTS : config->concurrency;
    if (config->mode == LOAD_OPEN && clients > config->max_in_flight)
        clients = (uint32_t)config->max_in_flight;
    /* At least one a client, so that every connection is open before it counts. */
    r->limit = config->warmup > clients ? config->warmup : clients;
    if (config->warmup > 0) {
        enum status status = start_users(r, clients, err);
        if (status != ST_OK) return status;
        run_phase(r);
        users_done(&r->users); /* runner_measure does not follow every warm-up */
    }
    out->start_ns = out->end_ns = out->drained_ns = mono_ns();
    out->is_interrupted = r->is_interrupted;
    out->is_hopeless = r->is_hopeless;
    return ST_OK;
}

enum status runner_measure(struct runner *runner, struct step_result *result, struct err *err) {
    struct runner *r = runner;
    uint64_t process_before_ns = process_cpu_ns(), thread_before_ns = thread_cpu_ns();
    if (r->answered > 0) result->error_kinds = 0; /* those of the warm-up */
    r->phase = PHASE_MEASURE;
    r->mode = r->config.mode;
    r->issued = 0;
    r->limit = r->config.request_limit == 0 ? UINT64_MAX : r->config.request_limit;
    r->plan_next = 0;
    r->is_blocked = false;
    enum status status = ST_OK;
    if (r->mode == LOAD_OPEN)
        status = plan_create(r->config.arrivals, r->config.rate, r->config.duration_ns,
                             r->config.seed, &r->plan, err);
    r->start_ns = r->unblocked_ns = mono_ns();
    r->end_ns = r->start_ns + r->config.duration_ns;
    if (status == ST_OK && r->mode != LOAD_OPEN)
        status = start_users(r, r->config.concurrency, err);
    if (status == ST_OK) {
        result->start_ns = result->drained_ns = r->start_ns;
        run_phase(r);
        result->end_ns = r->end_ns;
        /* With a request limit the window ends with the last answer. */
        if (r->issued >= r->limit && result->drained_ns < result->end_ns)
            result->end_ns = result->drained_ns;
        if (result->drained_ns < result->end_ns) result->drained_ns = result->end_ns;
    }
    plan_done(&r->plan);
    users_done(&r->users);
    result->process_cpu_ns = process_cpu_ns() - process_before_ns;
    result->thread_cpu_ns = thread_cpu_ns() - thread_before_ns;
    result->is_interrupted = r->is_interrupted;
    result->is_hopeless = r->is_hopeless;
    return status;
}

/* ---- life ---- */

enum status runner_create(struct loop *loop, struct target *target, struct runner **out,
                          struct err *err) {
    struct runner *r = calloc(1, sizeof *r);
    if (r == NULL) return err_set(err, ST_NO_MEMORY, "out of memory");
    r->loop = loop;
    r->target = target;
    r->pace = loop_timer_create(loop, on_pace, r);
    r->timeout = loop_timer_create(loop, on_timeout, r);
    r->progress = loop_timer_create(loop, on_progress, r);
    r->give_up = loop_timer_create(loop, on_give_up, r);
    r->signals[0] = loop_signal_create(loop, SIGINT, on_signal, r);
    r->signals[1] = loop_signal_create(loop, SIGTERM, on_signal, r);
    target->on_done = on_done;
    target->ctx = r;
    if (r->pace == NULL || r->timeout == NULL || r->progress == NULL || r->give_up == NULL ||
        r->signals[0] == NULL || r->signals[1] == NULL) {
        runner_free(r);
        return err_set(err, ST_NO_MEMORY, "out of memory for the loop's timers");
    }
    *out = r;
    return ST_OK;
}

void runner_free(struct runner *runner) {
    if (runner == NULL) return;
    if (runner->pace != NULL) loop_timer_close(runner->pace);
    if (runner->timeout != NULL) loop_timer_close(runner->timeout);
    if (runner->progress != NULL) loop_timer_close(runner->progress);
    if (runner->give_up != NULL) loop_timer_close(runner->give_up);
    for (int i = 0; i < 2; i++)
        if (runner->signals[i] != NULL) loop_signal_close(runner->signals[i]);
    while (runner->spare != NULL) {
        struct call *call = runner->spare;
        runner->spare = call->next;
        free(call);
    }
    free(runner);
}

void runner_on_progress(struct runner *runner,
                        void (*fn)(void *ctx, const struct step_progress *), void *ctx) {
    runner->progress_fn = fn;
    runner->progress_ctx = ctx;
}
