#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/step_control.h"
#include "tensor/wire_types.h"

namespace dgc {

// One compressed tensor: where the tensor lies in the arenas, and where its part of a canonical message lies in the
// payload. That part has three arrays, in the order of indices:
//   block_ends  uint32 [ceil(numel / 65536)]  number of entries in this block and all blocks before it
//   offsets     uint16 [k]                    an entry's index within its block
//   values      fp32 [k]
struct DgcSegment {
  int64_t offset = 0;  // first element, in the arenas
  int64_t numel = 0;   // below 2^32
  int64_t k = 0;       // exactly this many entries are sent, 1 <= k <= numel
  // Where the arrays start: bytes from the start of the payload, each aligned to its type.
  uint64_t block_ends_at = 0, offsets_at = 0, values_at = 0;
  int64_t first_block = 0;  // number of blocks of all segments before this one
  constexpr int64_t blocks() const { return dgc_blocks(numel); }
};

// The compressed tensors of a model. The table lies in DEVICE memory (DgcTableMemory), so that one launch can work on
// all tensors.
struct DgcTable {
  const DgcSegment* segments = nullptr;       // in the order of first_block
  const int32_t* segment_of_block = nullptr;  // [blocks]; a CPU goes from segment to segment, and needs none
  int32_t count = 0;
  int64_t blocks = 0;  // of all segments
  int64_t numel = 0;   // of all segments, without the gaps between them
};

// Where a segment's part lies in the payload of a message as it travels (dist/wire.h names the arrays).
struct DgcCode {
  uint64_t high_at = 0, scale_at = 0, low_at = 0, values_at = 0;  // bytes, each aligned to its type
  int64_t words = 0;                                              // number of words that encode indices (dist/wire.h)
  int64_t first_chunk = 0;                                        // number of chunks of all segments before this one
  int32_t low_bits = 0;                                           // only with rice

  // An entry's index depends on all words before it. So the words are cut into chunks of kChunk words, which are
  // counted before they are decoded.
  static constexpr int64_t kChunk = 256;
  static constexpr int64_t chunks_of(int64_t words) { return (words + kChunk - 1) / kChunk; }
};

// The format in which messages travel. The table lies in device memory and has a row for each segment.
struct DgcCodes {
  const DgcCode* codes = nullptr;
  WireFormat format;
  uint64_t payload_bytes = 0;  // of the message as it travels, a multiple of 16
  int64_t chunks = 0;          // of all segments
};

// What one worker's selection remembers of a tensor between steps. It makes the guess of the next threshold better and
// never changes a result, so checkpoints do not hold it: after a resume the first step selects without a guess.
struct DgcGuess {
  float threshold = 0;  // the k-th largest |v| of the previous step; 0: there was none
  float growth = 1;     // the ratio of that threshold to the one before it
  float tail = 0.95f;   // collecting |v| >= tail * threshold gives a list of the right length
  int64_t k = 0;        // the k that `threshold` belongs to
  bool hit = false;     // the previous step's guess was good enough; tests and `dgc bench` read it
};

// A stretch of an arena that travels dense, and where it lies in the packed buffer (in elements).
struct DgcRange {
  int64_t offset = 0, numel = 0;
  int64_t packed_at = 0;
};

// All stretches that travel dense. The table lies in device memory.
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
//   the k largest |v| are chosen, ties to the lower index, and go to the payload as fma(u_share, u, v);
//   there v = 0 and, with momentum correction and factor masking, u = 0
//   the header is written in front of the payload, with control->step and the checksum (tensor/wire_types.h)
// When control->skip is set, the op changes nothing.
// u and v may be read from other arenas (u_from, v_from), which are not changed. So a step that is judged only later
// can be taken back.
//
// |v| is compared by its bits, so a non-finite v ranks above all others and is sent as it is.
// g must be finite; v and u then stay finite as long as the sums do not overflow.
struct DgcCompressArgs {
  DgcTable table;
  DgcGuess* guesses = nullptr;  // device memory, one per segment
  const float* g = nullptr;     // arena, as are u and v
  float* u = nullptr;
  float* v = nullptr;
  const float* u_from = nullptr;         // arena that u is read from; null: u itself
  const float* v_from = nullptr;         // the same for v
  const StepControl* control = nullptr;  // device memory
  const float* scale = nullptr;          // device memory; null: 1
  float momentum = 0;
  bool nesterov = false;
  bool momentum_correction = true;
  bool factor_masking = true;
  float u_share = 0;             // for momentum correction with factor masking; 0: v itself is sent
  WireHeader header;             // all but step and checksum
  std::byte* message = nullptr;  // aligned to 16; gaps between the payload's arrays are not written, but hashed
};

// Makes the message that travels out of a canonical one that dgc_compress has just made (docs/wire_format.md). Every
// value in the canonical message is rounded, in place, to a value that the format has, and v keeps the exact rounding
// error. Then the canonical message gets a new checksum, and its header is copied. When control->skip is set, the op
// changes nothing.
struct DgcEncodeArgs {
  DgcTable table;
  DgcCodes codes;
  const StepControl* control = nullptr;
  float* v = nullptr;            // arena
  WireHeader header;             // the header that dgc_compress was given
  std::byte* message = nullptr;  // canonical, aligned to 16
  std::byte* coded = nullptr;    // as it travels, aligned to 16; all of it is written
};

// Makes canonical messages out of the messages that arrived, for dgc_apply to check and use. The bytes that arrived may
// be anything: what cannot be decoded is left out or zero, in the same way on every backend, and the checksum then does
// not match. When control->skip or control->fault is set, the op changes nothing.
struct DgcDecodeArgs {
  DgcTable table;
  DgcCodes codes;
  const StepControl* control = nullptr;
  uint64_t payload_bytes = 0;        // of a canonical message
  int32_t workers = 0;               // number of messages, which lie one after another in both buffers
  const std::byte* coded = nullptr;  // aligned to 16
  std::byte* messages = nullptr;     // aligned to 16; all of it is written
};

// Writes one worker's own canonical message as dense numbers, which are summed on their way: in every segment of
// `dense`, each entry gets the value that was sent, and all other elements +0. A sent -0 becomes +0 too. Such arenas,
// added in worker order, give the bits of dgc_apply's G, which starts from +0 and adds only what was sent: a sum that
// starts from +0 is never -0, and adding +0 to any other changes nothing. When control->skip is set, the op changes
// nothing.
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
// and with weight_decay == 0, where that momentum never leaves zero, w -= lr * G: m is not read.
// Without momentum correction, ordinary momentum runs over the sum (Gradient Dropping):
//   d = G + weight_decay * w; m = momentum * m + d;    w -= lr * (nesterov ? d + momentum * m : m)
// Every a * b + c above is one fma.
// The tensors that travel dense take the step of SgdArgs (kernels/op_args.h) on dense_sum, in the same call; m may be
// null if that has no momentum either. When control->skip or control->fault is set, the op changes nothing.
struct DgcStepArgs {
  DgcTable table;
  StepControl* control = nullptr;
  float* sum = nullptr;  // an arena with G in its segments, which the step sets to zero
  float* m = nullptr;
  float* w = nullptr;
  float momentum = 0;
  float weight_decay = 0;
  bool nesterov = false;
  bool momentum_correction = true;
  DgcDense dense;                    // count 0: none
  const float* dense_sum = nullptr;  // packed, [dense.numel]
};

// Checks the header, the checksum and every index of all messages first. If a message cannot be used, control->fault
// says why (for the lowest such worker), and no message is applied, in this step or any later one. Else the op adds the
// messages into G, in worker order, and steps the weights. Here `sum` is all zero before and after the call.
struct DgcApplyArgs : DgcStepArgs {
  const std::byte* messages = nullptr;  // device memory: `workers` canonical ones, one after another
  int32_t workers = 0;
  WireHeader header;  // what each header must say, except for worker, step and checksum
};

// Packs what travels dense in fp16: x = residual + scale * arena (one fma) is rounded to fp16 as wire_codes.h says, and
// the rounding error becomes the new residual. When control->skip is set, the op changes nothing.
struct DgcPackHalfArgs {
  DgcDense dense;
  const StepControl* control = nullptr;
  const float* arena = nullptr;
  float* residual = nullptr;     // an arena
  uint16_t* packed = nullptr;    // [dense.numel]
  const float* scale = nullptr;  // device memory
};

// sum[i] = ((x0[i] + x1[i]) + x2[i]) + ... in fp32, where xw is what worker w has packed in fp16.
struct DgcSumHalfArgs {
  const uint16_t* packed = nullptr;  // [workers][numel]
  int32_t workers = 0;
  int64_t numel = 0;
  float* sum = nullptr;
};

// packed = scale * arena, for every range of `dense`; packed is [dense.numel].
struct DgcPackArgs {
  DgcDense dense;
  const float* arena = nullptr;
  float* packed = nullptr;
  const float* scale = nullptr;  // device memory
};

}  // namespace dgc
