/* Files of a run: made once, appended to in large pieces, never overwritten.
 *
 * Thread: open and close as the tracer's owner; lines and flushes by its writer thread.
 * Invariant: the files end in a whole line, also when the disk is full.
 * Next: tracer.c. */
#include "measure/trace_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FLUSH_BYTES = 256 * 1024 };

/* mkdir -p. */
static int make_directories(char *path) {
    for (char *at = path + 1; *at != '\0'; at++) {
        if (*at != '/') continue;
        *at = '\0';
        const int failed = mkdir(path, 0777) != 0 && errno != EEXIST;
        *at = '/';
        if (failed) return -1;
    }
    return mkdir(path, 0777) != 0 && errno != EEXIST ? -1 : 0;
}

static enum status open_file(struct trace_dir *dir, struct trace_file *file, struct err *err) {
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC;
    file->fd = openat(dir->fd, file->name, flags, 0666);
    if (file->fd >= 0) return ST_OK;
    if (errno == EEXIST) {
        return err_set(err, ST_INVALID,
                       "the directory %s holds a run already (%s is there): choose another --trace "
                       "directory or remove it", dir->path, file->name);
    }
    return err_set(err, ST_IO, "creating %s/%s: %s", dir->path, file->name, strerror(errno));
}

enum status trace_dir_open(struct trace_dir *dir, const char *path, uint64_t max_bytes,
                           struct err *err) {
    *dir = (struct trace_dir){.fd = -1,
                              .max_bytes = max_bytes,
                              .requests = {.name = "requests.jsonl", .fd = -1},
                              .batches = {.name = "batches.jsonl", .fd = -1}};
    if (*path == '\0') return err_set(err, ST_INVALID, "the trace directory has no name");
    dir->path = strdup(path);
    if (dir->path == NULL) return err_set(err, ST_NO_MEMORY, "opening %s: out of memory", path);

    enum status status = ST_OK;
    if (make_directories(dir->path) != 0 ||
        (dir->fd = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC)) < 0) {
        status = err_set(err, ST_IO, "creating the trace directory %s: %s", path, strerror(errno));
    }
    if (status == ST_OK && faccessat(dir->fd, "summary.json", F_OK, 0) == 0) {
        status = err_set(err, ST_INVALID,
                         "the directory %s holds a run already (summary.json is there): choose "
                         "another --trace directory or remove it", path);
    }
    if (status == ST_OK) status = open_file(dir, &dir->requests, err);
    if (status == ST_OK) {
        status = open_file(dir, &dir->batches, err);
        /* Or the next try would take this one's file for a run. */
        if (status != ST_OK) unlinkat(dir->fd, dir->requests.name, 0);
    }
    if (status != ST_OK) trace_dir_close(dir);
    return status;
}

void trace_dir_close(struct trace_dir *dir) {
    if (dir->requests.fd >= 0) close(dir->requests.fd);
    if (dir->batches.fd >= 0) close(dir->batches.fd);
    if (dir->fd >= 0) close(dir->fd);
    buf_done(&dir->requests.pending);
    buf_done(&dir->batches.pending);
    free(dir->path);
    *dir = (struct trace_dir){.fd = -1, .requests.fd = -1, .batches.fd = -1};
}

void trace_dir_discard(struct trace_dir *dir) {
    unlinkat(dir->fd, dir->requests.name, 0);
    unlinkat(dir->fd, dir->batches.name, 0);
    trace_dir_close(dir);
}

/* Bytes written; less than size: errno says why. */
static size_t write_all(int fd, const char *data, size_t size) {
    size_t done = 0;
    while (done < size) {
        const ssize_t n = write(fd, data + done, size - done);
        if (n > 0) done += (size_t)n;
        else if (n == 0) errno = ENOSPC;
        if (n == 0 || (n < 0 && errno != EINTR)) break;
    }
    return done;
}

static void stop(struct trace_dir *dir, const struct trace_file *file, const char *why) {
    dir->is_stopped = true;
    (void)err_set(&dir->error, ST_IO, "writing %s/%s: %s; the trace ends here, after %llu lines",
                  dir->path, file->name, why, (unsigned long long)file->lines);
}

static uint64_t count_lines(const char *data, size_t size, size_t *out_whole) {
    uint64_t lines = 0;
    *out_whole = 0;
    for (size_t i = 0; i < size; i++) {
        if (data[i] != '\n') continue;
        lines++;
        *out_whole = i + 1;
    }
    return lines;
}

static void flush_file(struct trace_dir *dir, struct trace_file *file) {
    const struct view text = buf_view(&file->pending);
    if (text.size > 0 && !dir->is_stopped) {
        const size_t done = write_all(file->fd, text.data, text.size);
        const int error = errno;
        size_t whole = done;
        uint64_t lines = file->pending_lines;
        if (done < text.size) {
            lines = count_lines(text.data, done, &whole);
            /* Readers can count on whole lines. Failing that too changes nothing. */
            if (ftruncate(file->fd, (off_t)(file->bytes + whole)) != 0) whole = done;
        }
        file->bytes += whole;
        file->lines += lines;
        if (done < text.size) {
            stop(dir, file, strerror(error));
        } else if (dir->max_bytes != 0 &&
                   dir->requests.bytes + dir->batches.bytes >= dir->max_bytes) {
            stop(dir, file, "the limit of the trace's size is reached");
        }
    }
    file->pending_lines = 0;
    buf_clear(&file->pending);
}

void trace_dir_line(struct trace_dir *dir, struct trace_file *file) {
    if (file->pending.failed) {
        stop(dir, file, "out of memory");
        return;
    }
    file->pending_lines++;
    if (file->pending.size >= FLUSH_BYTES) flush_file(dir, file);
}

void trace_dir_flush(struct trace_dir *dir) {
    flush_file(dir, &dir->requests);
    flush_file(dir, &dir->batches);
}

enum status trace_dir_attach(const struct trace_dir *dir, const char *name, struct view text,
                             struct err *err) {
    if (*name == '\0' || strchr(name, '/') != NULL) {
        return err_set(err, ST_INVALID, "\"%s\" is not a file name", name);
    }
    const int fd = openat(dir->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        return err_set(err, ST_IO, "creating %s/%s: %s", dir->path, name, strerror(errno));
    }
    enum status status = ST_OK;
    if (write_all(fd, text.data, text.size) < text.size) {
        status = err_set(err, ST_IO, "writing %s/%s: %s", dir->path, name, strerror(errno));
    }
    if (close(fd) != 0 && status == ST_OK) {
        status = err_set(err, ST_IO, "closing %s/%s: %s", dir->path, name, strerror(errno));
    }
    if (status != ST_OK) unlinkat(dir->fd, name, 0); /* half a file misleads; none is seen */
    return status;
}
