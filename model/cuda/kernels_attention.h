// Attention within rows of tokens: softmax(Q K^T scale) V per row and head. Included by kernels.h.
#pragma once

/* Factors of the heads' contexts. `values` null: all 1. */
typedef struct {
  const float* values; /* [1, h], [rows, h] or [n, h] */
  uint32_t of;         /* GATES_OF_ALL, GATES_OF_ROW, GATES_OF_TOKEN */
  uint32_t unused;
} Gates;

#define GATES_OF_ALL 0U
#define GATES_OF_ROW 1U
#define GATES_OF_TOKEN 2U

/* attention_forward_T (any k up to 128), attention_forward_32 and attention_forward_64 (bf16, heads of 32 or 64). Probability (i, j) of head h of
   row r has dropout index (r * heads + h) << 40 | i << 20 | j. qkv is aligned to 16 bytes. */
typedef struct {
  const void* qkv;           /* T [n, 3 d]: queries, keys, values, heads side by side in each */
  const int32_t* row_starts; /* [rows + 1]; the last is n */
  const int32_t* seen;       /* [rows]: so many first tokens of a row are looked at, at least 1; may be null: all are */
  Gates gates;
  void* context;             /* T [n, d], without gates; may be null where there are gates and no gradient is wanted */
  void* gated;               /* T [n, d], times the gates; may be null where there are none */
  float* lse;                /* [h, n]: log of the sum of exponentials of each query's scores */
  Dropout dropout;
  uint64_t n;
  uint32_t heads;
  uint32_t k;
  float scale;               /* 1 / sqrt k */
  uint32_t unused;
} AttentionForward;

/* attention_delta_T: what the softmax's gradient takes away, delta_i = sum_j P_ij dP_ij = dC_i . C_i, and gradients of gates for each token. */
typedef struct {
  const void* context;       /* T [n, d], without gates */
  const void* d_out;         /* T [n, d]: gradient of the gated contexts, or of the contexts where there are no gates */
  const int32_t* row_starts; /* for gates of rows */
  Gates gates;
  float* each;               /* [n, h]: d_out_i . C_i, the gradient of a token's gates; may be null */
  float* delta;              /* [h, n]: the same times the gate */
  uint64_t n;
  uint32_t rows;
  uint32_t heads;
  uint32_t k;
  uint32_t unused;
} AttentionDelta;

/* attention_backward_q_* and attention_backward_kv_*: the two halves of the gradient of qkv; names as in the forward pass. */
typedef struct {
  const void* qkv;
  const int32_t* row_starts;
  const int32_t* seen;
  Gates gates;
  const void* d_out;  /* as in AttentionDelta */
  const float* lse;   /* [h, n] */
  const float* delta; /* [h, n] */
  void* d_qkv;        /* T [n, 3 d]: one kernel writes the gradient of queries, the other those of keys and values */
  Dropout dropout;
  uint64_t n;
  uint32_t heads;
  uint32_t k;
  float scale;
  uint32_t unused;
} AttentionBackward;

/* gate_row_sum: the gradients of gates of rows, each the sum over its row's tokens in their order. (Those of gates of all are column sums.) */
typedef struct {
  const float* each;         /* [n, h] */
  const int32_t* row_starts; /* [rows + 1] */
  float* out;                /* [rows, h] */
  uint32_t heads;
  uint32_t unused;
} GateRowSum;

/* What labels ask of tokens (attention/label.rs): the scores of the first token of a row, that of itself apart, are raised to the largest of its own and the
   labels'. Numbers stand by key, [h, n]; those of first tokens are not used. */
typedef struct {
  float* best;    /* the largest label score, scaled: from label_scores */
  int32_t* which; /* its label; the forward pass makes it -1 where the first token's own score is not below it */
  float* d_best;  /* the gradient of the scaled score where a label has won: from attention_labels_backward_q_* */
} Labels;

/* label_scores_T: best and which of all tokens. Of equal scores the first label's counts. */
typedef struct {
  const void* qkv;     /* T [n, 3 d] */
  const void* queries; /* T [m, d]: the labels' embeddings through the layer's projection of queries */
  Labels labels;
  uint64_t n;
  uint32_t heads;
  uint32_t k;
  uint32_t m;  /* at least 1 */
  float scale; /* of products of label queries and keys */
} LabelForwardScores;

/* attention_labels_forward_*, attention_labels_backward_q_*, attention_labels_backward_kv_*: as plain attention; `seen` is null. */
typedef struct {
  AttentionForward plain;
  Labels labels;
} LabelForward;

typedef struct {
  AttentionBackward plain;
  Labels labels;
} LabelBackward;

/* label_keys_T: adds to d_qkv what labels ask back from the keys that they won. label_queries_T: the gradient of the labels' queries, each the sum over all
   tokens that it won, in their order. Both behind attention's own backward pass. */
typedef struct {
  const void* qkv;     /* T [n, 3 d] */
  const void* queries; /* T [m, d] */
  const int32_t* row_starts;
  Labels labels;
  void* d_qkv;         /* T [n, 3 d] */
  float* d_queries;    /* [m, d] */
  uint64_t n;
  uint32_t rows;
  uint32_t heads;
  uint32_t k;
  uint32_t m;
  float scale;
  uint32_t accumulate; /* 1: d_queries is added to */
} LabelGradients;
