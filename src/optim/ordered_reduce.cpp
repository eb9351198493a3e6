#include "optim/ordered_reduce.h"

namespace dgc {

OrderedReduce::OrderedReduce(Backend& backend, Communicator& communicator, int local_workers, int64_t n, MemoryUse use)
    : backend_(backend),
      communicator_(communicator),
      n_(n),
      shard_(static_cast<int64_t>(shard_size(static_cast<size_t>(n), communicator.size()))) {
  const int ranks = communicator.size(), workers = local_workers * ranks;
  if (workers == 1) return;
  sum_ = Buffer(backend.device(), float_bytes(shard_ * ranks), use);
  if (ranks == 1) return;
  rows_ = Buffer(backend.device(), float_bytes(shard_ * workers), use);
  mine_ = Buffer(backend.device(), float_bytes(shard_), use);
  for (int worker = 0; worker < workers; ++worker) row_pointers_.push_back(rows_.f32() + worker * shard_);
}

float* OrderedReduce::run(std::span<float* const> local_workers) {
  if (communicator_.size() == 1 && local_workers.size() == 1) return local_workers[0];
  if (communicator_.size() == 1) {
    backend_.ordered_sum(local_workers, sum_.f32(), n_);
    return sum_.f32();
  }
  Device& device = *backend_.device();
  communicator_.gather_shards(device, local_workers, rows_.f32(), static_cast<size_t>(n_));
  backend_.ordered_sum(row_pointers_, mine_.f32(), shard_);
  communicator_.all_gather(device, mine_.data(), sum_.data(), mine_.bytes());
  return sum_.f32();
}

}  // namespace dgc
