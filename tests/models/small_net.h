#pragma once

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "tests/kernels/on_device.h"
#include "tests/models/net_memory.h"

namespace dgc {

// A residual network with everything that makes gradients meet: `stem.bn` has three readers, one of which lets its
// gradient lie in dy's own memory, another writes beside it, and a third is an activation that works in place.
inline Network residual_trunk(const Shape& image) {
  Network net(image);
  const auto conv = [](int64_t in, int64_t out) {
    return std::make_unique<Conv2d>(Conv2dOptions{.in = in, .out = out, .kernel = 3, .pad = 1, .bias = false});
  };
  const auto bn = [](bool relu, bool residual) {
    return std::make_unique<BatchNorm>(BatchNormOptions{.channels = 4, .relu = relu, .residual = residual});
  };
  const int stem = net.add("stem.conv", conv(net.shape(0)[3], 4), {0});
  const int shared = net.add("stem.bn", bn(true, false), {stem});
  const int left = net.add("left.conv", conv(4, 4), {shared});
  const int smooth = net.add("smooth", std::make_unique<ActivationLayer>(Activation::tanh), {shared});
  const int first = net.add("first.bn", bn(true, true), {left, shared});
  const int second = net.add("second.conv", conv(4, 4), {first});
  const int both = net.add("second.bn", bn(false, true), {second, smooth});
  net.add("end", std::make_unique<ActivationLayer>(Activation::tanh), {both});
  return net;
}

inline Network residual_net() {
  Network net = residual_trunk({5, 4, 2});
  net.append("flatten", std::make_unique<Flatten>());
  net.append("fc", std::make_unique<Linear>(LinearOptions{5 * 4 * 4, 3}));
  return net;
}

// An executor with all the memory it runs in. The loss is sum(r * y) with a fixed random r.
class NetRun : public NetMemory {
 public:
  NetRun(const Network& net, Backend& backend, int64_t batch, Executor::Mode mode = Executor::Mode::training)
      : NetMemory(net, backend),
        executor(net, backend, batch, mode),
        statistics(net.buffers()),
        buffers(backend.device(), statistics),
        backend_(backend),
        x_(backend, random_floats(net.shape(0, batch).numel(), 1)),
        x_shape_(net.shape(0, batch)),
        r_(random_floats(net.shape(net.output(), batch).numel(), 2, -4, 4)) {
    share({&executor});
    initialize(weights, 3);
    initialize(buffers, 3);
    run.training = mode == Executor::Mode::training;
  }

  Executor executor;
  ParamLayout statistics;
  Arena buffers;
  RunContext run;

  View forward() { return executor.forward(weights, buffers, {x_.view().data, x_shape_}, run); }

  void backward(const std::function<void(int)>& ready = [](int) {}) {
    const View dy = executor.output_gradient();
    backend_.device()->copy_in(dy.data, r_.data(), r_.size() * sizeof(float));
    executor.backward(weights, gradients, {x_.view().data, x_shape_}, run, ready);
  }

  std::vector<float> output() {
    const View y = forward();
    std::vector<float> host(static_cast<size_t>(y.numel()));
    backend_.device()->copy_out(host.data(), y.data, host.size() * sizeof(float));
    return host;
  }

  double loss() {
    const auto y = output();
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(r_[i]) * static_cast<double>(y[i]);
    return sum;
  }

  std::vector<float> all_gradients() const {
    std::vector<float> host(static_cast<size_t>(gradients.extent()));
    backend_.device()->copy_out(host.data(), gradients.data(), gradients.bytes());
    return host;
  }

 private:
  Backend& backend_;
  OnDevice x_;
  Shape x_shape_;
  std::vector<float> r_;
};

}  // namespace dgc
