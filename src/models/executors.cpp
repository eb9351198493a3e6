#include "models/executors.h"

#include <algorithm>
#include <set>

namespace dgc {

Executors::Executors(const Network& network, Backend& backend, const std::vector<int64_t>& rows, Executor::Mode mode,
                     DType activations) {
  for (const int64_t some : std::set(rows.begin(), rows.end())) {
    if (some == 0) continue;
    executors_.push_back(std::make_unique<Executor>(network, backend, some, mode, activations));
  }
  DGC_CHECK(!executors_.empty(), "executors for no batch");
}

size_t Executors::activation_bytes() const {
  size_t bytes = 0;
  for (const auto& executor : executors_) bytes = std::max(bytes, executor->activation_bytes());
  return bytes;
}

void Executors::attach(void* memory) {
  for (const auto& executor : executors_) executor->attach(memory);
}

Executor& Executors::for_rows(int64_t rows) {
  const auto found = std::ranges::find_if(executors_, [&](const auto& executor) { return executor->batch() >= rows; });
  DGC_CHECK(found != executors_.end(), fmt::format("a batch of {} rows for executors of {}", rows, most_rows()));
  return **found;
}

std::vector<int64_t> padded_lengths(int64_t longest) {
  constexpr int64_t kShortest = 16;
  std::vector<int64_t> lengths = {longest};
  while (lengths.back() > kShortest) lengths.push_back(lengths.back() * 10 / 11);
  return lengths;
}

}  // namespace dgc
