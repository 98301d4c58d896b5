// What the mock driver counts, and how the libraries beside it put work on its streams.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Since the program began, or since mock_reset. */
typedef struct {
  uint64_t launches;      /* kernels launched by the program, not by graphs */
  uint64_t products;      /* the same of products */
  uint64_t uploads, upload_bytes;     /* copies from the host */
  uint64_t downloads, download_bytes; /* copies to the host */
  uint64_t moves, move_bytes;         /* copies on the device */
  uint64_t fills;         /* memsets */
  uint64_t allocations, frees;
  uint64_t live_bytes, peak_bytes;
  uint64_t pinned_allocations;
  uint64_t waits;         /* the host waited: for a stream, an event, the context, or by a copy that is not asynchronous */
  uint64_t contexts;      /* asked for */
  uint64_t events_made;
  uint64_t events;        /* recorded */
  uint64_t graph_launches;
  uint64_t graph_nodes;   /* kernels, products, copies and fills that graphs ran */
} MockCounts;

void mock_reset(void);
void mock_read(MockCounts* counts);

/* All counts and the launches of each kernel as JSON; returns the length that it needs, as snprintf does. */
size_t mock_json(char* text, size_t size);

/* The order in which threads and blocks of kernels run from now on: see host/block.hpp. */
void mock_schedule(uint64_t schedule);

/* What a piece of work on a stream is. */
enum MockKind { MOCK_KERNEL, MOCK_PRODUCT, MOCK_UPLOAD, MOCK_DOWNLOAD, MOCK_MOVE, MOCK_FILL, MOCK_OTHER };

/* Does `run(data)` now, or adds it to the graph that the stream is capturing, with a copy of its data. `bytes` are counted, `name` as well (of kernels and
   products; it must live on). `run` gives 0 or the error to be returned. */
int mock_enqueue(void* stream, enum MockKind kind, const char* name, uint64_t bytes, int (*run)(const void* data), const void* data, size_t size);

/* Whether all of a stretch of device memory is allocated. */
int mock_holds(uint64_t pointer, size_t bytes);

/* A function that only has its name here: says so and aborts. */
void mock_missing(const char* name);

#ifdef __cplusplus
}
#endif
