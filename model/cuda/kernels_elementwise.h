// Small things: casts, fills, sums, a transpose. Included by kernels.h.
#pragma once

/* cast_to_bf16 (f32 x, bf16 y) and cast_to_f32 (bf16 x, f32 y). */
typedef struct {
  const void* x;
  void* y;
  uint64_t count;
} Cast;

/* fill_f32: also of gradients before the first micro-batch, where the update does not clear them. */
typedef struct {
  float* x;
  uint64_t count;
  float value;
  uint32_t unused;
} Fill;

/* scaled_add_T: y = a x + b y. With b = 0, y is only written. */
typedef struct {
  const void* x;
  void* y;
  uint64_t count;
  float a, b;
} ScaledAdd;

/* dropout_T: y = dropout(x); number i has index i. Of a gradient it is the same function. */
typedef struct {
  const void* x;
  void* y; /* may be x */
  Dropout dropout;
  uint64_t count;
} DropoutApply;

/* transpose_T: y [columns, rows] of x [rows, columns]. */
typedef struct {
  const void* x;
  void* y;
  uint32_t rows, columns;
} Transpose;
