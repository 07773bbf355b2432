/* Splitters, for splitter_file.c (which reads them) and splitter_sequence.c. Each is made from
 * its settings into the table of token_stages.h. Const after load; any thread. */
#ifndef TELLTALE_PREP_SPLITTER_H
#define TELLTALE_PREP_SPLITTER_H

#include "prep/pattern.h"
#include "prep/token_stages.h"

/* What becomes of the matches of a pattern: Hugging Face's SplitDelimiterBehavior. */
enum split_behavior {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_MERGED_WITH_PREVIOUS,
    SPLIT_MERGED_WITH_NEXT,
    SPLIT_CONTIGUOUS,
    SPLIT_BEHAVIOR_COUNT
};

/* A piece's matches and what lies between them, in their order, to pieces. */
struct segments {
    struct piece_list *out;
    enum split_behavior behavior;
    bool has_last, last_is_match;
    struct piece last;
};
bool segments_add(struct segments *segments, size_t start, size_t end, bool is_match);
bool segments_end(struct segments *segments); /* after a piece's last; false: no memory */

/* Matches of pattern in each piece. Isolated, or what lies between them is never there. */
bool split_by_pattern(const struct pattern *pattern, enum split_behavior behavior,
                      bool is_inverted, const struct span_text *text,
                      const struct piece_list *pieces, struct piece_list *out_pieces);

/* Each false when there is no memory. pattern is freed by the splitter's done, or at once when
 * false is returned. */
bool splitter_of_pattern(struct arena *memory, struct pattern *pattern,
                         enum split_behavior behavior, bool is_inverted, struct splitter *out);
/* Each character that has one of flags (of unicode_table.h) is a match. */
bool splitter_of_flags(struct arena *memory, const struct unicode_table *unicode, unsigned flags,
                       enum split_behavior behavior, struct splitter *out);
bool splitter_of_numbers(struct arena *memory, enum split_behavior behavior,
                         struct splitter *out);
/* Words (\w) and runs of what is neither that nor white space. */
bool splitter_of_words(struct arena *memory, const struct unicode_table *unicode,
                       struct splitter *out);
bool splitter_of_length(struct arena *memory, uint32_t codes, struct splitter *out);

enum prepend_scheme { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER };
struct metaspace {
    struct view replacement; /* one character; lives as long as the splitter */
    enum prepend_scheme scheme;
    bool cuts; /* a piece begins at each replacement */
};
bool metaspace_make(struct arena *memory, const struct metaspace *settings, struct splitter *out);

/* pattern NULL: no splitting. As splitter_of_pattern. */
bool byte_level_make(struct arena *memory, struct pattern *pattern, bool prefixes_space,
                     struct splitter *out);

/* One after the other. items: in memory; on success done frees them. count may be 0. */
bool splitter_sequence_make(struct arena *memory, struct splitter *items, size_t count,
                            struct splitter *out);

/* Appends bytes of elsewhere, each with the source of byte `like` of text. False: no memory. */
bool splitter_insert_text(struct span_text *out, struct view bytes, const struct span_text *text,
                          size_t like);

#endif
