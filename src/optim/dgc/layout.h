#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dist/wire.h"
#include "kernels/dgc_args.h"
#include "optim/dgc/dgc.h"
#include "optim/dgc/split_layout.h"
#include "tensor/params.h"

namespace dgc {

// What of a model is compressed and what travels dense. `dgc plan` reads it too.
struct DgcLayout {
  double sparsity = 0;
  std::vector<DgcSegment> segments;  // tensors of two and more dimensions, in the layout's order; then, if sparse, all
                                     // small ones as one
  std::vector<DgcCode> codes;        // where they lie in the message that travels
  WireLayout canonical;              // their message as dgc_compress makes it ...
  WireLayout wire;                   // ... and as it travels: the same one, or coded
  std::vector<DgcRange> dense;       // small tensors that are not compressed
  int64_t dense_numel = 0;
  int64_t dense_bytes = 0;  // as they travel

  Transport transport = Transport::sparse;  // how the segments travel; never automatic
  std::optional<SplitLayout> split;         // sparse, but split and reduced
  std::optional<int64_t> bucket_bytes;      // sparse, and beside the backward pass: DgcOptions
  int64_t compressed_numel = 0;             // of the segments, without the gaps between small tensors

  int64_t blocks = 0;  // of all segments
  int64_t chunks = 0;  // likewise, of what travels (DgcCode)

  bool is_coded() const { return wire.format() != kCanonicalWire; }
  WireHeader header(uint32_t worker) const { return wire_header(canonical, wire.format(), worker); }

  // The segments lie in front of an arena, in so many elements.
  int64_t compressed_extent() const { return segments.empty() ? 0 : segments.back().offset + segments.back().numel; }

  // What one worker sends per step, counted once: what carries it may pass it on.
  int64_t compressed_bytes() const;  // in one bucket
  int64_t sent_bytes() const { return compressed_bytes() + dense_bytes; }
};

// How many of numel elements are sent: max(1, round((1 - sparsity) * numel)).
int64_t kept_elements(int64_t numel, double sparsity);

// A layout's tables on the device.
class DgcTables {
 public:
  DgcTables() = default;
  DgcTables(const std::shared_ptr<Device>& device, const DgcLayout& layout);

  const DgcTable& table() const { return table_; }
  const DgcCodes& codes() const { return codes_; }
  const DgcDense& dense() const { return dense_; }

 private:
  Buffer segments_, code_rows_, ranges_;
  DgcTable table_;
  DgcCodes codes_;
  DgcDense dense_;
};

// With so many workers in all: Transport::automatic asks what each would receive, and one has nothing to split.
DgcLayout make_dgc_layout(const ParamLayout& params, const DgcOptions& options, double sparsity, int64_t workers = 1);

// How a flush sends everything that may be held back: all of it, as messages, without rounding, after everything else.
DgcLayout make_flush_layout(const ParamLayout& params, const DgcOptions& options);

// Some of a model's compressed tensors, which travel as a message of their own.
struct DgcBucketLayout {
  DgcLayout layout;     // of these alone; what travels dense is no part of it
  int first_param = 0;  // a backward pass, which ends at parameter 0, is done with all of them once it is with this one
};

// All compressed tensors, in the order in which a backward pass finishes them: each bucket but the last has at least
// layout.bucket_bytes of gradient; with none, all are one bucket. What is chosen of each tensor stays the same.
std::vector<DgcBucketLayout> cut_into_buckets(const ParamLayout& params, const DgcLayout& layout);

}  // namespace dgc
