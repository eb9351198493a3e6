#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dist/communicator.h"

namespace dgc::test {

// A communicator whose deliveries a test may change. It holds another one, which does the work.
class Tampering final : public Communicator {
 public:
  // Is called behind each all_gather, numbered from 0: `all` has been delivered, and `before` lay there until then.
  using Tamper = std::function<void(int call, std::span<std::byte> all, std::span<const std::byte> before)>;

  Tampering(std::unique_ptr<Communicator> good, Tamper tamper)
      : owned_(std::move(good)), good_(*owned_), tamper_(std::move(tamper)) {}
  Tampering(Communicator& good, Tamper tamper) : good_(good), tamper_(std::move(tamper)) {}

  std::string name() const override { return "tampering"; }
  int rank() const override { return good_.rank(); }
  int size() const override { return good_.size(); }
  bool between_processes() const override { return good_.between_processes(); }
  bool recordable() const override { return false; }
  void all_gather(Device& device, const void* mine, void* all, size_t bytes) override {
    const std::span parts(static_cast<std::byte*>(all), bytes * static_cast<size_t>(size()));
    const std::vector<std::byte> before(parts.begin(), parts.end());
    good_.all_gather(device, mine, all, bytes);
    tamper_(calls_++, parts, before);
  }
  void gather_shards(Device& device, std::span<const float* const> workers, float* mine, size_t n) override {
    good_.gather_shards(device, workers, mine, n);
  }
  void barrier(Device& device) override { good_.barrier(device); }
  std::unique_ptr<Communicator> split(const Ranks& ranks) override { return good_.split(ranks); }
  void abort(const std::string& reason) noexcept override { good_.abort(reason); }

 private:
  std::unique_ptr<Communicator> owned_;
  Communicator& good_;
  Tamper tamper_;
  int calls_ = 0;
};

}  // namespace dgc::test
