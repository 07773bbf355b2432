// A JSON parser a thread, made at first use and freed with the thread: its tables are warm and
// allocated. For infer_json.cc.
//
// Thread: any. Invariant: memory that is out is an error of the one document.
#ifndef TELLTALE_PROTO_JSON_PARSER_HPP
#define TELLTALE_PROTO_JSON_PARSER_HPP

#include <new>
#include <pthread.h>
#include <simdjson.h>

namespace infer {

// A parser needs about 14 bytes for each byte of the longest document it has seen.
inline constexpr size_t KEEP_PARSER_BYTES = 4 * 1024 * 1024;

// A key and not a thread_local object: that has its destructor registered at first use, which
// allocates, and glibc ends the process when it cannot.
inline pthread_key_t parser_key;
inline bool has_parser_key;

inline void delete_parser(void *parser) { delete static_cast<simdjson::dom::parser *>(parser); }

inline void make_parser_key() {
    has_parser_key = pthread_key_create(&parser_key, delete_parser) == 0;
}

// nullptr when memory is out.
inline simdjson::dom::parser *this_thread_parser() {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_parser_key);
    if (!has_parser_key)
        return nullptr;
    auto *parser = static_cast<simdjson::dom::parser *>(pthread_getspecific(parser_key));
    if (parser)
        return parser;
    parser = new (std::nothrow) simdjson::dom::parser;
    if (parser && pthread_setspecific(parser_key, parser) != 0) {
        delete parser;
        return nullptr;
    }
    return parser;
}

// Gives a large parser's memory back when the document has been used.
struct parser_lease {
    simdjson::dom::parser *const parser = this_thread_parser();
    ~parser_lease() {
        if (parser && parser->capacity() > KEEP_PARSER_BYTES)
            *parser = simdjson::dom::parser();
    }
};

} // namespace infer

#endif
