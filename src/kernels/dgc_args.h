#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/step_control.h"
#include "tensor/wire_types.h"

namespace dgc {

// One compressed tensor: where it lies in the arenas, and where its part of a canonical message lies in the payload.
// The part is three arrays, in index order:
//   block_ends  uint32 [ceil(numel / 65536)]  entries up to and with this block
//   offsets     uint16 [k]                    index within its block
//   values      fp32 [k]
struct DgcSegment {
  int64_t offset = 0;  // first element, in the arenas
  int64_t numel = 0;   // below 2^32
  int64_t k = 0;       // exactly this many entries are sent, 1 <= k <= numel
  uint64_t block_ends_at = 0, offsets_at = 0,
           values_at = 0;   // bytes from the start of the payload, each aligned to its type
  int64_t first_block = 0;  // blocks of all segments before this one
  constexpr int64_t blocks() const { return dgc_blocks(numel); }
};

// The compressed tensors of a model: the table lies in DEVICE memory, so that one launch finds all of them.
struct DgcTable {
  const DgcSegment* segments = nullptr;  // in the order of first_block
  int32_t count = 0;
  int64_t blocks = 0;  // of all segments
};

// Where a segment's part lies in the payload of a message as it travels (dist/wire.h names the arrays).
struct DgcCode {
  uint64_t high_at = 0, scale_at = 0, low_at = 0, values_at = 0;  // bytes, each aligned to its type
  int64_t words = 0;                                              // that tell the entries apart (dist/wire.h)
  int64_t first_chunk = 0;                                        // chunks of all segments before this one
  int32_t low_bits = 0;                                           // rice

  // An entry's place in its tensor hangs on all words before it, so a stream is cut into chunks that are counted first.
  static constexpr int64_t kChunk = 256;
  static constexpr int64_t chunks_of(int64_t words) { return (words + kChunk - 1) / kChunk; }
};

// How messages travel: the table lies in device memory, a row for each segment.
struct DgcCodes {
  const DgcCode* codes = nullptr;
  WireFormat format;
  uint64_t payload_bytes = 0;  // of the message as it travels, a multiple of 16
  int64_t chunks = 0;          // of all segments
};

// What one worker's selection remembers of a tensor between steps. It makes the guess good and never changes a result,
// so it is not saved: after a resume the first step takes the exact path.
struct DgcGuess {
  float threshold = 0;  // the k-th largest |v| of the previous step; 0: none yet
  float growth = 1;     // how that threshold moved, step over step
  float tail = 0.95f;   // reaching down to tail * threshold gives a list of the right length
  int64_t k = 0;        // the k it belongs to
  bool hit = false;     // whether the guess made for the previous step was good enough: for tests and `dgc bench`
};

// A stretch of an arena that travels dense, and where it lies in a packed buffer.
struct DgcRange {
  int64_t offset = 0, numel = 0;
  int64_t packed_at = 0;
};

// All of them; the table lies in device memory.
struct DgcDense {
  const DgcRange* ranges = nullptr;  // in the order of packed_at, without gaps
  int32_t count = 0;
  int64_t numel = 0;  // of the packed buffer
};

// For every segment, in one pass over memory (Lin et al. 2018, algorithm 4; every product-sum is an explicit fma):
//   g' = scale * g
//   momentum correction:  u = momentum * u + g';   v = v + u
//             (Nesterov:  u = momentum * (u + g'); v = (v + u) + g')
//   without it:           v = v + g'; u is neither read nor written
//   the k largest |v| go to the payload, ties to the lower index;
//   there v = 0 and, with momentum correction and factor masking, u = 0
//   the header is written in front of the payload, with control->step and the checksum (tensor/wire_types.h)
// When control->skip is set nothing at all is touched.
// u and v may start from other arenas, which stay as they are: so a step can be taken back that is judged later.
//
// |v| is compared by its bits, so a non-finite v ranks above all others and is sent as it is.
// g must be finite; v and u then stay finite as long as the sums do not overflow.
struct DgcCompressArgs {
  DgcTable table;
  DgcGuess* guesses = nullptr;  // device memory, one per segment
  const float* g = nullptr;     // arenas
  float* u = nullptr;
  float* v = nullptr;
  const float* u_from = nullptr;  // what they start from; null: from themselves
  const float* v_from = nullptr;
  const StepControl* control = nullptr;  // device memory
  const float* scale = nullptr;          // device memory; null: 1
  float momentum = 0;
  bool nesterov = false;
  bool momentum_correction = true;
  bool factor_masking = true;
  WireHeader header;             // all but step and checksum
  std::byte* message = nullptr;  // aligned to 16; gaps between the payload's arrays are not written, but hashed
};

// Makes the message that travels out of a canonical one that dgc_compress has just made (docs/wire_format.md). Every
// value is rounded to what the format can say, in place; what rounding takes away, exactly, is left in v; the canonical
// message is sealed again and its header copied. With control->skip set nothing is touched.
struct DgcEncodeArgs {
  DgcTable table;
  DgcCodes codes;
  const StepControl* control = nullptr;
  float* v = nullptr;            // arena
  WireHeader header;             // as dgc_compress had it
  std::byte* message = nullptr;  // canonical, aligned to 16
  std::byte* coded = nullptr;    // as it travels, aligned to 16; all of it is written
};

// Makes canonical messages out of those that came, for dgc_apply to check and use. The bytes that came may be any: what
// cannot be understood is left out or zero, the same on every backend, and then the checksum does not match. Nothing is
// touched when control->skip or its fault is set.
struct DgcDecodeArgs {
  DgcTable table;
  DgcCodes codes;
  const StepControl* control = nullptr;
  uint64_t payload_bytes = 0;        // of a canonical message
  int32_t workers = 0;               // messages, one after another, here and there
  const std::byte* coded = nullptr;  // aligned to 16
  std::byte* messages = nullptr;     // aligned to 16; all of it is written
};

// One worker's own canonical message as dense numbers, for a sum on its way: in every segment, what was sent and +0
// elsewhere. A sent -0 becomes +0 too. Such arenas, added in worker order, give the bits of dgc_apply's G, which starts
// from +0 and adds only what was sent: a sum that starts from +0 is never -0, and adding +0 to any other changes
// nothing. With control->skip set nothing is touched.
struct DgcScatterArgs {
  DgcTable table;
  const StepControl* control = nullptr;
  const std::byte* message = nullptr;  // aligned to 16
  float* dense = nullptr;              // an arena; its gaps are left alone
};

// Steps the weights by G, the sum over all workers of what was sent. With momentum correction the sum is applied as
// plain SGD and only the weight decay has a momentum of its own, which by linearity is exactly the decay of dense
// momentum SGD:
//   d = weight_decay * w; m = momentum * m + d;        w -= lr * (G + (nesterov ? d + momentum * m : m))
// and with weight_decay == 0, where that momentum never leaves zero, w -= lr * G: m is not looked at and may be null.
// Without it, ordinary momentum runs over the sum (Gradient Dropping):
//   d = G + weight_decay * w; m = momentum * m + d;    w -= lr * (nesterov ? d + momentum * m : m)
// Every a * b + c above is one fma.
// The tensors that travel dense take the step of SgdArgs (kernels/backend.h) on dense_sum, in the same call.
// With control->skip or its fault set, nothing is looked at nor changed.
struct DgcStepArgs {
  DgcTable table;
  StepControl* control = nullptr;
  float* sum = nullptr;  // an arena with G in its segments; scratch afterwards
  float* m = nullptr;
  float* w = nullptr;
  float momentum = 0;
  float weight_decay = 0;
  bool nesterov = false;
  bool momentum_correction = true;
  DgcDense dense;                    // count 0: none
  const float* dense_sum = nullptr;  // packed
};

// Checks every message first: all of its header, its checksum and every index. If one cannot be used control->fault
// says why (the lowest worker's) and nothing is applied, in this step or any later one. Then decodes them in worker
// order into G and steps the weights. Here `sum` is all zero before and after.
struct DgcApplyArgs : DgcStepArgs {
  const std::byte* messages = nullptr;  // device memory: `workers` canonical ones, one after another
  int32_t workers = 0;
  WireHeader header;  // what each must say, but for its worker, step and checksum
};

// What travels dense in fp16: what has been held back and the new gradient, x = residual + scale * arena (one fma),
// is sent as wire_codes.h says, and x - sent is held back. With control->skip set nothing is touched.
struct DgcPackHalfArgs {
  DgcDense dense;
  const StepControl* control = nullptr;
  const float* arena = nullptr;
  float* residual = nullptr;     // an arena too
  uint16_t* packed = nullptr;    // [dense.numel]
  const float* scale = nullptr;  // device memory
};

// sum[i] = ((x0[i] + x1[i]) + x2[i]) + ... in fp32, of what `workers` have packed, one after another.
struct DgcSumHalfArgs {
  const uint16_t* packed = nullptr;  // [workers][numel]
  int32_t workers = 0;
  int64_t numel = 0;
  float* sum = nullptr;
};

// packed = scale * arena, for every range.
struct DgcPackArgs {
  DgcDense dense;
  const float* arena = nullptr;
  float* packed = nullptr;
  const float* scale = nullptr;  // device memory
};

}  // namespace dgc
