/* ONNX Runtime's error texts, made fit for one line to a client. Pure. */
#ifndef TELLTALE_INFER_ORT_MESSAGE_H
#define TELLTALE_INFER_ORT_MESSAGE_H

#include "base/status.h"
#include <stddef.h>

/* "Non-zero status code returned while running Gather node. Name:'g' Status Message: /src/x.cc:12
 * f() c was false. indices ..." becomes "Gather node 'g': indices ...". Returns out. */
char *ort_message_shorten(const char *text, char *out, size_t out_size);
/* What a failed run means, where ONNX Runtime's own code (is_invalid_argument) is too coarse:
 * kernels report a shape that cannot be as a plain failure. */
enum status ort_message_status(const char *text, bool is_invalid_argument);

#endif
