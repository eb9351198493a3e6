#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <vector>

#include "models/executor.h"

namespace dgc {

// What every network under test runs in: its weights and their gradients, and the memory that its executors share.
class NetMemory {
 public:
  NetMemory(const Network& net, Backend& backend)
      : layout(net.params()),
        weights(backend.device(), layout),
        gradients(backend.device(), layout),
        device_(backend.device()) {}

  ParamLayout layout;
  Arena weights, gradients;

  std::vector<float> read(const Arena& arena, int i) const {
    std::vector<float> host(static_cast<size_t>(arena.layout().numel(i)));
    device_->copy_out(host.data(), arena.view(i).data, host.size() * sizeof(float));
    return host;
  }
  void write(const Arena& arena, int i, const std::vector<float>& values) const {
    device_->copy_in(arena.view(i).data, values.data(), values.size() * sizeof(float));
  }

  // What others left behind in the memory that executors share.
  void dirty_memory() const {
    const std::vector<unsigned char> nan(memory_.bytes(), 0xff);
    device_->copy_in(memory_.data(), nan.data(), nan.size());
  }

 protected:
  void share(std::initializer_list<Executor*> executors) {
    size_t most = 0;
    for (const Executor* executor : executors) most = std::max(most, executor->activation_bytes());
    memory_ = Buffer(device_, most);
    for (Executor* executor : executors) executor->attach(memory_.data());
  }

 private:
  std::shared_ptr<Device> device_;
  Buffer memory_;
};

}  // namespace dgc
