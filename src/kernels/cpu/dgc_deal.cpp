#include "kernels/dgc_deal.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/dgc_scratch.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/wire_message.h"

// Split and reduce. All loops but the one that zeroes a shard touch only what is sent, so they are plain.
namespace dgc {
namespace {

// Calls body(element of the arena, value) in the arena's order.
template <typename Body>
void for_entries(const std::byte* message, const DgcTable& table, const Body& body) {
  for (int32_t i = 0; i < table.count; ++i) {
    const DgcSegment& s = table.segments[i];
    for (int64_t block = 0; block < s.blocks(); ++block) {
      const BlockEntries e = entries_of(message, s, block);
      for (uint32_t at = e.begin; at < e.end; ++at) body(s.offset + block * kDgcBlock + e.offsets[at], e.values[at]);
    }
  }
}

}  // namespace

void CpuBackend::dgc_deal(const DgcDealArgs& args) {
  if (args.control->skip != 0) return;
  const DgcDeal& deal = args.deal;
  std::vector<int32_t>& used = dgc_scratch_->dealt;
  used.assign(static_cast<size_t>(deal.owners), 0);
  for_entries(args.message, args.table, [&](int64_t element, float value) {
    const DgcDeal::Place place = deal.place(element);
    int32_t& next = used[static_cast<size_t>(place.owner)];
    if (next == deal.room) {
      args.v[element] += value;
      return;
    }
    uint32_t* const row = args.rows + place.owner * deal.row();
    row[next] = place.at;
    row[deal.room + next] = std::bit_cast<uint32_t>(value);
    ++next;
  });
  for (int32_t owner = 0; owner < deal.owners; ++owner) {
    uint32_t* const row = args.rows + owner * deal.row();
    const int32_t sent = used[static_cast<size_t>(owner)];
    std::fill(row + sent, row + deal.room, DgcDeal::kEmpty);
    std::fill(row + deal.room + sent, row + int64_t{2} * deal.room, 0u);
  }
}

void CpuBackend::dgc_sum_dealt(const DgcSumDealtArgs& args) {
  if (args.control->skip != 0) return;
  const int64_t numel = args.deal.shard();
  for_chunks(numel, kElementwiseChunk, [&](int64_t at, int64_t size) { std::fill_n(args.shard + at, size, 0.f); });
  for (int32_t worker = 0; worker < args.workers; ++worker) {
    const uint32_t* const row = args.rows + worker * args.stride;
    for (int32_t i = 0; i < args.deal.room; ++i) {
      if (row[i] < numel) args.shard[row[i]] += std::bit_cast<float>(row[args.deal.room + i]);
    }
  }
}

void CpuBackend::dgc_undeal(const DgcUndealArgs& args) {
  if (!may_apply(args)) return;
  const int64_t first = args.table.segments[0].offset;
  for (int32_t owner = 0; owner < args.workers; ++owner) {
    for_entries(message_of(args, owner), args.table, [&](int64_t at, float value) {
      const int64_t element = args.deal.element(owner, at - first);
      if (element < args.deal.extent) args.sum[element] = value;
    });
  }
}

void CpuBackend::dgc_settle(const DgcSettleArgs& args) {
  if (nothing_to_do(*args.control)) return;
  const DgcDeal& deal = args.deal;
  for (int32_t owner = 0; owner < deal.owners; ++owner) {
    const uint32_t* const row = args.rows + owner * deal.row();
    for (int32_t i = 0; i < deal.room && row[i] != DgcDeal::kEmpty; ++i) {
      const int64_t element = deal.element(owner, row[i]);
      if (args.sum[element] == 0) {
        args.v[element] += std::bit_cast<float>(row[deal.room + i]);
      } else if (args.u != nullptr) {
        args.u[element] = 0;
      }
    }
  }
}

}  // namespace dgc
