#include "optim/dgc/layout.h"

#include <algorithm>
#include <cmath>

#include "tensor/errors.h"

namespace dgc {
namespace {

void add_dense(DgcLayout& layout, const ParamLayout& params, int64_t element_bytes) {
  for (int i = 0; i < params.size(); ++i) {
    if (!is_small(params.spec(i)) || params.numel(i) == 0) continue;
    layout.dense.push_back({params.offset(i), params.numel(i), layout.dense_numel});
    layout.dense_numel += params.numel(i);
  }
  layout.dense_bytes = layout.dense_numel * element_bytes;
}

// Sets the places of all segments in both forms of the message, as layout.canonical and layout.wire say.
void place_segments(DgcLayout& layout) {
  int64_t blocks = 0;  // of the segments before this one
  for (size_t i = 0; i < layout.segments.size(); ++i) {
    const WireTensor& tensor = layout.canonical.tensors()[i];
    DgcSegment& segment = layout.segments[i];
    segment = {segment.offset, tensor.numel, tensor.k, tensor.high_at, tensor.low_at, tensor.values_at, blocks};
    blocks += segment.blocks();
    const WireTensor& coded = layout.wire.tensors()[i];
    layout.codes.push_back(
        {coded.high_at, coded.scale_at, coded.low_at, coded.values_at, coded.words, layout.chunks, coded.low_bits});
    layout.chunks += DgcCode::chunks_of(coded.words);
  }
}

// Compares what a worker receives from each other worker: one message, or, as from a ring, 2 / workers * 4 bytes per
// element.
Travel choose_travel(const DgcLayout& layout, const DgcOptions& options, int64_t workers) {
  const Travel unsummed = layout.split ? Travel::split_reduce : Travel::sparse;
  if (layout.compressed_numel == 0 || options.transport == Transport::sparse) return unsummed;
  if (options.transport == Transport::dense) return Travel::dense;
  const int64_t message = layout.split ? layout.split->row_bytes() + layout.split->message_bytes()
                                       : static_cast<int64_t>(layout.wire.message_bytes());
  const int64_t messages = workers * message;
  return messages > 8 * layout.compressed_numel ? Travel::dense : unsummed;
}

// Lays out both forms of the message, with one tensor per segment, and completes the segments, of which only the
// offsets are set.
void make_messages(DgcLayout& layout, const std::vector<WireTensor>& tensors, WireFormat wire) {
  layout.canonical = WireLayout(tensors, kCanonicalWire);
  layout.wire = WireLayout(tensors, wire);
  place_segments(layout);
}

// The layout of some segments of `all`, which are given by index and in increasing order.
DgcLayout layout_of(const DgcLayout& all, const std::vector<size_t>& segments) {
  DgcLayout layout;
  layout.sparsity = all.sparsity;
  layout.travel = all.travel;
  std::vector<WireTensor> tensors;
  for (const size_t i : segments) {
    tensors.push_back({.numel = all.segments[i].numel, .k = all.segments[i].k});
    layout.segments.push_back({.offset = all.segments[i].offset});
    layout.compressed_numel += all.segments[i].numel;
  }
  make_messages(layout, tensors, all.wire.format());
  return layout;
}

}  // namespace

int64_t kept_elements(int64_t numel, double sparsity) {
  const auto k = static_cast<int64_t>(std::llround((1 - sparsity) * static_cast<double>(numel)));
  return std::clamp<int64_t>(k, 1, numel);
}

DgcLayout make_dgc_layout(const ParamLayout& params, const DgcOptions& options, double sparsity, int64_t workers) {
  DgcLayout layout;
  layout.sparsity = sparsity;
  std::vector<WireTensor> tensors;
  const auto add = [&](int64_t offset, int64_t numel, int64_t k) {
    tensors.push_back({.numel = numel, .k = k});
    layout.segments.push_back({.offset = offset});
  };
  for (int i = 0; i < params.size(); ++i) {
    const int64_t numel = params.numel(i);
    if (numel >= int64_t{1} << 32) {
      throw_user_error(
          "{} has {} parameters, and the optimizer \"dgc\" sends tensors of less than 2^32: train with "
          "\"sgd\", or make the layer smaller",
          params.spec(i).name, numel);
    }
    if (!is_small(params.spec(i)) && numel > 0) add(params.offset(i), numel, kept_elements(numel, sparsity));
  }
  if (options.small_tensors != SmallTensors::sparse) {
    add_dense(layout, params, options.small_tensors == SmallTensors::dense_fp16 ? 2 : 4);
  } else if (params.small_parameters() > 0) {
    // The segment includes the gaps between small tensors. They are zero in every arena, so they are selected last and
    // have no effect.
    add(params.small_offset(), params.extent() - params.small_offset(),
        kept_elements(params.small_parameters(), std::min(sparsity, options.small_tensors_sparsity)));
  }
  make_messages(layout, tensors, options.wire);
  layout.compressed_numel = params.parameters() - layout.dense_numel;
  const bool splits = options.algorithm == ExchangeAlgorithm::split_reduce && workers > 1;
  if (splits && layout.compressed_numel > 0) {
    layout.split = make_split_layout(layout.compressed_extent(), layout.canonical.entries(), workers);
  }
  layout.travel = choose_travel(layout, options, workers);
  if (layout.travel == Travel::dense) layout.split.reset();
  if (layout.travel == Travel::sparse) layout.bucket_bytes = options.bucket_bytes;
  return layout;
}

DgcLayout make_flush_layout(const ParamLayout& params, const DgcOptions& options) {
  // Small tensors hold nothing back if they travel dense in fp32.
  const bool held = options.small_tensors != SmallTensors::dense;
  return make_dgc_layout(
      params, {.transport = Transport::sparse, .small_tensors = held ? SmallTensors::sparse : SmallTensors::dense}, 0);
}

std::vector<DgcBucketLayout> cut_into_buckets(const ParamLayout& params, const DgcLayout& layout) {
  if (!layout.bucket_bytes) return {{layout, 0}};
  std::vector<DgcBucketLayout> buckets;
  std::vector<size_t> open;
  int64_t bytes = 0;
  const auto close = [&](int first_param) {
    std::ranges::sort(open);
    buckets.push_back({layout_of(layout, open), first_param});
    open.clear();
    bytes = 0;
  };
  const auto is_large = [&](int i) { return !is_small(params.spec(i)) && params.numel(i) > 0; };
  size_t large = 0;
  for (int i = 0; i < params.size(); ++i) large += is_large(i) ? 1 : 0;
  // The segment of the small tensors has parts of every layer, so it belongs in the last bucket.
  std::vector<size_t> at_the_end;
  for (size_t i = large; i < layout.segments.size(); ++i) at_the_end.push_back(i);
  for (int i = params.size(); i-- > 0;) {
    if (!is_large(i)) continue;
    open.push_back(--large);
    bytes += params.numel(i) * int64_t{sizeof(float)};
    if (bytes >= *layout.bucket_bytes) close(i);
  }
  open.insert(open.end(), at_the_end.begin(), at_the_end.end());
  if (!open.empty() || buckets.empty()) close(0);
  return buckets;
}

int64_t DgcLayout::compressed_bytes() const {
  if (travel == Travel::dense) return compressed_numel * int64_t{sizeof(float)};
  return split ? split->sent_bytes() : static_cast<int64_t>(wire.message_bytes());
}

DgcTables::DgcTables(const std::shared_ptr<Device>& device, const DgcLayout& layout)
    : table_(device, layout.segments, layout.compressed_numel),
      code_rows_(device, layout.codes.size() * sizeof(DgcCode)),
      ranges_(device, layout.dense.size() * sizeof(DgcRange)) {
  device->copy_in(code_rows_.data(), layout.codes.data(), code_rows_.bytes());
  device->copy_in(ranges_.data(), layout.dense.data(), ranges_.bytes());
  codes_ = {static_cast<const DgcCode*>(code_rows_.data()), layout.wire.format(), layout.wire.payload_bytes(),
            layout.chunks};
  dense_ = {static_cast<const DgcRange*>(ranges_.data()), static_cast<int32_t>(layout.dense.size()),
            layout.dense_numel};
}

}  // namespace dgc
