/* The event loop: turns, wakes from other threads, signals. One thread runs it; only
 * loop_wake_send may come from another.
 *
 * Why wakes are not uv_async: libuv 1.44 makes the loop spin while a thread that wakes it has
 * written to the eventfd and not yet returned, which is just when the kernel likes to preempt it.
 * With sync/pending.h a preempted thread stops nobody.
 *
 * Invariant: when the loop waits for events, turn_end has been called after every callback.
 *
 * Read next: timer.c, conn.c. */
#include "net/loop.h"

#include "base/clock.h"
#include "net/loop_internal.h"
#include "sync/pending.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

enum status net_fail(struct err *err, int uv_error, const char *verb) {
    return err_set(err, uv_error == UV_ENOMEM ? ST_NO_MEMORY : ST_IO, "cannot %s: %s", verb,
                   uv_strerror(uv_error));
}

void loop_enter(struct loop *loop) {
    loop->turn_is_dirty = true;
    if (!loop->turn_is_stamped) {
        loop->turn_is_stamped = true;
        loop->turn_ns = mono_ns();
    }
}

static void end_turn(struct loop *loop) {
    conn_report_failures(loop);
    if (!loop->turn_is_dirty)
        return;
    loop->turn_is_dirty = false;
    if (loop->turn_end)
        loop->turn_end(loop->turn_end_ctx);
}

static void on_check(uv_check_t *check) {
    struct loop *loop = check->data;
    if (!loop->has_put_off)
        loop->round++;
    loop->has_put_off = false;
    end_turn(loop);
}

/* Callbacks of closed and connected handles run between check and prepare: theirs is a turn too. */
static void on_prepare(uv_prepare_t *prepare) {
    struct loop *loop = prepare->data;
    while (loop->failed || loop->turn_is_dirty) /* turn_end may find more broken connections */
        end_turn(loop);
    timers_arm(loop);
    loop->turn_number++;
    if (loop->turn_is_stamped && loop->turn_over) {
        const uint64_t cpu_ns = thread_cpu_ns();
        loop->turn_over(loop->turn_over_ctx, mono_ns() - loop->turn_ns, cpu_ns - loop->cpu_ns);
        loop->cpu_ns = cpu_ns;
    }
    loop->turn_is_stamped = false;
}

/* A peer that has gone must be an error of write(), not the end of the process. */
static void ignore_sigpipe(void) {
    struct sigaction present;
    if (sigaction(SIGPIPE, NULL, &present) == 0 && present.sa_handler == SIG_DFL)
        (void)signal(SIGPIPE, SIG_IGN);
}

enum status loop_create(struct loop **out, struct err *err) {
    struct loop *loop = malloc(sizeof *loop); /* not calloc: read_bytes need no clearing */
    if (!loop)
        return err_set(err, ST_NO_MEMORY, "no memory for an event loop");
    ignore_sigpipe();
    const int failed = uv_loop_init(&loop->uv);
    if (failed) {
        free(loop);
        return net_fail(err, failed, "create an event loop");
    }
    loop->turn_is_stamped = loop->turn_is_dirty = false;
    loop->turn_ns = mono_ns();
    loop->turn_number = 0;
    loop->turn_end = NULL;
    loop->turn_end_ctx = NULL;
    loop->cpu_ns = 0;
    loop->turn_over = NULL;
    loop->turn_over_ctx = NULL;
    loop->round = 1;
    loop->has_put_off = false;
    loop->shed = 0;
    loop->failed = NULL;
    loop->timers = NULL;
    loop->tls_scratch = NULL;
    uv_prepare_init(&loop->uv, &loop->prepare);
    uv_check_init(&loop->uv, &loop->check);
    loop->prepare.data = loop->check.data = loop;
    uv_prepare_start(&loop->prepare, on_prepare);
    uv_check_start(&loop->check, on_check);
    uv_unref((uv_handle_t *)&loop->prepare);
    uv_unref((uv_handle_t *)&loop->check);
    const enum status status = timers_open(loop, err);
    if (status != ST_OK) {
        loop_free(loop);
        return status;
    }
    *out = loop;
    return ST_OK;
}

void loop_free(struct loop *loop) {
    if (!loop)
        return;
    loop->turn_end = NULL;
    loop->turn_over = NULL;
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    uv_close((uv_handle_t *)&loop->check, NULL);
    timers_close(loop);
    int busy = UV_EBUSY; /* closing callbacks are still to run, the caller's too */
    for (int turn = 0; turn < 8 && busy; turn++) {
        (void)uv_run(&loop->uv, UV_RUN_NOWAIT);
        busy = uv_loop_close(&loop->uv);
    }
    assert(busy == 0 && "a connection, listener, wake or signal is still open");
    timers_free(loop->timers);
    conn_tls_scratch_free(loop->tls_scratch);
    free(loop);
}

void loop_run(struct loop *loop) {
    /* Waits with a timeout may end 50 us late by default; this thread's end on time. */
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    loop->cpu_ns = thread_cpu_ns(); /* of this thread */
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop) { uv_stop(&loop->uv); }

uint64_t loop_turn_ns(const struct loop *loop) { return loop->turn_ns; }

uint64_t loop_shed(const struct loop *loop) { return loop->shed; }

void loop_on_turn_end(struct loop *loop, void (*fn)(void *ctx), void *ctx) {
    loop->turn_end = fn;
    loop->turn_end_ctx = ctx;
}

void loop_on_turn_over(struct loop *loop,
                       void (*fn)(void *ctx, uint64_t busy_ns, uint64_t cpu_ns), void *ctx) {
    loop->turn_over = fn;
    loop->turn_over_ctx = ctx;
}

struct loop_wake {
    struct pending pending;
    uv_poll_t poll;
    struct loop *loop;
    int fd;
    void (*fn)(void *ctx);
    void *ctx;
};

static void on_wake(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    struct loop_wake *wake = poll->data;
    loop_enter(wake->loop);
    uint64_t count = 0;
    (void)!read(wake->fd, &count, sizeof count);
    pending_clear(&wake->pending); /* after the read: a wake from here on writes again */
    wake->fn(wake->ctx);
}

struct loop_wake *loop_wake_create(struct loop *loop, void (*fn)(void *ctx), void *ctx) {
    struct loop_wake *wake = aligned_alloc(64, sizeof *wake);
    if (!wake)
        return NULL;
    *wake = (struct loop_wake){.loop = loop, .fn = fn, .ctx = ctx};
    wake->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake->fd < 0 || uv_poll_init(&loop->uv, &wake->poll, wake->fd) != 0) {
        if (wake->fd >= 0)
            close(wake->fd);
        free(wake);
        return NULL;
    }
    wake->poll.data = wake;
    (void)uv_poll_start(&wake->poll, UV_READABLE, on_wake); /* cannot fail on an open handle */
    return wake;
}

void loop_wake_send(struct loop_wake *wake) {
    const uint64_t one = 1;
    if (pending_set(&wake->pending))
        (void)!write(wake->fd, &one, sizeof one); /* only fails when 2^64 wakes are unread */
}

static void on_wake_closed(uv_handle_t *handle) {
    struct loop_wake *wake = handle->data;
    close(wake->fd);
    free(wake);
}

void loop_wake_close(struct loop_wake *wake) {
    if (wake)
        uv_close((uv_handle_t *)&wake->poll, on_wake_closed);
}

struct loop_signal {
    uv_signal_t uv;
    struct loop *loop;
    void (*fn)(void *ctx, int signum);
    void *ctx;
};

static void on_signal(uv_signal_t *handle, int signum) {
    struct loop_signal *signal = handle->data;
    loop_enter(signal->loop);
    signal->fn(signal->ctx, signum);
}

static void on_signal_closed(uv_handle_t *handle) { free(handle->data); }

struct loop_signal *loop_signal_create(struct loop *loop, int signum,
                                       void (*fn)(void *ctx, int signum), void *ctx) {
    struct loop_signal *signal = calloc(1, sizeof *signal);
    if (!signal)
        return NULL;
    signal->loop = loop;
    signal->fn = fn;
    signal->ctx = ctx;
    if (uv_signal_init(&loop->uv, &signal->uv) != 0) {
        free(signal);
        return NULL;
    }
    signal->uv.data = signal;
    if (uv_signal_start(&signal->uv, on_signal, signum) != 0) {
        loop_signal_close(signal);
        return NULL;
    }
    uv_unref((uv_handle_t *)&signal->uv); /* listening for signals keeps no loop running */
    return signal;
}

void loop_signal_close(struct loop_signal *signal) {
    if (signal)
        uv_close((uv_handle_t *)&signal->uv, on_signal_closed);
}
