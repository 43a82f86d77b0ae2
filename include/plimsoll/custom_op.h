/* Custom operators: the contract between Plimsoll and a shared library of them.
 *
 * Plain C, so that any compiler may build the library. It exports one function,
 *     const PlimsollOps* plimsoll_custom_ops(void);
 * whose table must live as long as the library is loaded. A session loads the library by its path
 * (SessionOptions::RegisterCustomOpsLibrary, or --custom-ops of the command) and keeps it while it lives.
 *
 * An operator is a table of functions, called in this order:
 *   attrs   once per node, when the model is prepared: reads the attributes.
 *   infer   types and shapes, on symbolic dimensions; again for each prepared shape, and, where an output's
 * size was unknown(), during the run with the data at hand. alias   what the outputs may share with the
 * inputs. select  decides for a shape, and asks for scratch: what it asks for is planned and counted. run the
 * work. Takes no memory: outputs and scratch are there. cost    arithmetic operations and bytes, for
 * profiles. attrs, alias, select and cost may be null. All of them may be called from many threads at once
 * and keep no state. Each returns null, or what is wrong, as text: that becomes an Error which names the
 * node. A C++ exception that leaves one becomes an Error too.
 */
#ifndef PLIMSOLL_CUSTOM_OP_H
#define PLIMSOLL_CUSTOM_OP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows by one when something here changes its meaning; libraries of another version are refused. */
#define PLIMSOLL_CUSTOM_OP_ABI 1u
#define PLIMSOLL_CUSTOM_OPS_FUNCTION "plimsoll_custom_ops"

/* A size that is a number or an expression in symbols. Only the functions of PlimsollHost look inside. */
typedef struct PlimsollDim {
  int64_t value;
  const void* expression;
} PlimsollDim;

/* Row-major elements; `type` is ONNX's number. Absent optional ones have type 0. */
typedef struct PlimsollTensor {
  void* data;
  int32_t type;
  size_t rank;
  const int64_t* dims;
} PlimsollTensor;

/* An element of a tensor of strings; not terminated by a zero. */
typedef struct PlimsollString {
  const char* data;
  size_t size;
} PlimsollString;

/* The node that a call is about, valid during the call. */
typedef struct PlimsollNode PlimsollNode;

/* What the engine offers. In brackets: the calls that may use it; elsewhere it does nothing and gives 0. */
typedef struct PlimsollHost {
  uint32_t abi;
  const char* (*name)(const PlimsollNode*); /* [all] of the node; for messages */
  int (*opset)(const PlimsollNode*);        /* [all] */
  size_t (*input_count)(const PlimsollNode*);
  size_t (*output_count)(const PlimsollNode*);
  int (*has_input)(const PlimsollNode*, size_t); /* [all] 0: an optional one that is absent */
  int (*has_output)(const PlimsollNode*, size_t);
  /* [all] Text for a message that is made on the spot: `return host->reject(node, text);` copies it. */
  const char* (*reject)(PlimsollNode*, const char* text);

  /* [attrs] 1 if the attribute is there, 0 if not; one of another type is an Error by itself. Lists and texts
   * live as long as the node. */
  int (*attr_int)(PlimsollNode*, const char* name, int64_t*);
  int (*attr_float)(PlimsollNode*, const char* name, float*);
  int (*attr_string)(PlimsollNode*, const char* name, PlimsollString*);
  int (*attr_ints)(PlimsollNode*, const char* name, const int64_t**, size_t*);
  int (*attr_floats)(PlimsollNode*, const char* name, const float**, size_t*);
  /* [attrs, select] Memory for what they return; zeroed, never freed by the library. Null: refused. */
  void* (*allocate)(PlimsollNode*, size_t bytes);
  const void* (*attrs)(const PlimsollNode*); /* [infer, alias, select, run, cost] what attrs returned */

  int32_t (*input_type)(const PlimsollNode*, size_t); /* [infer, alias, select, cost] */
  int (*input_rank)(const PlimsollNode*, size_t);     /* likewise; -1: not known */
  PlimsollDim (*input_dim)(const PlimsollNode*, size_t, size_t axis);
  const PlimsollTensor* (*input_data)(PlimsollNode*, size_t); /* [infer] null where it is not known */
  int32_t (*output_type)(const PlimsollNode*, size_t);        /* [alias, select, cost] */
  int (*output_rank)(const PlimsollNode*, size_t);
  PlimsollDim (*output_dim)(const PlimsollNode*, size_t, size_t axis);
  /* [infer] Every output that is present must be set. */
  void (*set_output)(PlimsollNode*, size_t, int32_t type, const PlimsollDim* dims, size_t rank);
  void (*set_unranked_output)(PlimsollNode*, size_t, int32_t type);
  PlimsollDim (*unknown)(PlimsollNode*); /* [infer] a size that only the data tells */

  PlimsollDim (*dim)(int64_t);
  int (*dim_value)(PlimsollDim, int64_t*); /* 1 if it is a number */
  int (*dim_equal)(PlimsollDim, PlimsollDim);
  PlimsollDim (*dim_add)(PlimsollNode*, PlimsollDim, PlimsollDim);
  PlimsollDim (*dim_subtract)(PlimsollNode*, PlimsollDim, PlimsollDim);
  PlimsollDim (*dim_multiply)(PlimsollNode*, PlimsollDim, PlimsollDim);
  PlimsollDim (*dim_divide)(PlimsollNode*, PlimsollDim, PlimsollDim); /* rounds down */
  PlimsollDim (*dim_max)(PlimsollNode*, PlimsollDim, PlimsollDim);

  /* [alias] run works when the output has the input's address (same number of bytes). */
  void (*overwrite)(PlimsollNode*, size_t input, size_t output);
  /* [alias] The output is the input's bytes as they are; if that holds for all outputs, run is not called. */
  void (*view)(PlimsollNode*, size_t input, size_t output);

  /* [select] Asks for scratch and gives its offset from scratch_memory(), a multiple of 64. */
  int64_t (*scratch)(PlimsollNode*, PlimsollDim bytes);
  int (*threads)(const PlimsollNode*); /* [select, run] */

  PlimsollTensor (*input)(const PlimsollNode*, size_t); /* [run] */
  PlimsollTensor (*output)(const PlimsollNode*, size_t);
  void* (*scratch_memory)(const PlimsollNode*);
  const void* (*choice)(const PlimsollNode*);          /* [run] what select returned for these shapes */
  char* (*allocate_text)(PlimsollNode*, size_t bytes); /* [run] characters of strings made. Null: refused */
} PlimsollHost;

typedef struct PlimsollOp {
  const char* domain; /* "" is ai.onnx */
  const char* name;
  size_t least_inputs, most_inputs;
  size_t least_outputs, most_outputs;
  int deterministic; /* 0: never computed ahead, even if every input is constant */
  const char* (*attrs)(const PlimsollHost*, PlimsollNode*, const void** result);
  const char* (*infer)(const PlimsollHost*, PlimsollNode*);
  const char* (*alias)(const PlimsollHost*, PlimsollNode*);
  const char* (*select)(const PlimsollHost*, PlimsollNode*, const void** choice);
  const char* (*run)(const PlimsollHost*, PlimsollNode*);
  const char* (*cost)(const PlimsollHost*, PlimsollNode*, int64_t* operations, int64_t* bytes);
} PlimsollOp;

typedef struct PlimsollOps {
  uint32_t abi; /* PLIMSOLL_CUSTOM_OP_ABI */
  size_t count;
  const PlimsollOp* ops;
} PlimsollOps;

/* What the library defines. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const PlimsollOps*
plimsoll_custom_ops(void);

#ifdef __cplusplus
}
#endif

#endif
