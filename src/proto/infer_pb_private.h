/* What infer_pb.c and infer_pb_contents.c share. */
#ifndef TELLTALE_PROTO_INFER_PB_PRIVATE_H
#define TELLTALE_PROTO_INFER_PB_PRIVATE_H

#include "proto/infer_pb.h"
#include "proto/pb.h"

/* "inputs[1] (attention_mask)", written out only when something is wrong. */
struct infer_pb_place {
    const char *list;
    uint32_t index;
    struct view name;
};
/* Puts the place before what err says; returns status. */
enum status infer_pb_fail(const struct infer_pb_place *at, enum status status, struct err *err);

/* The contents field of an input's message (joined if it comes in pieces is not a thing that
 * anybody does: the last one); empty: none. */
struct view infer_pb_contents(struct view input);
/* InferTensorContents to tensor's data, whose dtype and shape are set. */
MUST_CHECK enum status infer_pb_read_contents(const struct infer_pb_place *at,
                                              struct view contents, struct arena *arena,
                                              struct tensor *tensor, struct err *err);

#endif
