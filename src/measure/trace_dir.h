/* The directory of a run and its two growing files. The first failure to write ends the
 * writing: what is on disk by then stays, in whole lines. */
#ifndef TELLTALE_MEASURE_TRACE_DIR_H
#define TELLTALE_MEASURE_TRACE_DIR_H

#include "base/buf.h"
#include "base/status.h"

struct trace_file {
    const char *name;
    int fd;
    struct buf pending;     /* whole lines, not yet written */
    uint64_t pending_lines;
    uint64_t lines, bytes;  /* written */
};

struct trace_dir {
    char *path;
    int fd;
    struct trace_file requests, batches;
    uint64_t max_bytes;     /* of both files; 0: no limit */
    bool is_stopped;        /* writing failed: error says how */
    struct err error;
};

/* Creates the directory (and those above it) and the files; a directory that holds a run is an
 * error. On failure nothing is left to close (a directory that was made stays). */
MUST_CHECK enum status trace_dir_open(struct trace_dir *dir, const char *path, uint64_t max_bytes,
                                      struct err *err);
/* Closes without flushing. */
void trace_dir_close(struct trace_dir *dir);
/* Closes and removes the two files (a directory that was made stays). */
void trace_dir_discard(struct trace_dir *dir);
/* After a line was appended to file->pending: counts it; writes when enough has come together. */
void trace_dir_line(struct trace_dir *dir, struct trace_file *file);
/* Writes what is pending of both. */
void trace_dir_flush(struct trace_dir *dir);
/* A file of its own, written once. Any thread. */
MUST_CHECK enum status trace_dir_attach(const struct trace_dir *dir, const char *name,
                                        struct view text, struct err *err);

#endif
