#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dist/wire.h"
#include "kernels/dgc_args.h"
#include "kernels/dgc_table.h"
#include "optim/dgc/dgc.h"
#include "optim/dgc/split_layout.h"
#include "tensor/params.h"

namespace dgc {

// Which tensors of a model are compressed and which travel dense. `dgc plan` reads the layout too.
struct DgcLayout {
  double sparsity = 0;
  std::vector<DgcSegment> segments;  // tensors of two and more dimensions, in the order of ParamLayout; if small
                                     // tensors are sparse, one more with all of them
  std::vector<DgcCode> codes;        // where each segment lies in the message that travels
  WireLayout canonical;              // message of the segments as dgc_compress makes it
  WireLayout wire;                   // message of the segments as it travels: canonical or coded
  std::vector<DgcRange> dense;       // small tensors that are not compressed
  int64_t dense_numel = 0;
  int64_t dense_bytes = 0;  // size of the dense tensors as they travel

  Travel travel = Travel::sparse;       // how the segments travel
  std::optional<SplitLayout> split;     // set if they are split and reduced
  std::optional<int64_t> bucket_bytes;  // set if they are sparse and overlap the backward pass
  int64_t compressed_numel = 0;         // elements of all segments, without the gaps between small tensors

  int64_t chunks = 0;  // chunks of all segments (DgcCode)

  bool is_coded() const { return wire.format() != kCanonicalWire; }
  WireHeader header(uint32_t worker) const { return wire_header(canonical, wire.format(), worker); }

  // Number of elements at the front of an arena in which all segments lie.
  int64_t compressed_extent() const { return segments.empty() ? 0 : segments.back().offset + segments.back().numel; }

  // Bytes that one worker sends per step, counted once, although a communicator may pass them on.
  int64_t compressed_bytes() const;  // the part of the compressed tensors, as one bucket
  int64_t sent_bytes() const { return compressed_bytes() + dense_bytes; }
};

// How many of numel elements are sent: max(1, round((1 - sparsity) * numel)).
int64_t kept_elements(int64_t numel, double sparsity);

// The tables of a layout in device memory.
class DgcTables {
 public:
  DgcTables() = default;
  DgcTables(const std::shared_ptr<Device>& device, const DgcLayout& layout);

  const DgcTable& table() const { return table_.table(); }
  const DgcCodes& codes() const { return codes_; }
  const DgcDense& dense() const { return dense_; }

 private:
  DgcTableMemory table_;
  Buffer code_rows_, ranges_;
  DgcCodes codes_;
  DgcDense dense_;
};

// workers: over all ranks; Transport::automatic compares what each of them would receive, and a single worker never
// splits. Throws UserError if a tensor has 2^32 elements or more, or as make_split_layout() does.
DgcLayout make_dgc_layout(const ParamLayout& params, const DgcOptions& options, double sparsity, int64_t workers = 1);

// The layout of a flush, which sends all elements of the tensors that may hold something back, in canonical messages,
// without rounding and without overlap.
DgcLayout make_flush_layout(const ParamLayout& params, const DgcOptions& options);

// Some of a model's compressed tensors, which travel as a message of their own.
struct DgcBucketLayout {
  DgcLayout layout;     // of these tensors alone, without those that travel dense
  int first_param = 0;  // a backward pass, which goes down to parameter 0, is done with all of them after this one
};

// Cuts all compressed tensors into buckets, in the order in which a backward pass finishes them. Each bucket but the
// last has at least layout.bucket_bytes of gradient; if layout.bucket_bytes is not set, there is one bucket. The
// selection in each tensor does not depend on the buckets.
std::vector<DgcBucketLayout> cut_into_buckets(const ParamLayout& params, const DgcLayout& layout);

}  // namespace dgc
