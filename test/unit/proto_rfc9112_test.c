/* RFC 9112 as a table: bytes of a connection in, what a server makes of them out. Every input is fed
 * whole, byte by byte, and cut in two at every place; all must give the same.
 *
 * The outcome is a text: "POST /path?query {body}" for each message, " close" behind one after
 * which the connection ends, " expects" behind one that waits for 100 Continue, then the status of
 * a fault, or "..." where more is waited for. Where the standard leaves a choice the sentence says
 * what was chosen. */
#include "proto/http1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
/* after the above */
#include <cmocka.h>

struct example {
    const char *sentence, *bytes;
    size_t size;
    const char *outcome;
};
#define BYTES(text) text, sizeof(text) - 1
#define H "Host: x\r\n"
#define POST "POST /p HTTP/1.1\r\n" H
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define TEN "0123456789"
#define FIFTY TEN TEN TEN TEN TEN

/* 2: message format, 3: request line */
static const struct example LINES[] = {
    {"a request without a body is whole at its blank line", BYTES("GET / HTTP/1.1\r\n" H "\r\n"),
     "GET / {}"},
    {"nothing is nothing", BYTES(""), "..."},
    {"half a request line is waited for", BYTES("GET / HT"), "..."},
    {"a header without its blank line is waited for", BYTES("GET / HTTP/1.1\r\n" H), "..."},
    {"one blank line before a request is passed over", BYTES("\r\nGET / HTTP/1.1\r\n" H "\r\n"),
     "GET / {}"},
    {"a few blank lines too", BYTES("\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n"), "GET / {}"},
    {"blank lines without end are a fault", BYTES("\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n"),
     "400"},
    {"a blank line after a message with a body is passed over",
     BYTES(POST "Content-Length: 1\r\n\r\na\r\nGET / HTTP/1.1\r\n" H "\r\n"),
     "POST /p {a} | GET / {}"},
    {"line feeds alone end no line", BYTES("GET / HTTP/1.1\n" "Host: x\n\n"), "400"},
    {"one line feed alone is a fault", BYTES("GET / HTTP/1.1\r\nHost: x\n\r\n"), "400"},
    {"the blank line needs its CR", BYTES("GET / HTTP/1.1\r\n" H "\n"), "400"},
    {"a CR alone in the request line is a fault", BYTES("GET /\r HTTP/1.1\r\n" H "\r\n"), "400"},
    {"a CR alone in a value is a fault", BYTES("GET / HTTP/1.1\r\n" H "A: b\rc\r\n\r\n"), "400"},
    {"a CR alone that hides a header is a fault",
     BYTES(POST "A: b\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "400"},
    {"CR CR LF is a fault", BYTES("GET / HTTP/1.1\r\r\n" H "\r\n"), "400"},
    {"white space before the first header is a fault", BYTES("GET / HTTP/1.1\r\n " H "\r\n"),
     "400"},
    {"white space before the request line is a fault", BYTES(" GET / HTTP/1.1\r\n" H "\r\n"),
     "400"},
    {"the method is case-sensitive: get is none", BYTES("get / HTTP/1.1\r\n" H "\r\n"), "400"},
    {"a method that nobody knows is a fault", BYTES("FROB / HTTP/1.1\r\n" H "\r\n"), "400"},
    {"a method of other characters is a fault", BYTES("GE:T / HTTP/1.1\r\n" H "\r\n"), "400"},
    {"two blanks in the request line are a fault", BYTES("GET  / HTTP/1.1\r\n" H "\r\n"), "400"},
    {"a tab in the request line is a fault", BYTES("GET\t/ HTTP/1.1\r\n" H "\r\n"), "400"},
    {"a blank at the request line's end is a fault", BYTES("GET / HTTP/1.1 \r\n" H "\r\n"), "400"},
    {"a blank in the target is a fault and not mended", BYTES("GET /a b HTTP/1.1\r\n" H "\r\n"),
     "400"},
    {"HTTP/0.9 is not spoken", BYTES("GET /\r\n"), "..."},
    {"nor with a blank line", BYTES("GET /\r\n\r\n"), "400"},
    {"HTTP/2.0 in a request line is a fault", BYTES("GET / HTTP/2.0\r\n" H "\r\n"), "400"},
    {"HTTP/1.2 is a fault (it may be taken for 1.1)", BYTES("GET / HTTP/1.2\r\n" H "\r\n"), "400"},
    {"a version of two digits is a fault", BYTES("GET / HTTP/1.10\r\n" H "\r\n"), "400"},
    {"the version's name is case-sensitive", BYTES("GET / http/1.1\r\n" H "\r\n"), "400"},
    {"another protocol's name is a fault", BYTES("GET / ICY/1.1\r\n" H "\r\n"), "400"},
    {"HTTP/2's preface is a fault here", BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "400"},
    {"a TLS hello is a fault here", BYTES("\x16\x03\x01\x00\x05hello\r\n\r\n"), "400"},
};

/* 3.2: request target, 3.3: Host */
static const struct example TARGETS[] = {
    {"origin form has path and query", BYTES("GET /a/b?c=d&e HTTP/1.1\r\n" H "\r\n"),
     "GET /a/b?c=d&e {}"},
    {"a query may be empty", BYTES("GET /a? HTTP/1.1\r\n" H "\r\n"), "GET /a {}"},
    {"a path is not decoded here", BYTES("GET /%2e%2E/%00 HTTP/1.1\r\n" H "\r\n"),
     "GET /%2e%2E/%00 {}"},
    {"absolute form gives its path", BYTES("GET http://a:1/b?c HTTP/1.1\r\n" H "\r\n"),
     "GET /b?c {}"},
    {"absolute form of https too", BYTES("GET https://a/b HTTP/1.1\r\n" H "\r\n"), "GET /b {}"},
    {"absolute form without a path means the root", BYTES("GET http://a HTTP/1.1\r\n" H "\r\n"),
     "GET / {}"},
    {"absolute form still needs a Host", BYTES("GET http://a/ HTTP/1.1\r\n\r\n"), "400"},
    {"absolute form without a host is a fault", BYTES("GET http:///b HTTP/1.1\r\n" H "\r\n"), "400"},
    {"absolute form of another scheme is a fault", BYTES("GET ftp://a/b HTTP/1.1\r\n" H "\r\n"),
     "400"},
    {"asterisk form is for OPTIONS", BYTES("OPTIONS * HTTP/1.1\r\n" H "\r\n"), "OTHER * {}"},
    {"asterisk form of GET is a fault", BYTES("GET * HTTP/1.1\r\n" H "\r\n"), "400"},
    {"a target that is no path is a fault", BYTES("GET a/b HTTP/1.1\r\n" H "\r\n"), "400"},
    {"a fragment is a fault", BYTES("GET /a#b HTTP/1.1\r\n" H "\r\n"), "400"},
    {"a control character in the target is a fault", BYTES("GET /\x01 HTTP/1.1\r\n" H "\r\n"),
     "400"},
    {"DEL in the target is a fault", BYTES("GET /\x7f HTTP/1.1\r\n" H "\r\n"), "400"},
    {"a byte above 127 in the target is a fault", BYTES("GET /\xe4 HTTP/1.1\r\n" H "\r\n"), "400"},
    {"a NUL in the target is a fault", BYTES("GET /\0 HTTP/1.1\r\n" H "\r\n"), "400"},
    {"HTTP/1.1 needs a Host", BYTES("GET / HTTP/1.1\r\n\r\n"), "400"},
    {"HTTP/1.0 does not", BYTES("GET / HTTP/1.0\r\n\r\n"), "GET / {} close"},
    {"two Hosts are a fault", BYTES("GET / HTTP/1.1\r\n" H H "\r\n"), "400"},
    {"two Hosts are a fault in HTTP/1.0 too", BYTES("GET / HTTP/1.0\r\n" H H "\r\n"), "400"},
    {"a Host may be empty", BYTES("GET / HTTP/1.1\r\nHost:\r\n\r\n"), "GET / {}"},
    {"a Host may have a port", BYTES("GET / HTTP/1.1\r\nHost: a.b:80\r\n\r\n"), "GET / {}"},
    {"a Host may be an IPv6 address", BYTES("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"),
     "GET / {}"},
    {"a Host with a blank is a fault", BYTES("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), "400"},
    {"a Host that is a list is a fault", BYTES("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"), "400"},
    {"a Host with a path is a fault", BYTES("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), "400"},
    {"a Host with user information is a fault", BYTES("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
     "400"},
    {"a Host with a byte above 127 is a fault", BYTES("GET / HTTP/1.1\r\nHost: \xe4\r\n\r\n"),
     "400"},
};

/* 5: field syntax */
static const struct example FIELDS[] = {
    {"names are not case-sensitive", BYTES("POST / HTTP/1.1\r\nhOST: x\r\ncONTENT-lENGTH: 1\r\n\r\na"),
     "POST / {a}"},
    {"blanks around a value are not part of it",
     BYTES("POST / HTTP/1.1\r\n" H "Content-Length: \t 1 \r\n\r\na"), "POST / {a}"},
    {"no blank behind the colon is needed", BYTES("POST / HTTP/1.1\r\n" H "Content-Length:1\r\n\r\na"),
     "POST / {a}"},
    {"a blank before the colon is a fault", BYTES(POST "Content-Length : 1\r\n\r\na"), "400"},
    {"a tab before the colon is a fault", BYTES(POST "Content-Length\t: 1\r\n\r\na"), "400"},
    {"a folded value is a fault", BYTES(POST "A: b\r\n c\r\n\r\n"), "400"},
    {"a value folded by a tab is a fault", BYTES(POST "A: b\r\n\tc\r\n\r\n"), "400"},
    {"a folded Content-Length is a fault", BYTES(POST "Content-Length:\r\n 1\r\n\r\na"), "400"},
    {"a line without a colon is a fault", BYTES(POST "A\r\n\r\n"), "400"},
    {"a name that is empty is a fault", BYTES(POST ": a\r\n\r\n"), "400"},
    {"a name with a blank is a fault", BYTES(POST "A b: c\r\n\r\n"), "400"},
    {"a name with brackets is a fault", BYTES(POST "A[0]: c\r\n\r\n"), "400"},
    {"a name with a byte above 127 is a fault", BYTES(POST "\xc3\xa4: c\r\n\r\n"), "400"},
    {"a NUL in a name is a fault", BYTES(POST "A\0: c\r\n\r\n"), "400"},
    {"a NUL in a value is a fault", BYTES(POST "A: b\0c\r\n\r\n"), "400"},
    {"a control character in a value is a fault", BYTES(POST "A: b\x02\r\n\r\n"), "400"},
    {"DEL in a value is a fault", BYTES(POST "A: b\x7f\r\n\r\n"), "400"},
    {"a tab in a value is none", BYTES("GET / HTTP/1.1\r\n" H "A: b\tc\r\n\r\n"), "GET / {}"},
    {"bytes above 127 in a value are none", BYTES("GET / HTTP/1.1\r\n" H "A: \xc3\xa4\r\n\r\n"),
     "GET / {}"},
    {"a value may be empty", BYTES("GET / HTTP/1.1\r\n" H "A:\r\n\r\n"), "GET / {}"},
    {"quotes mean nothing to the line's end", BYTES("GET / HTTP/1.1\r\n" H "A: \"b\r\n\r\n"),
     "GET / {}"},
    {"a field may come twice", BYTES("GET / HTTP/1.1\r\n" H "A: b\r\nA: c\r\n\r\n"), "GET / {}"},
    {"a header over the limit is a fault", BYTES("GET / HTTP/1.1\r\n" H "A: " FIFTY FIFTY FIFTY
     FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY
     FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY
     FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY "\r\n\r\n"), "431"},
    {"a target over the limit is a fault", BYTES("GET /" FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY
     FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY
     FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY
     FIFTY FIFTY), "431"},
};

/* 6: message body */
static const struct example LENGTHS[] = {
    {"a body has its length", BYTES(POST "Content-Length: 3\r\n\r\nabc"), "POST /p {abc}"},
    {"a body that is not whole is waited for", BYTES(POST "Content-Length: 3\r\n\r\nab"), "..."},
    {"a length of 0 is no body", BYTES(POST "Content-Length: 0\r\n\r\n"), "POST /p {}"},
    {"no length is no body", BYTES(POST "\r\n"), "POST /p {}"},
    {"a GET may have a body", BYTES("GET / HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\na"),
     "GET / {a}"},
    {"a HEAD may have a body", BYTES("HEAD / HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\na"),
     "HEAD / {a}"},
    {"what follows a body is the next message",
     BYTES(POST "Content-Length: 1\r\n\r\naGET /b HTTP/1.1\r\n" H "\r\n"), "POST /p {a} | GET /b {}"},
    {"zeros may lead a length", BYTES(POST "Content-Length: 0001\r\n\r\na"), "POST /p {a}"},
    {"a sign is a fault", BYTES(POST "Content-Length: +1\r\n\r\na"), "400"},
    {"a minus too", BYTES(POST "Content-Length: -1\r\n\r\na"), "400"},
    {"a length in hexadecimal is a fault", BYTES(POST "Content-Length: 0x1\r\n\r\na"), "400"},
    {"a length with a fraction is a fault", BYTES(POST "Content-Length: 1.0\r\n\r\na"), "400"},
    {"an exponent is a fault", BYTES(POST "Content-Length: 1e0\r\n\r\na"), "400"},
    {"two numbers in a length are a fault", BYTES(POST "Content-Length: 1 1\r\n\r\na"), "400"},
    {"a length with an underscore is a fault", BYTES(POST "Content-Length: 1_0\r\n\r\na"), "400"},
    {"an empty length is a fault", BYTES(POST "Content-Length: \r\n\r\n"), "400"},
    {"a list of equal lengths is a fault (it may be mended)",
     BYTES(POST "Content-Length: 1, 1\r\n\r\na"), "400"},
    {"a list of other lengths is a fault", BYTES(POST "Content-Length: 1, 2\r\n\r\nab"), "400"},
    {"two lengths are a fault", BYTES(POST "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
     "400"},
    {"two equal lengths are a fault (they may be mended)",
     BYTES(POST "Content-Length: 1\r\nContent-Length: 1\r\n\r\na"), "400"},
    {"a length over the limit is refused at once", BYTES(POST "Content-Length: 1001\r\n\r\n"),
     "413"},
    {"a length that fits no number is refused",
     BYTES(POST "Content-Length: 18446744073709551617\r\n\r\na"), "413"},
    {"a length and chunks are a fault",
     BYTES(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "400"},
    {"chunks and a length are a fault",
     BYTES(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"), "400"},
    {"a coding that is not chunked is not supported",
     BYTES(POST "Transfer-Encoding: gzip\r\n\r\n"), "501"},
    {"nor one before chunked", BYTES(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), "501"},
    {"nor identity", BYTES(POST "Transfer-Encoding: identity\r\n\r\n"), "501"},
    {"nor chunked twice", BYTES(POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"), "501"},
    {"nor chunked first", BYTES(POST "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"), "501"},
    {"nor a word around it", BYTES(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), "501"},
    {"nor quotes", BYTES(POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"), "501"},
    {"nor a vertical tab before it", BYTES(POST "Transfer-Encoding: \x0b" "chunked\r\n\r\n"),
     "501"},
    {"nor an empty one", BYTES(POST "Transfer-Encoding:\r\n\r\n"), "501"},
    {"two codings in two lines are a fault",
     BYTES(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"), "400"},
    {"a coding in HTTP/1.0 is a fault",
     BYTES("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "400"},
};

/* 7: transfer codings */
static const struct example CHUNKS[] = {
    {"chunks make a body", BYTES(CHUNKED "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), "POST /p {abcde}"},
    {"no chunks make an empty one", BYTES(CHUNKED "0\r\n\r\n"), "POST /p {}"},
    {"sizes are hexadecimal, in either case", BYTES(CHUNKED "A\r\n" TEN "\r\na\r\n" TEN
     "\r\n0\r\n\r\n"), "POST /p {" TEN TEN "}"},
    {"zeros may lead a size", BYTES(CHUNKED "0003\r\nabc\r\n0000\r\n\r\n"), "POST /p {abc}"},
    {"the coding's name is not case-sensitive",
     BYTES(POST "Transfer-Encoding: CHUNKED\r\n\r\n1\r\na\r\n0\r\n\r\n"), "POST /p {a}"},
    {"what follows the last chunk is the next message",
     BYTES(CHUNKED "1\r\na\r\n0\r\n\r\nGET /b HTTP/1.1\r\n" H "\r\n"), "POST /p {a} | GET /b {}"},
    {"the last chunk's blank line is waited for", BYTES(CHUNKED "1\r\na\r\n0\r\n"), "..."},
    {"extensions are read over", BYTES(CHUNKED "1;a;b=c;d=\"e;f\"\r\na\r\n0;z\r\n\r\n"),
     "POST /p {a}"},
    {"a quoted extension ends with its line", BYTES(CHUNKED "1;a=\"\r\na\r\n0\r\n\r\n"),
     "POST /p {a}"},
    {"a control character in an extension is a fault",
     BYTES(CHUNKED "1;a\x01\r\na\r\n0\r\n\r\n"), "400"},
    {"a line feed in an extension is a fault", BYTES(CHUNKED "1;a\nb\r\na\r\n0\r\n\r\n"), "400"},
    {"a CR in an extension is a fault", BYTES(CHUNKED "1;a\rb\r\na\r\n0\r\n\r\n"), "400"},
    {"trailers are read over", BYTES(CHUNKED "1\r\na\r\n0\r\nA: b\r\nC: d\r\n\r\n"), "POST /p {a}"},
    {"a trailer cannot give a length",
     BYTES(CHUNKED "0\r\nContent-Length: 50\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n"),
     "POST /p {} | GET / {}"},
    {"a trailer without a colon is a fault", BYTES(CHUNKED "0\r\nGET / HTTP/1.1\r\n\r\n"), "400"},
    {"a trailer without a name is a fault", BYTES(CHUNKED "0\r\n: b\r\n\r\n"), "400"},
    {"a blank before a trailer's colon is a fault", BYTES(CHUNKED "0\r\nA : b\r\n\r\n"), "400"},
    {"a folded trailer is a fault", BYTES(CHUNKED "0\r\nA: b\r\n c\r\n\r\n"), "400"},
    {"a trailer that ends in LF alone is a fault", BYTES(CHUNKED "0\r\nA: b\n\r\n"), "400"},
    {"a CR alone in a trailer is a fault", BYTES(CHUNKED "0\r\nA: b\rc\r\n\r\n"), "400"},
    {"a NUL in a trailer is a fault", BYTES(CHUNKED "0\r\nA: \0\r\n\r\n"), "400"},
    {"a chunk without a size is a fault", BYTES(CHUNKED "\r\na\r\n0\r\n\r\n"), "400"},
    {"an extension without a size is a fault", BYTES(CHUNKED ";a\r\n\r\n"), "400"},
    {"a size with a sign is a fault", BYTES(CHUNKED "+1\r\na\r\n0\r\n\r\n"), "400"},
    {"a negative size is a fault", BYTES(CHUNKED "-1\r\na\r\n0\r\n\r\n"), "400"},
    {"0x before a size is a fault", BYTES(CHUNKED "0x1\r\na\r\n0\r\n\r\n"), "400"},
    {"a size that is no number is a fault", BYTES(CHUNKED "g\r\na\r\n0\r\n\r\n"), "400"},
    {"an underscore in a size is a fault", BYTES(CHUNKED "1_0\r\n"), "400"},
    {"a blank before a size is a fault", BYTES(CHUNKED " 1\r\na\r\n0\r\n\r\n"), "400"},
    {"a blank behind a size is a fault (it may be mended)",
     BYTES(CHUNKED "1 \r\na\r\n0\r\n\r\n"), "400"},
    {"a size of 17 digits is a fault", BYTES(CHUNKED "00000000000000001\r\na\r\n0\r\n\r\n"), "400"},
    {"a size of 17 digits that is over the limit on its way is the same fault",
     BYTES(CHUNKED "bbbbbbbbbbbbbbbbb\r\n"), "400"},
    {"a fault behind a size over the limit is that fault", BYTES(CHUNKED "bbbb;\n"), "400"},
    {"a size that wraps around is refused", BYTES(CHUNKED "ffffffffffffffff\r\n"), "413"},
    {"a chunk over the limit is refused at its size", BYTES(CHUNKED "3e9\r\n"), "413"},
    {"chunks over the limit together are refused",
     BYTES(CHUNKED "32\r\n" FIFTY "\r\n3e0\r\n"), "413"},
    {"a size that ends in LF alone is a fault", BYTES(CHUNKED "1\na\r\n0\r\n\r\n"), "400"},
    {"a chunk that ends in LF alone is a fault", BYTES(CHUNKED "1\r\na\n0\r\n\r\n"), "400"},
    {"a chunk that is longer than its size is a fault", BYTES(CHUNKED "1\r\nab\r\n0\r\n\r\n"),
     "400"},
    {"a chunk that is shorter than its size is a fault", BYTES(CHUNKED "3\r\na\r\n0\r\n\r\n"),
     "400"},
    {"two bytes that are no line end behind a chunk are a fault",
     BYTES(CHUNKED "1\r\naXX0\r\n\r\n"), "400"},
    {"a chunk's line end that is LF CR is a fault", BYTES(CHUNKED "1\r\na\n\r0\r\n\r\n"), "400"},
    {"a last chunk that ends in LF alone is a fault", BYTES(CHUNKED "0\n\r\n"), "400"},
    {"a blank line that is LF alone is a fault", BYTES(CHUNKED "0\r\n\n"), "400"},
};

/* 9: connection management; RFC 9110, 10.1.1: Expect */
static const struct example CONNECTIONS[] = {
    {"HTTP/1.1 goes on", BYTES("GET /a HTTP/1.1\r\n" H "\r\nGET /b HTTP/1.1\r\n" H "\r\n"),
     "GET /a {} | GET /b {}"},
    {"close ends it", BYTES("GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n"), "GET / {} close"},
    {"Close too: it is not case-sensitive",
     BYTES("GET / HTTP/1.1\r\n" H "Connection: Close\r\n\r\n"), "GET / {} close"},
    {"close in a list ends it", BYTES("GET / HTTP/1.1\r\n" H "Connection: a, close\r\n\r\n"),
     "GET / {} close"},
    {"close in a second line ends it",
     BYTES("GET / HTTP/1.1\r\n" H "Connection: a\r\nConnection: close\r\n\r\n"), "GET / {} close"},
    {"a word with close in it does not",
     BYTES("GET / HTTP/1.1\r\n" H "Connection: closed\r\n\r\n"), "GET / {}"},
    {"keep-alive changes nothing in HTTP/1.1",
     BYTES("GET / HTTP/1.1\r\n" H "Connection: keep-alive\r\n\r\n"), "GET / {}"},
    {"HTTP/1.0 ends", BYTES("GET / HTTP/1.0\r\n\r\n"), "GET / {} close"},
    {"HTTP/1.0 ends although it asks for more (that is a choice)",
     BYTES("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), "GET / {} close"},
    {"an upgrade that is offered is not taken",
     BYTES("GET / HTTP/1.1\r\n" H "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n"
           "GET /b HTTP/1.1\r\n" H "\r\n"), "GET / {} | GET /b {}"},
    {"h2c neither, and the body is read",
     BYTES(POST "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
           "Content-Length: 1\r\n\r\na"), "POST /p {a}"},
    {"Expect is noticed", BYTES(POST "Expect: 100-continue\r\nContent-Length: 1\r\n\r\na"),
     "POST /p {a} expects"},
    {"Expect before chunks too",
     BYTES(POST "Expect: 100-Continue\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"),
     "POST /p {a} expects"},
    {"another expectation is passed over (417 is a choice)",
     BYTES(POST "Expect: wonders\r\nContent-Length: 1\r\n\r\na"), "POST /p {a}"},
    {"Expect of HTTP/1.0 is passed over",
     BYTES("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na"),
     "POST / {a} close"},
    {"a body over the limit is refused before 100 Continue",
     BYTES(POST "Expect: 100-continue\r\nContent-Length: 2000\r\n\r\n"), "413"},
    {"after a fault nothing is read",
     BYTES("GET / HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n" H "\r\n"), "400"},
    {"a message before a fault is answered",
     BYTES("GET /a HTTP/1.1\r\n" H "\r\nGET /b HTTP/9.9\r\n\r\n"), "GET /a {} | 400"},
    {"a body that looks like a request is a body",
     BYTES(POST "Content-Length: 27\r\n\r\nGET /a HTTP/1.1\r\nHost: y\r\n\r\nGET /b HTTP/1.1\r\n" H
           "\r\n"), "POST /p {GET /a HTTP/1.1\r\nHost: y\r\n\r} | 400"},
    {"a chunk that looks like the end is a chunk",
     BYTES(CHUNKED "5\r\n0\r\n\r\n\r\n0\r\n\r\n"), "POST /p {0\r\n\r\n}"},
};

static const char *name_of(enum http_method method) {
    static const char *const NAMES[] = {"GET", "HEAD", "POST", "OTHER", "PUT"};
    return NAMES[method];
}

struct run {
    struct http_parser *parser;
    char outcome[6000];
    size_t size;
    bool has_failed;
};

static void add(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct run *run, const char *format, ...) {
    va_list list;
    va_start(list, format);
    const char *between = run->size > 0 ? " | " : "";
    run->size += (size_t)snprintf(run->outcome + run->size, sizeof run->outcome - run->size, "%s",
                                  between);
    run->size += (size_t)vsnprintf(run->outcome + run->size, sizeof run->outcome - run->size,
                                   format, list);
    va_end(list);
}

static void feed(struct run *run, const char *bytes, size_t size) {
    char *copy = malloc(size > 0 ? size : 1); /* of its own size, so that ASan sees overreads */
    memcpy(copy, bytes, size);
    for (size_t at = 0, used = 0; at < size && !run->has_failed; at += used) {
        const enum http_event event = http_parser_feed(run->parser, copy + at, size - at, &used);
        if (event == HTTP_COMPLETE) {
            const struct http_message *m = http_parser_message(run->parser);
            add(run, "%s %.*s%s%.*s {%.*s}%s%s", name_of(m->method), VIEW_ARGS(m->path),
                m->query.size > 0 ? "?" : "", VIEW_ARGS(m->query), VIEW_ARGS(m->body),
                m->keep_alive ? "" : " close", m->expects_continue ? " expects" : "");
            http_parser_next(run->parser);
        } else if (event == HTTP_FAILED) {
            struct err err = {.text = ""};
            add(run, "%d", status_http(http_parser_status(run->parser, &err)));
            assert_true(err.text[0] != '\0');
            run->has_failed = true;
        }
    }
    free(copy);
}

/* Cut into pieces of `first` bytes, then `rest` bytes each. */
static void check(const struct example *example, size_t first, size_t rest) {
    const struct http_limits limits = {.max_header_bytes = 2048, .max_body_bytes = 1000};
    struct run run = {.parser = http_parser_create(false, limits)};
    for (size_t at = 0; at < example->size;) {
        size_t size = at == 0 ? first : rest;
        if (size > example->size - at)
            size = example->size - at;
        feed(&run, example->bytes + at, size);
        at += size;
    }
    if (!run.has_failed && (!http_parser_is_idle(run.parser) || run.size == 0))
        add(&run, "...");
    http_parser_free(run.parser);
    if (strcmp(run.outcome, example->outcome) != 0)
        print_error("%s (cut at %zu, %zu): got %s, expected %s\n", example->sentence, first, rest,
                 run.outcome, example->outcome);
}

static void check_all(const struct example *examples, size_t count) {
    static size_t total;
    for (size_t i = 0; i < count; i++) {
        const struct example *example = &examples[i];
        check(example, example->size, 1);
        check(example, 1, 1);
        for (size_t cut = 1; cut < example->size && example->size < 500; cut++)
            check(example, cut, example->size);
    }
    total += count;
    print_message("%zu examples, %zu so far\n", count, total);
}
#define CHECK_ALL(examples) check_all(examples, sizeof(examples) / sizeof *(examples))

static void lines_are_read_as_the_standard_says(void **state) {
    (void)state;
    CHECK_ALL(LINES);
}
static void targets_and_hosts_are_read_as_the_standard_says(void **state) {
    (void)state;
    CHECK_ALL(TARGETS);
}
static void fields_are_read_as_the_standard_says(void **state) {
    (void)state;
    CHECK_ALL(FIELDS);
}
static void lengths_are_read_as_the_standard_says(void **state) {
    (void)state;
    CHECK_ALL(LENGTHS);
}
static void chunks_are_read_as_the_standard_says(void **state) {
    (void)state;
    CHECK_ALL(CHUNKS);
}
static void connections_go_on_and_end_as_the_standard_says(void **state) {
    (void)state;
    CHECK_ALL(CONNECTIONS);
}

/* ---- limits ---- */

static struct run run_of(const struct buf *bytes, uint64_t max_body) {
    const struct http_limits limits = {.max_header_bytes = 65536, .max_body_bytes = max_body};
    struct run run = {.parser = http_parser_create(false, limits)};
    feed(&run, bytes->data, bytes->size);
    http_parser_free(run.parser);
    return run;
}

static void a_hundred_headers_are_taken_and_one_more_is_not(void **state) {
    (void)state;
    for (int more = 0; more <= 1; more++) {
        struct buf bytes;
        buf_init(&bytes);
        buf_text(&bytes, "GET / HTTP/1.1\r\n" H);
        for (int i = 1; i < HTTP_MAX_HEADERS + more; i++)
            buf_printf(&bytes, "A%d: b\r\n", i);
        buf_text(&bytes, "\r\n");
        assert_string_equal(run_of(&bytes, 10).outcome, more ? "431" : "GET / {}");
        buf_done(&bytes);
    }
}

/* Extensions and trailers cost the sender bytes and bring nothing: all of a message together have
 * one limit, however many chunks they are spread over. */
static void extensions_of_many_small_chunks_meet_one_limit(void **state) {
    (void)state;
    static const struct {
        int chunks, extension;
        const char *outcome;
    } CASES[] = {{1, 16000, "POST"}, {1, 17000, "400"}, {1000, 15, "POST"}, {1000, 17, "400"},
                 {100000, 0, "POST"}};
    for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++) {
        struct buf bytes;
        buf_init(&bytes);
        buf_text(&bytes, CHUNKED);
        for (int i = 0; i < CASES[c].chunks; i++) {
            buf_text(&bytes, CASES[c].extension > 0 ? "1;" : "1");
            for (int e = 0; e < CASES[c].extension; e++)
                buf_char(&bytes, 'e');
            buf_text(&bytes, "\r\na\r\n");
        }
        buf_text(&bytes, "0\r\n\r\n");
        const struct run run = run_of(&bytes, 1 << 20);
        if (strncmp(run.outcome, CASES[c].outcome, strlen(CASES[c].outcome)) != 0)
            fail_msg("%d chunks with %d bytes of extension: %.40s", CASES[c].chunks,
                     CASES[c].extension, run.outcome);
        buf_done(&bytes);
    }
}

static void trailers_meet_the_same_limit(void **state) {
    (void)state;
    for (int count = 100; count <= 10000; count *= 10) {
        struct buf bytes;
        buf_init(&bytes);
        buf_text(&bytes, CHUNKED "0\r\n");
        for (int i = 0; i < count; i++)
            buf_text(&bytes, "Trailer: b\r\n");
        buf_text(&bytes, "\r\n");
        assert_string_equal(run_of(&bytes, 10).outcome, count > 1000 ? "400" : "POST /p {}");
        buf_done(&bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_read_as_the_standard_says),
        cmocka_unit_test(targets_and_hosts_are_read_as_the_standard_says),
        cmocka_unit_test(fields_are_read_as_the_standard_says),
        cmocka_unit_test(lengths_are_read_as_the_standard_says),
        cmocka_unit_test(chunks_are_read_as_the_standard_says),
        cmocka_unit_test(connections_go_on_and_end_as_the_standard_says),
        cmocka_unit_test(a_hundred_headers_are_taken_and_one_more_is_not),
        cmocka_unit_test(extensions_of_many_small_chunks_meet_one_limit),
        cmocka_unit_test(trailers_meet_the_same_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
