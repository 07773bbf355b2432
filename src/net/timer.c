/* One-shot timers: a binary heap over one timerfd, on the loop's thread.
 *
 * Every request may have its timeout, so setting and clearing one makes no system call: the
 * timerfd is set before the loop waits, and only when the earliest timer is earlier than what it
 * stands at. When it stands too early the loop wakes once for nothing, which costs less than
 * moving it at each request's end.
 *
 * Why a timerfd: epoll waits in milliseconds.
 *
 * Invariant: heap order by (at_ns, order of setting), so that equal instants fire as they were
 * set; a timer that is not armed has index NOT_ARMED. */
#include "base/clock.h"
#include "net/loop_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define NOT_ARMED SIZE_MAX
#define NEVER_NS UINT64_MAX

struct loop_timer {
    struct loop *loop;
    size_t index; /* in the heap */
    uint64_t at_ns, order;
    void (*fn)(void *ctx);
    void *ctx;
};

struct timer_heap {
    uv_poll_t poll;
    int fd;
    struct loop_timer **items;
    size_t count, capacity; /* capacity: at least as many as there are timers */
    size_t timers;
    uint64_t next_order;
    uint64_t standing_ns; /* what the timerfd is set to */
    uint64_t firing_ns;   /* the instant being handled; 0 outside */
};

static bool is_before(const struct loop_timer *a, const struct loop_timer *b) {
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

static void place(struct timer_heap *heap, struct loop_timer *timer, size_t index) {
    heap->items[index] = timer;
    timer->index = index;
}

static void move_up(struct timer_heap *heap, struct loop_timer *timer, size_t index) {
    while (index > 0 && is_before(timer, heap->items[(index - 1) / 2])) {
        place(heap, heap->items[(index - 1) / 2], index);
        index = (index - 1) / 2;
    }
    place(heap, timer, index);
}

static void move_down(struct timer_heap *heap, struct loop_timer *timer, size_t index) {
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && is_before(heap->items[child + 1], heap->items[child]))
            child++;
        if (!is_before(heap->items[child], timer))
            break;
        place(heap, heap->items[child], index);
        index = child;
    }
    place(heap, timer, index);
}

static void disarm(struct timer_heap *heap, struct loop_timer *timer) {
    if (timer->index == NOT_ARMED)
        return;
    const size_t index = timer->index;
    struct loop_timer *last = heap->items[--heap->count];
    timer->index = NOT_ARMED;
    if (heap->count == 0)
        uv_unref((uv_handle_t *)&heap->poll); /* nothing here keeps the loop running */
    if (last == timer)
        return;
    if (index > 0 && is_before(last, heap->items[(index - 1) / 2]))
        move_up(heap, last, index);
    else
        move_down(heap, last, index);
}

static void set_timerfd(struct timer_heap *heap, uint64_t at_ns) {
    /* 0 would disarm it */
    const uint64_t at = at_ns > 0 ? at_ns : 1;
    const struct itimerspec spec = {.it_value = {.tv_sec = (time_t)(at / 1000000000u),
                                                 .tv_nsec = (long)(at % 1000000000u)}};
    (void)timerfd_settime(heap->fd, TFD_TIMER_ABSTIME, &spec, NULL);
    heap->standing_ns = at_ns;
}

void timers_arm(struct loop *loop) {
    struct timer_heap *heap = loop->timers;
    if (heap->count > 0 && heap->items[0]->at_ns < heap->standing_ns)
        set_timerfd(heap, heap->items[0]->at_ns);
}

/* Fires all that are due now; what they set fires in a later turn. */
static void fire(struct timer_heap *heap) {
    const uint64_t first_new = heap->next_order;
    heap->firing_ns = mono_ns();
    while (heap->count > 0) {
        struct loop_timer *timer = heap->items[0];
        if (timer->at_ns > heap->firing_ns || timer->order >= first_new)
            break;
        disarm(heap, timer);
        timer->fn(timer->ctx); /* may set or close any timer, this one too */
    }
    heap->firing_ns = 0;
}

static void on_timerfd(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    struct loop *loop = poll->data;
    uint64_t expirations = 0;
    loop_enter(loop);
    if (read(loop->timers->fd, &expirations, sizeof expirations) > 0)
        loop->timers->standing_ns = NEVER_NS;
    fire(loop->timers);
}

enum status timers_open(struct loop *loop, struct err *err) {
    struct timer_heap *heap = calloc(1, sizeof *heap);
    if (!heap)
        return err_set(err, ST_NO_MEMORY, "no memory for an event loop's timers");
    heap->standing_ns = NEVER_NS;
    heap->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (heap->fd < 0) {
        const int error = errno;
        free(heap);
        return err_set(err, ST_IO, "cannot create a timerfd: %s", strerror(error));
    }
    const int failed = uv_poll_init(&loop->uv, &heap->poll, heap->fd);
    if (failed) {
        close(heap->fd);
        free(heap);
        return net_fail(err, failed, "watch a timerfd");
    }
    heap->poll.data = loop;
    (void)uv_poll_start(&heap->poll, UV_READABLE, on_timerfd);
    uv_unref((uv_handle_t *)&heap->poll);
    loop->timers = heap;
    return ST_OK;
}

void timers_close(struct loop *loop) {
    if (loop->timers)
        uv_close((uv_handle_t *)&loop->timers->poll, NULL);
}

void timers_free(struct timer_heap *heap) {
    if (!heap)
        return;
    close(heap->fd);
    free(heap->items);
    free(heap);
}

struct loop_timer *loop_timer_create(struct loop *loop, void (*fn)(void *ctx), void *ctx) {
    struct timer_heap *heap = loop->timers;
    struct loop_timer *timer = malloc(sizeof *timer);
    if (!timer)
        return NULL;
    if (heap->timers == heap->capacity) { /* here, so that setting a timer cannot fail */
        const size_t capacity = heap->capacity > 0 ? heap->capacity * 2 : 64;
        struct loop_timer **items = realloc(heap->items, capacity * sizeof *items);
        if (!items) {
            free(timer);
            return NULL;
        }
        heap->items = items;
        heap->capacity = capacity;
    }
    heap->timers++;
    *timer = (struct loop_timer){.loop = loop, .index = NOT_ARMED, .fn = fn, .ctx = ctx};
    return timer;
}

void loop_timer_set(struct loop_timer *timer, uint64_t at_ns) {
    struct timer_heap *heap = timer->loop->timers;
    disarm(heap, timer);
    if (at_ns == 0)
        return;
    /* One that a firing timer sets into the past must not overtake what is due already. */
    timer->at_ns = at_ns > heap->firing_ns ? at_ns : heap->firing_ns;
    timer->order = heap->next_order++;
    move_up(heap, timer, heap->count++);
    uv_ref((uv_handle_t *)&heap->poll);
}

void loop_timer_close(struct loop_timer *timer) {
    if (!timer)
        return;
    disarm(timer->loop->timers, timer);
    timer->loop->timers->timers--;
    free(timer);
}
