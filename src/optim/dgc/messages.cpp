#include "optim/dgc/messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dgc {
namespace {

// What dgc_compress makes of a v of zeros: +0 at the lowest k places of each segment. The header is left out.
std::vector<std::byte> message_of_zeros(const DgcLayout& layout) {
  std::vector<std::byte> message(layout.canonical.message_bytes());
  std::byte* const payload = message.data() + kWireHeaderBytes;
  for (const DgcSegment& s : layout.segments) {
    for (int64_t block = 0; block < s.blocks(); ++block) {
      const auto end = static_cast<uint32_t>(std::min(s.k, (block + 1) * kDgcBlock));
      std::memcpy(payload + s.block_ends_at + sizeof(end) * static_cast<size_t>(block), &end, sizeof(end));
    }
    for (int64_t entry = 0; entry < s.k; ++entry) {
      const auto offset = static_cast<uint16_t>(entry % kDgcBlock);
      std::memcpy(payload + s.offsets_at + sizeof(offset) * static_cast<size_t>(entry), &offset, sizeof(offset));
    }
  }
  return message;
}

}  // namespace

void Bucket::prepare(DgcBucketLayout layout, size_t first_guess) {
  layout_ = std::move(layout);
  tables_ = DgcTables(context_.backend.device(), this->layout());
  first_guess_ = first_guess;
  zeros_sent_.clear();
  make_room(canonical_, this->layout().canonical.message_bytes());
  if (this->layout().is_coded()) make_room(coded_, this->layout().wire.message_bytes());
}

void Bucket::make_room(Messages& messages, size_t bytes) const {
  messages.bytes = bytes;
  const auto ranks = static_cast<size_t>(context_.communicator.size());
  const bool travel = layout().travel == Travel::sparse;
  const size_t mine = bytes * static_cast<size_t>(context_.local_workers);
  const size_t all = ranks > 1 && travel ? mine * ranks : 0;
  at_least(mine, messages.mine, context_.backend.device(), MemoryUse::messages);
  at_least(all, messages.all, context_.backend.device(), MemoryUse::messages);
  // The gaps between a message's arrays are never written, are part of the checksum, and lie elsewhere in each layout.
  context_.backend.device()->zero(messages.mine.data(), messages.mine.bytes());
}

void Bucket::compress(int local_worker, DgcCompressArgs rule) const {
  const int worker = context_.communicator.rank() * context_.local_workers + local_worker;
  rule.table = tables_.table();
  rule.guesses += first_guess_;
  rule.header = layout().header(static_cast<uint32_t>(worker));
  rule.message = message(local_worker);
  context_.backend.dgc_compress(rule);
  if (layout().is_coded()) encode(rule.header, rule.message, rule.v, rule.control, coded_.of(local_worker));
}

void Bucket::encode(const WireHeader& header, std::byte* message, float* v, const StepControl* control,
                    std::byte* coded) const {
  DgcEncodeArgs args;
  args.table = tables_.table();
  args.codes = tables_.codes();
  args.control = control;
  args.v = v;
  args.header = header;
  args.message = message;
  args.coded = coded;
  context_.backend.dgc_encode(args);
}

const std::byte* Bucket::gather(const Messages& messages) const {
  context_.communicator.all_gather(*context_.backend.device(), messages.mine.data(), messages.all.data(),
                                   messages.bytes * static_cast<size_t>(context_.local_workers));
  return static_cast<const std::byte*>(messages.all.data());
}

const std::byte* Bucket::decode(const std::byte* coded, const StepControl* control) const {
  DgcDecodeArgs decode;
  decode.table = tables_.table();
  decode.codes = tables_.codes();
  decode.control = control;
  decode.payload_bytes = canonical_.bytes - kWireHeaderBytes;
  decode.workers = context_.communicator.size() * context_.local_workers;
  decode.coded = coded;
  decode.messages = static_cast<std::byte*>(canonical_.all.data());
  context_.backend.dgc_decode(decode);
  return decode.messages;
}

void Bucket::exchange(const StepControl* control) {
  if (context_.communicator.size() == 1) {
    messages_ = message(0);  // dgc_encode has rounded the values, so decoding would give the same message
    return;
  }
  const std::byte* const all = gather(travelling());
  messages_ = layout().is_coded() ? decode(all, control) : all;
}

void Bucket::copy_out(int local_worker, std::byte* message) const {
  context_.backend.device()->copy_out(message, travelling().of(local_worker), travelling().bytes);
}

void Bucket::place(std::span<const std::byte* const> from, float* zeros, const StepControl* control) {
  Device& device = *context_.backend.device();
  if (std::ranges::count(from, nullptr) > 0) {
    if (zeros_sent_.empty()) zeros_sent_ = message_of_zeros(layout());
    device.copy_in(message(0), zeros_sent_.data(), zeros_sent_.size());
  }
  const Messages& arrived = travelling();
  auto* const all = static_cast<std::byte*>(arrived.all.data());
  for (size_t worker = 0; worker < from.size(); ++worker) {
    std::byte* const to = all + worker * arrived.bytes;
    if (from[worker] != nullptr) {
      device.copy_in(to, from[worker], arrived.bytes);
    } else {  // also where messages travel in the canonical form, as this seals them for the worker and the step
      encode(layout().header(static_cast<uint32_t>(worker)), message(0), zeros, control, to);
    }
  }
  messages_ = layout().is_coded() ? decode(all, control) : all;
}

void Bucket::apply(Backend& backend, DgcApplyArgs args) const {
  args.table = tables_.table();
  args.header = layout().header(0);
  args.messages = messages_;
  backend.dgc_apply(args);
}

void Buckets::prepare(std::vector<DgcBucketLayout> layouts, Backend& backend) {
  // The old buckets are freed first, because old and new might not fit at once.
  if (buckets_.size() != layouts.size() || backend_ != &backend) buckets_.clear();
  backend_ = &backend;
  buckets_.reserve(layouts.size());
  const OptimizerContext context{backend, context_.communicator, context_.layout, context_.local_workers};
  size_t guesses = 0;
  for (size_t i = 0; i < layouts.size(); ++i) {
    if (i == buckets_.size()) buckets_.emplace_back(context);
    const size_t segments = layouts[i].layout.segments.size();
    buckets_[i].prepare(std::move(layouts[i]), guesses);
    guesses += segments;
  }
}

int64_t Buckets::sent_bytes() const {
  int64_t bytes = 0;
  for (const Bucket& bucket : buckets_) bytes += static_cast<int64_t>(bucket.layout().wire.message_bytes());
  return bytes;
}

void Buckets::compress(std::span<const DgcCompressArgs> rules) const {
  for (size_t local = 0; local < rules.size(); ++local) {
    for (const Bucket& bucket : buckets_) bucket.compress(static_cast<int>(local), rules[local]);
  }
}

void Buckets::exchange(const StepControl* control) {
  for (Bucket& bucket : buckets_) bucket.exchange(control);
}

void Buckets::apply(Backend& backend, DgcApplyArgs args) const {
  const DgcDense dense = std::exchange(args.dense, {});
  for (const Bucket& bucket : buckets_) {
    if (&bucket == &buckets_.back()) args.dense = dense;
    bucket.apply(backend, args);
  }
}

}  // namespace dgc
