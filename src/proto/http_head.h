/* The header block of one message, in two steps: each line is checked as it arrives
 * (http_head_check_line), and the whole block is parsed when its blank line is there
 * (http_head_parse). For http1.c only. */
#ifndef TELLTALE_PROTO_HTTP_HEAD_H
#define TELLTALE_PROTO_HTTP_HEAD_H

#include "proto/http1.h"

enum http_framing {
    HTTP_FRAMING_NONE,    /* no body */
    HTTP_FRAMING_LENGTH,  /* Content-Length */
    HTTP_FRAMING_CHUNKED,
    HTTP_FRAMING_UNTIL_EOF /* responses only */
};

struct http_framing_info {
    enum http_framing framing;
    uint64_t content_length;
};

/* RFC 9110, tchar: what names of fields consist of. */
bool http_is_token_char(unsigned char c);

/* line: with its line feed. Rejects a bare LF, a bare CR, a NUL and a folded line. */
MUST_CHECK enum status http_head_check_line(struct view line, bool is_first, struct err *err);

/* block: checked lines up to and with the blank one; message's views point into it. Everything
 * in message but body is set. */
MUST_CHECK enum status http_head_parse(struct view block, bool is_response,
                                       struct http_message *message,
                                       struct http_framing_info *out_framing, struct err *err);

#endif
