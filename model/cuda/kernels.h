// What the kernels take: the C ABI between the code that launches and the code that runs.
//
// Every kernel takes exactly one structure, by value, so that a launch is a name, a grid and one pointer. Structures hold pointers to device memory and
// plain scalars; what changes from step to step (keys, rates, slots) is read from device memory, so that a captured graph can be launched again.
// README.md has the table of grids, blocks and shared memory.
//
// Names: n tokens of all rows, one behind the other without padding; d hidden width, a multiple of 4 up to 1024; h heads of k numbers; T the type of
// activations, float or bf16, which the suffix of the kernel's name says. "May be null" is said where it is allowed.
#pragma once

#include <stdint.h>

/* Which numbers are dropped at one place of the model in one step: number i is dropped if the upper 24 bits of SplitMix64 at key + i * gamma are below
   `threshold`, else multiplied by `factor`. `key` points to device memory; null: nothing is dropped. */
typedef struct {
  const uint64_t* key;
  uint32_t threshold; /* the rate as a f32, times 2^24, rounded up */
  float factor;       /* 1 / (1 - rate), rounded once */
} Dropout;

/* embedding_forward_T: y = dropout(norm(word + position + type)). */
typedef struct {
  const uint32_t *word_ids, *position_ids, *type_ids;     /* [n] */
  const float *word_table, *position_table, *type_table;  /* [.., d] */
  const float *gain, *shift;                              /* [d] */
  void* y;                                                /* T [n, d] */
  float *mean, *inverse;                                  /* [n]: mean and 1 / deviation of each row */
  Dropout dropout;                                        /* number (row, column) has index row * d + column */
  uint64_t n;
  uint32_t d;
  float epsilon;
} EmbeddingForward;

/* embedding_backward_T: the gradient of the summed embeddings, which are looked up again, and partial sums of those of gain and shift. */
typedef struct {
  const uint32_t *word_ids, *position_ids, *type_ids;
  const float *word_table, *position_table, *type_table;
  const float* gain;
  const float *mean, *inverse; /* as the forward pass left them */
  const void* dy;              /* T [n, d] */
  void* d_sum;                 /* T [n, d]; may be dy */
  float* partials;             /* [blocks, 2, d]: gain, shift */
  Dropout dropout;
  uint64_t n;
  uint32_t d;
  uint32_t rows_per_block;
} EmbeddingBackward;

/* rows_sum_T: sums of rows of x into rows of a table, as the backward pass of a look-up needs them, in an order that the host fixed.
   The places of x are sorted by the table's row; each run of equal ones is cut into pieces. A piece that is a whole run goes to its row of the
   table at once (target >= 0), the others to partial sums (target = -1 - slot), which rows_sum_finish adds in their order. */
typedef struct {
  const void* x;                /* T [n, d] */
  const uint32_t* order;        /* [m]: rows of x, sorted by the row of the table */
  const uint32_t* piece_starts; /* [pieces + 1] into order */
  const int32_t* piece_targets; /* [pieces] */
  float* table;                 /* [.., d], added to */
  float* partials;              /* [slots, d] */
  uint32_t d;
  uint32_t pieces;
} RowsSum;

typedef struct {
  const float* partials;  /* [slots, d] */
  const uint32_t* rows;   /* [count]: rows of the table */
  const uint32_t* starts; /* [count + 1] into the slots */
  float* table;           /* [.., d], added to */
  uint32_t d;
  uint32_t count;
} RowsSumFinish;

/* norm_forward_T: sum = dropout(x + bias) + residual, rounded to T; y = norm(sum) * gain + shift. */
typedef struct {
  const void* x;            /* T [n, d] */
  const float* bias;        /* [d]; may be null */
  const void* residual;     /* T [n, d]; may be null */
  const float *gain, *shift; /* [d] */
  void* sum;                /* T [n, d]; may be x; may be null where no gradient is wanted */
  void* y;                  /* T [n, d]; may be x */
  float *mean, *inverse;    /* [n] */
  Dropout dropout;
  uint64_t n;
  uint32_t d;
  float epsilon;
} NormForward;

/* norm_backward_T: gradients of the sum, which is that of the residual, and of x; partial sums of those of gain, shift and bias. */
typedef struct {
  const void* dy;               /* T [n, d] */
  const void* sum;              /* T [n, d], as the forward pass left it */
  const float *mean, *inverse;  /* [n] */
  const float* gain;            /* [d] */
  void* d_sum;                  /* T [n, d]; may be dy */
  void* d_x;                    /* T [n, d]: d_sum through dropout; may be null where there is none */
  float* partials;              /* [blocks, 3, d]: gain, shift, bias */
  Dropout dropout;
  uint64_t n;
  uint32_t d;
  uint32_t rows_per_block;
} NormBackward;

/* gelu_forward_T: y = GELU(x + bias), the form with the error function. */
typedef struct {
  void* x;           /* T [n, width]; with a bias it is written: x + bias is what the backward pass needs */
  const float* bias; /* [width]; may be null */
  void* y;           /* T [n, width] */
  uint64_t n;
  uint32_t width; /* a multiple of 4 */
  uint32_t rows_per_block;
} GeluForward;

/* gelu_backward_T: dx = dy GELU'(x), y = GELU(x) again, and partial column sums of dx. */
typedef struct {
  const void* x;   /* T [n, width], bias included */
  const void* dy;  /* T [n, width] */
  void* y;         /* T [n, width]; may be x; may be null */
  void* dx;        /* T [n, width]; may be dy */
  float* partials; /* [blocks in y of the grid, width] */
  uint64_t n;
  uint32_t width;
  uint32_t rows_per_block;
} GeluBackward;

/* column_sum_T: partial sums over rows. */
typedef struct {
  const void* x;   /* T [n, width] */
  float* partials; /* [blocks in x of the grid, width] */
  uint64_t n;
  uint32_t width; /* any */
  uint32_t rows_per_block;
} ColumnSum;

/* columns_finish: the sums of partial sums [parts, groups, width] over the parts, in their order. */
typedef struct {
  const float* partials;
  float* out[3]; /* [width] for each group; null: not wanted */
  uint32_t parts;
  uint32_t groups; /* 1 to 3 */
  uint32_t width;
  uint32_t accumulate; /* 1: add to what is there, 0: overwrite it */
} ColumnsFinish;

#include "kernels_attention.h"
#include "kernels_elementwise.h"
#include "kernels_kam.h"
#include "kernels_optim.h"
/* Behind the ring of kernels_optim.h. */
#include "kernels_output.h"
