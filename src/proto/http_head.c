/* The header block: a strict pre-scan with sentences that name the fault, then llhttp for the
 * last word on method, version, length and keep-alive. Any thread; nothing is allocated.
 *
 * Why two: the llhttp of Debian 12 (8.1.0) takes a bare CR for the end of a header value
 * (CVE-2023-30589) and folds continuation lines (class of CVE-2024-27982), and it leaves Host to
 * its caller. What the pre-scan lets through, every llhttp from 8.1 to 9.x reads alike.
 *
 * Invariant: both readers see the same number of headers, or the message is rejected.
 *
 * Read next: http1.c. */
#include "proto/http_head.h"

#include <llhttp.h>
#include <stdio.h>
#include <strings.h>

static bool same_word(struct view a, const char *word) {
    return a.size == strlen(word) && strncasecmp(a.data, word, a.size) == 0;
}

static struct view trim_blanks(struct view v) {
    while (v.size > 0 && (v.data[0] == ' ' || v.data[0] == '\t')) {
        v.data++;
        v.size--;
    }
    while (v.size > 0 && (v.data[v.size - 1] == ' ' || v.data[v.size - 1] == '\t'))
        v.size--;
    return v;
}

enum status http_head_check_line(struct view line, bool is_first, struct err *err) {
    const char *cr = memchr(line.data, '\r', line.size);
    if (!cr)
        return err_set(err, ST_INVALID,
                       "a line of the header ends in LF without CR (bare line feed)");
    if (cr != line.data + line.size - 2)
        return err_set(err, ST_INVALID, "the header holds a bare carriage return (CR without LF)");
    if (memchr(line.data, '\0', line.size))
        return err_set(err, ST_INVALID, "the header holds a NUL byte");
    if (line.data[0] == ' ' || line.data[0] == '\t')
        return err_set(err, ST_INVALID,
                       is_first ? "the first line begins with a blank"
                                : "the header holds a continuation line (a line that begins with "
                                  "a blank: obsolete folding)");
    return ST_OK;
}

/* "name", shortened and with odd bytes as '?', for an error's sentence. */
static const char *show(struct view text, char out[48]) {
    size_t n = text.size < 40 ? text.size : 40;
    for (size_t i = 0; i < n; i++)
        out[i] = text.data[i] >= 0x20 && text.data[i] < 0x7f ? text.data[i] : '?';
    memcpy(out + n, text.size > n ? "..." : "", text.size > n ? 4 : 1);
    return out;
}

/* RFC 9110, tchar: letters, digits and !#$%&'*+-.^_`|~, a bit each. */
bool http_is_token_char(unsigned char c) {
    static const uint64_t BITS[2] = {0x03ff6cfa00000000u, 0x57ffffffc7fffffeu};
    return c < 128 && (BITS[c / 64] >> c % 64 & 1) != 0;
}

/* RFC 3986, host and port: letters, digits and -._~%!$&'()*+,;=[]: and nothing else; a bit each.
 * Which of them stand where is for whoever looks a host up, and nobody does. */
static bool is_host(struct view text) {
    static const uint64_t BITS[2] = {0x2fff7ff200000000u, 0x47fffffeaffffffeu};
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        if (c >= 128 || (BITS[c / 64] >> c % 64 & 1) == 0)
            return false;
    }
    return true;
}

static bool is_token(struct view text) {
    for (size_t i = 0; i < text.size; i++)
        if (!http_is_token_char((unsigned char)text.data[i]))
            return false;
    return text.size > 0;
}

static bool is_printable(struct view text) {
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] <= 0x20 || text.data[i] > 0x7e) /* bytes from 0x80 are negative */
            return false;
    return text.size > 0;
}

/* path and query of target; an absolute target's scheme and authority are left out. RFC 9112, 3.2:
 * a path, a URL of ours, "*" for OPTIONS, an authority for CONNECT. */
static enum status split_target(struct view method, struct http_message *message,
                                struct err *err) {
    struct view rest = message->target;
    char shown[48];
    if (memchr(rest.data, '#', rest.size))
        return err_set(err, ST_INVALID, "the request target %s holds a '#'", show(rest, shown));
    size_t scheme = 0;
    if (rest.size >= 7 && strncasecmp(rest.data, "http://", 7) == 0)
        scheme = 7;
    else if (rest.size >= 8 && strncasecmp(rest.data, "https://", 8) == 0)
        scheme = 8;
    if (scheme > 0) {
        rest.data += scheme;
        rest.size -= scheme;
        const char *authority = rest.data;
        while (rest.size > 0 && rest.data[0] != '/' && rest.data[0] != '?') {
            rest.data++;
            rest.size--;
        }
        if (rest.data == authority)
            return err_set(err, ST_INVALID, "the request target %s names no host",
                           show(message->target, shown));
    } else if (rest.data[0] != '/' && !view_is(method, "CONNECT") &&
               !(view_is(rest, "*") && view_is(method, "OPTIONS"))) {
        return err_set(err, ST_INVALID, "the request target %s is neither a path nor a URL of "
                       "http or https", show(message->target, shown));
    }
    const char *mark = rest.size > 0 ? memchr(rest.data, '?', rest.size) : NULL;
    message->path = rest;
    message->query = (struct view){.data = rest.data + rest.size, .size = 0};
    if (mark) {
        message->path.size = (size_t)(mark - rest.data);
        message->query.data = mark + 1;
        message->query.size = rest.size - message->path.size - 1;
    }
    if (message->path.size == 0)
        message->path = view_of("/"); /* "http://host" means its root */
    return ST_OK;
}

/* "POST /v2 HTTP/1.1", without the line end. */
static enum status check_request_line(struct view line, struct http_message *message,
                                      struct err *err) {
    char shown[48];
    if (line.data[0] == 0x16)
        return err_set(err, ST_INVALID,
                       "this looks like TLS, and this port speaks plain HTTP: use http://");
    if (view_is(line, "PRI * HTTP/2.0"))
        return err_set(err, ST_INVALID, "this looks like HTTP/2 (or gRPC), and this port speaks "
                                        "HTTP/1.1");
    const char *end = line.data + line.size;
    const char *first = memchr(line.data, ' ', line.size);
    const char *last = memrchr(line.data, ' ', line.size);
    if (!first || first == last)
        return err_set(err, ST_INVALID, "the request line \"%s\" is not METHOD TARGET VERSION",
                       show(line, shown));
    const struct view method = {.data = line.data, .size = (size_t)(first - line.data)};
    const struct view target = {.data = first + 1, .size = (size_t)(last - first - 1)};
    const struct view version = {.data = last + 1, .size = (size_t)(end - last - 1)};
    if (!is_token(method))
        return err_set(err, ST_INVALID, "the method \"%s\" is not a word", show(method, shown));
    if (!view_is(version, "HTTP/1.1") && !view_is(version, "HTTP/1.0"))
        return err_set(err, ST_INVALID, "the version \"%s\" is neither HTTP/1.1 nor HTTP/1.0",
                       show(version, shown));
    if (!is_printable(target))
        return err_set(err, ST_INVALID,
                       "the request target \"%s\" is empty or holds a blank, a control "
                       "character or a byte above 126",
                       show(target, shown));
    message->target = target;
    return split_target(method, message, err);
}

/* Splits "Name: value" lines into message->headers. */
static enum status split_headers(const char *at, const char *end, struct http_message *message,
                                 struct err *err) {
    char shown[48];
    while (end - at > 2) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        const struct view line = {.data = at, .size = (size_t)(eol - 1 - at)};
        const char *colon = memchr(line.data, ':', line.size);
        if (!colon)
            return err_set(err, ST_INVALID, "the header line \"%s\" has no colon",
                           show(line, shown));
        const struct view name = {.data = at, .size = (size_t)(colon - at)};
        if (name.size > 0 && (colon[-1] == ' ' || colon[-1] == '\t'))
            return err_set(err, ST_INVALID, "header \"%s\" has a blank before its colon",
                           show(name, shown));
        if (!is_token(name))
            return err_set(err, ST_INVALID, "header name \"%s\" is empty or holds a character "
                                            "that names cannot have", show(name, shown));
        if (message->header_count == HTTP_MAX_HEADERS)
            return err_set(err, ST_HEADER_TOO_LARGE, "the message has more than %d headers",
                           HTTP_MAX_HEADERS);
        message->headers[message->header_count++] = (struct http_header){
            .name = name,
            .value = trim_blanks((struct view){.data = colon + 1,
                                               .size = (size_t)(eol - 1 - colon - 1)})};
        at = eol + 1;
    }
    return ST_OK;
}

struct header_counts {
    uint32_t host, length, encoding;
};

static enum status check_length(struct view value, struct err *err) {
    char shown[48];
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < '0' || value.data[i] > '9')
            return err_set(err, ST_INVALID, "Content-Length \"%s\" is not a number of bytes",
                           show(value, shown));
    if (value.size == 0)
        return err_set(err, ST_INVALID, "Content-Length is empty");
    if (value.size > 19) /* 19 digits fit 64 bits */
        return err_set(err, ST_TOO_LARGE, "Content-Length %s is beyond all limits",
                       show(value, shown));
    return ST_OK;
}

static enum status check_headers(const struct http_message *message, struct header_counts *counts,
                                 bool *out_expects_continue, struct err *err) {
    char shown[48];
    for (uint32_t i = 0; i < message->header_count; i++) {
        const struct view name = message->headers[i].name;
        const struct view value = message->headers[i].value;
        enum status status = ST_OK;
        switch (name.size) { /* most headers differ in length from these already */
        case 4:
            if (!same_word(name, "Host"))
                break;
            counts->host++;
            if (!is_host(value))
                status = err_set(err, ST_INVALID, "Host \"%s\" is not HOST or HOST:PORT",
                                 show(value, shown));
            break;
        case 6:
            if (same_word(name, "Expect"))
                *out_expects_continue = same_word(value, "100-continue");
            break;
        case 14:
            if (same_word(name, "Content-Length")) {
                counts->length++;
                status = check_length(value, err);
            }
            break;
        case 17:
            if (!same_word(name, "Transfer-Encoding"))
                break;
            counts->encoding++;
            if (!same_word(value, "chunked"))
                status = err_set(err, ST_UNSUPPORTED, "Transfer-Encoding \"%s\" is not supported, "
                                                      "only chunked", show(value, shown));
            break;
        default:
            break;
        }
        if (status != ST_OK)
            return status;
    }
    if (counts->length > 0 && counts->encoding > 0)
        return err_set(err, ST_INVALID,
                       "the message has both Content-Length and Transfer-Encoding");
    if (counts->length > 1)
        return err_set(err, ST_INVALID, "the message has more than one Content-Length");
    if (counts->encoding > 1)
        return err_set(err, ST_INVALID, "the message has more than one Transfer-Encoding");
    return ST_OK;
}

/* What llhttp found, taken while it is at the end of the headers. */
struct llhttp_view {
    uint32_t header_count;
    bool complete;
    bool keep_alive;
    uint8_t method;
    uint8_t major, minor;
    uint16_t status, flags;
    uint64_t content_length;
    bool needs_eof;
};

static int count_header(llhttp_t *llhttp) {
    struct llhttp_view *seen = llhttp->data;
    seen->header_count++;
    return 0;
}

static int take_result(llhttp_t *llhttp) {
    struct llhttp_view *seen = llhttp->data;
    seen->complete = true;
    seen->keep_alive = llhttp_should_keep_alive(llhttp) != 0;
    seen->needs_eof = llhttp_message_needs_eof(llhttp) != 0;
    seen->method = llhttp->method;
    seen->major = llhttp->http_major;
    seen->minor = llhttp->http_minor;
    seen->status = llhttp->status_code;
    seen->flags = llhttp->flags;
    seen->content_length = llhttp->content_length;
    return HPE_PAUSED; /* the body is http1.c's */
}

static enum status ask_llhttp(struct view block, bool is_response, struct llhttp_view *seen,
                              uint32_t expected_headers, struct err *err) {
    llhttp_settings_t settings;
    llhttp_settings_init(&settings);
    settings.on_header_value_complete = count_header;
    settings.on_headers_complete = take_result;
    llhttp_t llhttp;
    llhttp_init(&llhttp, is_response ? HTTP_RESPONSE : HTTP_REQUEST, &settings);
    llhttp.data = seen;
    const llhttp_errno_t result = llhttp_execute(&llhttp, block.data, block.size);
    if (!seen->complete) {
        const char *reason = llhttp_get_error_reason(&llhttp);
        return err_set(err, ST_INVALID, "the header does not parse: %s",
                       result != HPE_OK && reason && reason[0] ? reason : "it ends too early");
    }
    if (seen->header_count != expected_headers)
        return err_set(err, ST_INVALID, "the header can be read in two ways (%u or %u headers)",
                       expected_headers, seen->header_count);
    return ST_OK;
}

static enum http_method method_of(uint8_t method) {
    switch (method) {
    case HTTP_GET: return HTTP_METHOD_GET;
    case HTTP_HEAD: return HTTP_METHOD_HEAD;
    case HTTP_POST: return HTTP_METHOD_POST;
    case HTTP_PUT: return HTTP_METHOD_PUT;
    default: return HTTP_METHOD_OTHER;
    }
}

static enum http_framing framing_of(const struct llhttp_view *seen, bool is_response) {
    if (is_response && (seen->status / 100 == 1 || seen->status == 204 || seen->status == 304))
        return HTTP_FRAMING_NONE;
    if (seen->flags & F_CHUNKED)
        return HTTP_FRAMING_CHUNKED;
    if (seen->flags & F_CONTENT_LENGTH)
        return seen->content_length > 0 ? HTTP_FRAMING_LENGTH : HTTP_FRAMING_NONE;
    return is_response ? HTTP_FRAMING_UNTIL_EOF : HTTP_FRAMING_NONE;
}

static enum status check_host(const struct llhttp_view *seen, const struct header_counts *counts,
                              struct err *err) {
    if (counts->host > 1)
        return err_set(err, ST_INVALID, "the request has more than one Host header");
    if (counts->host == 0 && seen->minor == 1)
        return err_set(err, ST_INVALID, "the request has no Host header");
    if (counts->encoding > 0 && seen->minor == 0)
        return err_set(err, ST_INVALID, "Transfer-Encoding is not part of HTTP/1.0");
    return ST_OK;
}

enum status http_head_parse(struct view block, bool is_response, struct http_message *message,
                            struct http_framing_info *out_framing, struct err *err) {
    message->header_count = 0;
    message->target = message->path = message->query = (struct view){0};
    const char *eol = memchr(block.data, '\n', block.size);
    enum status status = ST_OK;
    if (!is_response)
        status = check_request_line((struct view){.data = block.data,
                                                  .size = (size_t)(eol - 1 - block.data)},
                                    message, err);
    if (status == ST_OK)
        status = split_headers(eol + 1, block.data + block.size, message, err);
    struct header_counts counts = {0};
    bool expects_continue = false;
    if (status == ST_OK)
        status = check_headers(message, &counts, &expects_continue, err);
    struct llhttp_view seen = {0};
    if (status == ST_OK)
        status = ask_llhttp(block, is_response, &seen, message->header_count, err);
    if (status == ST_OK && !is_response)
        status = check_host(&seen, &counts, err);
    if (status == ST_OK && (seen.major != 1 || seen.minor > 1))
        status = err_set(err, ST_INVALID, "HTTP/%u.%u is neither HTTP/1.1 nor HTTP/1.0",
                         seen.major, seen.minor);
    if (status != ST_OK)
        return status;
    message->method = is_response ? HTTP_METHOD_OTHER : method_of(seen.method);
    message->status = is_response ? seen.status : 0;
    message->expects_continue = expects_continue && !is_response && seen.minor == 1;
    out_framing->framing = framing_of(&seen, is_response);
    out_framing->content_length = seen.content_length;
    /* An HTTP/1.0 client that asks for keep-alive waits for a header that says so; ending the
     * connection is always right. */
    message->keep_alive = seen.keep_alive && out_framing->framing != HTTP_FRAMING_UNTIL_EOF &&
                          (is_response || seen.minor == 1);
    return ST_OK;
}
