/* Number and text questions that the C++ library answers best; for infer_write.c. Implemented in
 * infer_json.cc. */
#ifndef TELLTALE_PROTO_JSON_TEXT_H
#define TELLTALE_PROTO_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum { JSON_TEXT_MAX_NUMBER = 32 };

/* Shortest text that reads back as value, not terminated; returns its size. Finite values only. */
size_t json_text_f32(float value, char out[JSON_TEXT_MAX_NUMBER]);
size_t json_text_f64(double value, char out[JSON_TEXT_MAX_NUMBER]);
bool json_text_is_utf8(const char *text, size_t size);

#endif
