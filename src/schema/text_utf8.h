/* Whether bytes are a text that a protobuf string may hold. Pure. */
#ifndef TELLTALE_SCHEMA_TEXT_UTF8_H
#define TELLTALE_SCHEMA_TEXT_UTF8_H

#include "base/view.h"

/* True when text is UTF-8 (no surrogates, nothing overlong, nothing above U+10FFFF) and holds no
 * zero byte, which would end the string early where protobuf-c keeps it terminated. */
bool text_utf8_valid(struct view text);

#endif
