// Norm, clipping and updates over flat arenas: gradients and two moments of all parameters in f32, and a shadow of the weights in the type of activations,
// which products read: there queries', keys' and values' weights lie side by side. Included by kernels.h.
//
// A segment is one parameter. Arenas are walked in chunks of CHUNK_NUMBERS numbers, each of one segment, so that a chunk knows its rule at once; the
// table of chunks is made once. A segment starts at a multiple of 4; what lies between segments is never read.
#pragma once

#define CHUNK_NUMBERS 4096U

#define NO_SHARES 0xffffffffU
#define HEADS_BY_ROWS 0U
#define HEADS_BY_COLUMNS 1U

/* One parameter. Where heads divide it (optim/head_mask.rs), `shares` is the place of its shares in the table of shares: `heads` factors of the gradient
   (screen), then `heads` shares of the step (hold back). Rows of a matrix [o, width] or numbers of a bias (width 1) belong to head row / head_width,
   columns to column / head_width. */
typedef struct {
  float* master;  /* its weights, which have memory of their own: they are the tensor library's */
  uint64_t start; /* in the arenas */
  uint64_t count;
  uint32_t first_chunk, chunks;
  uint32_t shares; /* or NO_SHARES */
  uint32_t axis;   /* HEADS_BY_ROWS, HEADS_BY_COLUMNS */
  uint32_t width, head_width;
  uint32_t heads;
  uint32_t unused;
} Segment;

/* Chunk `index` of its segment. */
typedef struct {
  uint32_t segment, index;
} Chunk;

/* What one step does with a segment; computed in f64 and rounded once, as on the CPU. */
typedef struct {
  float decay;        /* AdamW: 1 - rate * weight_decay, or 1; the others: weight_decay, or 0 */
  float pace;         /* AdamW: rate / (1 - beta1^t); the others: rate */
  float inverse_root; /* AdamW: 1 / sqrt(1 - beta2^t); the others: unused */
  uint32_t active;    /* 0: frozen, or without a gradient where such parameters stay */
} SegmentStep;

/* squared_norm: the sum of squares of each chunk's screened gradients, in f64. */
typedef struct {
  const float* gradient;
  const Segment* segments;
  const SegmentStep* steps; /* [segments]; inactive ones count as 0 */
  const Chunk* chunks;
  const float* shares;
  double* partials; /* [chunks] */
} SquaredNorm;

/* Where a step's numbers go: slot *slot of a ring of `width` numbers each. */
typedef struct {
  double* numbers;
  const uint32_t* slot;
  uint32_t width;
  uint32_t unused;
} Ring;

/* clip_factor: one block. The norm of all gradients together, whether it is finite, and what each segment's gradients are multiplied by. */
typedef struct {
  const double* partials;
  const Segment* segments;
  double limit;         /* of the norm of all together; infinity: none */
  double segment_limit; /* of the norm of each alone, after the other; 0: none */
  double* norms;        /* [segments]: scratch, the square of each norm */
  float* scales;        /* [segments] */
  uint32_t* finite;     /* 1, or 0: then `update` does nothing */
  Ring ring;            /* gets the norm at `field`, and behind it the first segment whose norm is not finite, or -1 */
  uint32_t field;
  uint32_t count;       /* segments */
} ClipFactor;

#define RULE_ADAMW 0U
#define RULE_ADAMAX 1U
#define RULE_BERT_ADAM 2U
#define RULE_BERT_ADAM_SPARING 3U

/* update: one step of the optimiser over all segments. */
typedef struct {
  float* gradient; /* set to 0 with `clear` */
  float *first, *second;
  void* shadow; /* the weights as products read them, bf16 or f32; may be null */
  const Segment* segments;
  const SegmentStep* steps;
  const Chunk* chunks;
  const float* shares;
  const float* scales;
  const uint32_t* finite;
  float keep1, take1, keep2, take2; /* beta and 1 - beta, each rounded from f64 */
  float epsilon;
  uint32_t rule;
  uint32_t clear;
  uint32_t shadow_is_f32;
} Update;
