/* What HTTP/1.1 messages begin with, written into a buffer without printf: this is on the path
 * of every request. Any thread. Read next: http1.c for the other direction. */
#include "proto/http1.h"

#include <strings.h>

struct view http_header(const struct http_message *message, const char *name) {
    const size_t size = strlen(name);
    for (uint32_t i = 0; i < message->header_count; i++) {
        const struct http_header *header = &message->headers[i];
        if (header->name.size == size && strncasecmp(header->name.data, name, size) == 0)
            return header->value;
    }
    return (struct view){0};
}

const char *http_reason(int status) {
    switch (status) {
    case 100: return "Continue";
    case 200: return "OK";
    case 204: return "No Content";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 499: return "Client Closed Request";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return "Unknown";
    }
}

void http_write_request(struct buf *out, const char *method, const char *path, const char *host,
                        const char *extra_headers, size_t body_size) {
    buf_text(out, method);
    buf_char(out, ' ');
    buf_text(out, path);
    buf_text(out, " HTTP/1.1\r\nHost: ");
    buf_text(out, host);
    buf_text(out, "\r\n");
    if (body_size > 0 || strcmp(method, "POST") == 0) {
        buf_text(out, "Content-Length: ");
        buf_u64(out, body_size);
        buf_text(out, "\r\n");
    }
    if (extra_headers)
        buf_text(out, extra_headers);
    buf_text(out, "\r\n");
}

void http_write_response(struct buf *out, int status, const char *content_type, size_t body_size,
                         bool keep_alive, struct view extra_headers) {
    buf_text(out, "HTTP/1.1 ");
    buf_u64(out, (uint64_t)status);
    buf_char(out, ' ');
    buf_text(out, http_reason(status));
    buf_text(out, "\r\nContent-Length: ");
    buf_u64(out, body_size);
    if (content_type) {
        buf_text(out, "\r\nContent-Type: ");
        buf_text(out, content_type);
    }
    buf_text(out, keep_alive ? "\r\n" : "\r\nConnection: close\r\n");
    buf_append(out, extra_headers.data, extra_headers.size);
    buf_text(out, "\r\n");
}
