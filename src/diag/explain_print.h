/* What explain found, for people and for machines. Both append to out. */
#ifndef TELLTALE_DIAG_EXPLAIN_PRINT_H
#define TELLTALE_DIAG_EXPLAIN_PRINT_H

#include "base/buf.h"
#include "diag/findings.h"

/* Plain text. False when memory was out. */
bool explain_print(const char *directory, const struct evidence *evidence,
                   const struct findings *findings, struct buf *out);
/* One JSON document, docs/explain.md. */
MUST_CHECK enum status explain_json(const char *directory, const struct evidence *evidence,
                                    const struct findings *findings, struct buf *out);

#endif
