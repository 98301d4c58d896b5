// What stands behind the last layer: single tokens picked, BERT's pooler, losses and their gradients. Included by kernels.h.
//
// Losses are means: the host knows by what a sum is divided, and hands that in as `scale` (of gradients: alpha / total, in f32) and as `share`
// (of the loss that is recorded: 1 / total, in f64), both in device memory.
#pragma once

/* gather_T: rows of x, behind dropout. Number (i, column) of the result has dropout index i * d + column, or mask_rows[i] * d + column where rows share a
   mask (output/downstream/dropout.rs). */
typedef struct {
  const void* x;             /* T [n, d] */
  const uint32_t* index;     /* [m] */
  const uint32_t* mask_rows; /* [m]; may be null */
  void* y;                   /* T [m, d] */
  Dropout dropout;
  uint64_t m;
  uint32_t d;
  uint32_t unused;
} Gather;

/* gather_backward_T: dx of every row of x, which may have been picked any number of times; those that were not get 0. */
typedef struct {
  const void* dy;            /* T [m, d] */
  const uint32_t* starts;    /* [n + 1] into sources */
  const uint32_t* sources;   /* [m]: rows of y by the row of x that they are, in rising order */
  const uint32_t* mask_rows; /* [m]; may be null */
  void* dx;                  /* T [n, d] */
  Dropout dropout;
  uint64_t n;
  uint32_t d;
  uint32_t accumulate; /* 1: add to what is there */
} GatherBackward;

/* How a row of tokens becomes one vector: the mean, the maximum of every column, the mean by weights. */
enum { kPoolMean = 0, kPoolMaximum = 1, kPoolWeighted = 2 };

/* pool_forward_T: a vector of each row, behind dropout. Row i has spans[2 i + 1] tokens, at least one, from token spans[2 i] on. */
typedef struct {
  const void* x;         /* T [n, d] */
  const uint32_t* spans; /* [m, 2] */
  const float* weights;  /* [n], where they are asked for (pool_weights_T) */
  uint32_t* places;      /* [m, d]: the first token of each maximum; may be null where no gradient is wanted */
  void* y;               /* T [m, d] */
  Dropout dropout;       /* number (row, column) has index row * d + column */
  uint64_t m;
  uint32_t d;
  uint32_t how;
} PoolForward;

/* pool_backward_T: dx of every token; those of no row get 0. */
typedef struct {
  const void* dy;          /* T [m, d] */
  const int32_t* rows;     /* [n]: the row of each token, -1 of those that are in none */
  const uint32_t* spans;   /* [m, 2] */
  const float *weights, *d_scores; /* [n], of the mean by weights: as pool_weights_T and pool_scores_backward_T left them */
  const float* vector;     /* [d], of the mean by weights */
  const uint32_t* places;  /* [m, d], of the maximum */
  void* dx;                /* T [n, d] */
  Dropout dropout;
  uint64_t n;
  uint32_t d;
  uint32_t how;
  uint32_t accumulate; /* 1: add to what is there */
  uint32_t unused;
} PoolBackward;

/* pool_weights_T: within each row softmax_t(vector x_t); a bias would not change it. A block a row. */
typedef struct {
  const void* x;         /* T [n, d] */
  const uint32_t* spans; /* [m, 2] */
  const float* vector;   /* [d] */
  float* weights;        /* [n]; of tokens in no row nothing is written */
  uint32_t d;
  uint32_t unused;
} PoolWeights;

/* pool_scores_backward_T: gradients of the scores, and each row's part of those of vector and bias. A block a row. */
typedef struct {
  const void* x;         /* T [n, d] */
  const void* dy;        /* T [m, d] */
  const uint32_t* spans; /* [m, 2] */
  const float* weights;  /* [n] */
  float* d_scores;       /* [n] */
  float* d_vector;       /* [m, d] */
  float* d_bias;         /* [m]; rounding alone */
  Dropout dropout;
  uint32_t d;
  uint32_t unused;
} PoolScoresBackward;

/* tanh_forward_T: t = tanh(x + bias), y = dropout(t). */
typedef struct {
  const void* x;     /* T [m, d] */
  const float* bias; /* [d]; may be null */
  void* t;           /* T [m, d]; may be x */
  void* y;           /* T [m, d]; may be null where nothing is dropped */
  Dropout dropout;
  uint64_t m;
  uint32_t d;
  uint32_t unused;
} TanhForward;

/* tanh_backward_T: dx = dropout(dy) (1 - t^2). */
typedef struct {
  const void* dy; /* T [m, d] */
  const void* t;  /* T [m, d] */
  void* dx;       /* T [m, d]; may be dy */
  Dropout dropout;
  uint64_t m;
  uint32_t d;
  uint32_t unused;
} TanhBackward;

/* cross_entropy_T: for each row -w log softmax(x)[class], w being the weight of the class; a class below 0 has no loss. The gradient is
   scale w (softmax(x) - [c = class]). A row is hit if its first largest logit is its class's. */
typedef struct {
  const void* logits;    /* T [m, stride], c of them used */
  void* d_logits;        /* T [m, stride]; may be logits; null: no gradient */
  const int32_t* classes; /* [m] */
  const double* weights; /* [c]; may be null */
  const float* scale;
  double* losses;        /* [m] */
  uint32_t* hits;        /* [m] */
  uint64_t m;
  uint32_t c;
  uint32_t stride; /* a multiple of 4 */
} CrossEntropy;

/* In the place of a group's right row: nothing is asked of it. */
enum : uint32_t { kNoRow = 0xffffffffU };

/* group_cross_entropy_T: the same over the scores of a group of rows, of which one is right, or none, kNoRow: no loss then; a warp a group. */
typedef struct {
  const void* scores;     /* T [m, stride], the first of each row used */
  void* d_scores;         /* T [m, stride]; may be scores; null: no gradient */
  const uint32_t* starts; /* [groups + 1] */
  const uint32_t* right;  /* [groups]: from 0 within the group */
  const float* scale;
  double* losses;         /* [groups] */
  uint32_t* hits;         /* [groups] */
  uint32_t groups;
  uint32_t stride;
} GroupCrossEntropy;

/* Samples of an embedding: rows starts[i] to starts[i + 1] of the vectors, of which the first is the anchor and the second matches it. Of anchor i and a row c,
   cosines[i, c] is vectors_i vectors_c / (|vectors_i| |vectors_c|). Rows are told from the match unless they are anchors, named among the anchor's left_rows, or, where
   each sample is alone, of another sample (output/in_batch.rs). */
typedef struct {
  const void* vectors;         /* T [m, d] */
  const uint32_t* starts;      /* [anchors + 1] */
  const uint32_t* samples;     /* [m]: the sample of each row */
  const uint32_t* left_starts; /* [anchors + 1] */
  const uint32_t* left_rows;   /* rising within an anchor */
  float* inverse;              /* [m]: 1 / |vector| */
  float* cosines;              /* [anchors, m]; 0 of rows that are not told from the match */
  float* gradients;            /* [anchors, m]: of the cosines */
  uint64_t m;
  uint32_t anchors;
  uint32_t d;
  uint32_t alone; /* 1: each sample is told from its own rows only */
  float scale;    /* what cosines are multiplied by */
} Anchors;

/* inverse_norms_T: 1 / sqrt(|x|^2 + 1e-12) of each row; a warp a row. */
typedef struct {
  const void* x;  /* T [m, d] */
  float* inverse; /* [m] */
  uint64_t m;
  uint32_t d;
  uint32_t unused;
} InverseNorms;

/* anchor_cross_entropy_T: -log softmax(scale cosines)[match] over the rows that are told from it, `cosines`, and their gradients; a block an anchor. */
typedef struct {
  Anchors of;
  const float* share; /* of gradients */
  double* losses;     /* [anchors] */
} AnchorCrossEntropy;

/* anchor_backward_T: the gradient of every vector; a block a row. */
typedef struct {
  Anchors of;
  void* d_vectors; /* T [m, d] */
} AnchorBackward;

/* Rows of a metric. Two of one class match; a row that may name another's class, in also_classes[also_starts[i]] to [also_starts[i + 1]], is nothing to it, whichever of the two it
   is; all others do not match. Of an anchor's pairs only those of hard triplets are trained: positive p if the nearest negative is nearer than p's distance plus margin, negative
   n if its distance is at most the farthest positive's plus margin; distances are sqrt(2 - 2 cosine) (output/metric.rs). */
typedef struct {
  const void* vectors;           /* T [m, d] */
  const uint32_t* classes;       /* [m] */
  const uint32_t* also_starts;   /* [m + 1] */
  const uint32_t* also_classes;  /* rising within a row */
  const float* inverse;          /* [m]: 1 / |vector| */
  float* cosines;                /* [m, m]; 0 of pairs of nothing */
  float* gradients;              /* [m, m]: of the cosines */
  float* bounds;                 /* [m, 2]: of each anchor the farthest positive and the nearest negative */
  uint32_t* counts;              /* [m]: positives that are trained */
  uint64_t m;
  uint32_t d;
  uint32_t unused;
  float margin;                  /* infinite: all pairs are trained */
  float alpha;                   /* of InfoNCE its temperature */
  float beta;
  float base;
} Metric;

/* metric_pairs_T: cosines, bounds and counts; a block an anchor. */
typedef struct {
  Metric of;
} MetricPairs;

/* metric_multi_similarity, metric_info_nce: losses, whose mean over m is the loss, and the gradients of the cosines; a block an anchor (nn/pair_loss.rs). */
typedef struct {
  Metric of;
  const float* share; /* of gradients, for a mean over m */
  double* losses;     /* [m] */
} MetricLoss;

/* metric_backward_T: the gradient of every vector; a block a row. */
typedef struct {
  Metric of;
  void* d_vectors; /* T [m, d] */
} MetricBackward;

/* binary_cross_entropy_T: for each row the sum over classes of -w y log s(x) - (1 - y) log(1 - s(x)), s the logistic function, y whether the class is in the
   row's set. Its mean is over m * c numbers. */
typedef struct {
  const void* logits; /* T [m, stride], c of them used */
  void* d_logits;     /* T [m, stride]; may be logits; null: no gradient */
  const uint32_t* set_starts;  /* [m + 1] */
  const uint32_t* set_classes; /* rising within a row */
  const double* positive;      /* [c]: w; may be null */
  const float* scale;
  double* losses; /* [m] */
  uint64_t m;
  uint32_t c;
  uint32_t stride; /* any */
} BinaryCrossEntropy;

/* squared_error_T: (x - y)^2 of the first number of each row; the gradient is 2 scale (x - y). */
typedef struct {
  const void* scores;    /* T [m, stride] */
  void* d_scores;        /* T [m, stride]; may be scores; null: no gradient */
  const double* targets; /* [m] */
  const float* scale;
  double* losses;        /* [m] */
  uint64_t m;
  uint32_t stride;
  uint32_t unused;
} SquaredError;

/* loss_finish: one block. Writes share * sum of losses at `field` of the ring's slot, and the hits behind it. */
typedef struct {
  const double* losses;  /* [m] */
  const uint32_t* hits;  /* [m]; may be null: then 0 */
  const double* share;
  Ring ring;
  uint64_t m;
  uint32_t field;
  uint32_t unused;
} LossFinish;
