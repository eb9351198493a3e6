#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "models/executor.h"
#include "tests/support/hashed.h"

namespace dgc {

constexpr uint32_t kClasses = 10;

// A network with the weights, images and labels of tests/reference/cases.py.
class HashedModel {
 public:
  HashedModel(Backend& on, Network network, int64_t batch, hashed::NormFill norm = {})
      : backend(on),
        net(std::move(network)),
        params(net.params()),
        statistics(net.buffers()),
        weights(on.device(), params),
        gradients(on.device(), params),
        buffers(on.device(), statistics),
        training(net, on, batch, Executor::Mode::training),
        evaluation(net, on, batch, Executor::Mode::evaluation),
        memory(on.device(), std::max(training.activation_bytes(), evaluation.activation_bytes())),
        images(on.device(), static_cast<size_t>(net.shape(0, batch).numel()) * sizeof(float)),
        labels(on.device(), static_cast<size_t>(batch) * sizeof(int32_t)),
        stats(on.device(), 3 * sizeof(double)) {
    training.attach(memory.data());
    evaluation.attach(memory.data());
    hashed::fill(weights, norm);
    hashed::fill(buffers, norm);
  }

  void load_batch(int seed, int number) {
    const std::string name = fmt::format("s{}b{}", seed, number);
    const auto pixels = hashed::images(name + ".images", training.batch(), net.shape(0)[1]);
    const auto classes = hashed::labels(name + ".labels", training.batch(), kClasses);
    backend.device()->copy_in(images.data(), pixels.data(), images.bytes());
    backend.device()->copy_in(labels.data(), classes.data(), labels.bytes());
  }

  std::vector<float> read(ConstView view) const {
    std::vector<float> values(static_cast<size_t>(view.numel()));
    backend.device()->copy_out(values.data(), view.data, values.size() * sizeof(float));
    return values;
  }

  View evaluate() { return evaluation.forward(weights, buffers, x(), {.training = false}); }

  // Forward and backward. The logits, which the loss's gradient may take the place of, are copied.
  struct Result {
    std::vector<float> logits;
    float loss = 0;
  };
  Result run() {
    const int64_t rows = training.batch();
    const View logits = training.forward(weights, buffers, x(), {});
    Result result{.logits = read(logits)};
    backend.softmax_cross_entropy({.rows = rows, .classes = kClasses, .gradient_scale = 1.f / static_cast<float>(rows)},
                                  logits, {labels.data(), {rows}, DType::i32}, training.output_gradient(),
                                  static_cast<double*>(stats.data()));
    backend.device()->zero(gradients.data(), gradients.bytes());
    training.backward(weights, gradients, x(), {}, [](int) {});
    std::array<double, 3> sums{};
    backend.device()->copy_out(sums.data(), stats.data(), stats.bytes());
    result.loss = static_cast<float>(sums[0] / static_cast<double>(rows));
    return result;
  }

  ConstView x() const { return {images.data(), net.shape(0, training.batch())}; }

  Backend& backend;
  Network net;
  ParamLayout params, statistics;
  Arena weights, gradients, buffers;
  Executor training, evaluation;
  Buffer memory, images, labels, stats;
};

}  // namespace dgc
