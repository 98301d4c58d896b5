// KAM-BERT's attention (attention/kam.rs): scores and maps of knowledge through a convolution of 3 x 3 cells, mixed with the scores as they are, with the
// map of the layer before added. Included by kernels.h.
//
// Here scores are stored: squares [h, t, t] of each row, one row behind the other, in f32. Of row r they begin at number h * cell_starts[r], maps of
// knowledge [maps, t, t] at maps * cell_starts[r]; cell_starts counts the cells t * t of the rows before. Forward:
//   kam_scores (S) · kam_merge (M) · kam_softmax (P) · kam_context
// and backward, where S is made again if the convolution learns:
//   kam_d_mixed (dM) · kam_d_values · kam_weights · kam_merge with `backward` (dS, which is the gradient of the map before as well) · kam_d_queries · kam_d_keys
#pragma once

/* The rows of a batch; every KAM kernel has them. */
typedef struct {
  const int32_t* row_starts;   /* [rows + 1]; the last is n */
  const uint64_t* cell_starts; /* [rows + 1] */
  const int32_t* real;         /* [rows]: only so many first tokens score by queries and keys; may be null: all */
  uint64_t n;
  uint32_t heads;
  uint32_t k;
} KamRows;

/* kam_scores_T: S = Q K^T scale, 0 where a token is not real, plus the map before. */
typedef struct {
  KamRows rows;
  const void* qkv;     /* T [n, 3 d] */
  const float* before; /* squares; may be null */
  float* scores;       /* squares */
  float scale;
  uint32_t unused;
} KamScores;

/* kam_merge: forward M = alpha (conv(S, maps) + bias) + (1 - alpha) S; backward dS = alpha conv'(dM) + (1 - alpha) dM. Without weights the merged scores are the mean
   of a head's score and all maps. */
typedef struct {
  KamRows rows;
  const float* squares; /* S, or dM */
  const float* maps;    /* of knowledge; not read backward */
  const float* weights; /* [h, h + maps, 3, 3]; may be null: the mean */
  const float* bias;    /* [h]; not read backward */
  float* out;           /* squares; not the same memory */
  uint32_t map_count;
  float alpha;
  float rest;           /* 1 - alpha, rounded once */
  uint32_t backward;
} KamMerge;

/* kam_softmax: P of M. */
typedef struct {
  KamRows rows;
  const float* mixed; /* squares */
  float* probs;       /* squares; may be mixed */
} KamSoftmax;

/* kam_context_T and kam_d_values_T: C = (P F) V and dV = (P F g)^T dO; indexes of dropout as in plain attention. */
typedef struct {
  KamRows rows;
  const void* qkv;   /* T [n, 3 d] */
  const float* probs; /* squares */
  Gates gates;
  void* context;     /* T [n, d], without gates; may be null */
  void* gated;       /* T [n, d]; may be null */
  const void* d_out; /* T [n, d]: gradient of the gated contexts; of kam_d_values */
  void* d_qkv;       /* T [n, 3 d]: of kam_d_values */
  Dropout dropout;
} KamContext;

/* kam_d_mixed_T: dM from dP = F g (dO V^T) and what comes from the next layer: it is added to the gradient of the probabilities, or to that of the
   mixed scores (Skip::PreAdd). */
typedef struct {
  KamRows rows;
  const void* qkv;    /* T [n, 3 d] */
  const float* probs; /* squares */
  Gates gates;
  const void* d_out;  /* T [n, d] */
  const float* next;  /* squares; may be null */
  float* d_mixed;     /* squares */
  Dropout dropout;
  uint32_t next_is_mixed;
  uint32_t unused;
} KamDMixed;

/* kam_weights: what each row says of the convolution: partial sums of alpha dM (S, maps moved by a tap), and of alpha dM. columns_finish adds the rows in their
   order. */
typedef struct {
  KamRows rows;
  const float* scores;  /* squares: S */
  const float* maps;
  const float* d_mixed; /* squares */
  float* weight_partials; /* [rows, h (h + maps) 9] */
  float* bias_partials;   /* [rows, h] */
  uint32_t map_count;
  float alpha;
} KamWeights;

/* kam_d_queries_T and kam_d_keys_T: dQ = dS K scale and dK = dS^T Q scale, over real tokens. */
typedef struct {
  KamRows rows;
  const void* qkv;       /* T [n, 3 d] */
  const float* d_scores; /* squares */
  void* d_qkv;           /* T [n, 3 d] */
  float scale;
  uint32_t unused;
} KamProducts;

/* restore_T: auxiliary tokens are before every layer what they were before the first: y[rows] = first[rows]. restore_backward_T: d_first[rows] += dy[rows], which
   becomes 0. */
typedef struct {
  void* y;              /* T [n, d]: y, or dy */
  void* first;          /* T [n, d]: first, or its gradient */
  const uint32_t* rows; /* [count] */
  uint32_t count;
  uint32_t d;
} Restore;
