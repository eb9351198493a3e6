// The check that all others rest on, checked.
#include "tests/layers/gradient_check.h"

#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"

using namespace dgc;

namespace {

// y = tanh(x), with the derivative of another function.
class Wrong final : public Layer {
 public:
  explicit Wrong(Activation derivative) : derivative_(derivative) {}
  Shape output_shape(std::span<const Shape> in) const override { return in[0]; }
  bool keeps_output() const override { return true; }
  void forward(const ForwardArgs& f) const override { f.backend.activation_forward(Activation::tanh, f.x[0], f.y); }
  void backward(const BackwardArgs& b) const override {
    b.backend.activation_backward(derivative_, b.y, b.dy, b.dx[0]);
  }

 private:
  Activation derivative_;
};

}  // namespace

TEST_CASE("the gradient check tells a wrong derivative from the right one", "[layers][grad]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  CHECK(LayerRun(*backend, Wrong(Activation::tanh), {{20}}).worst_gradient_error() < 1e-3);
  CHECK(LayerRun(*backend, Wrong(Activation::sigmoid), {{20}}).worst_gradient_error() > 0.1);
  CHECK(LayerRun(*backend, Wrong(Activation::relu), {{20}}).worst_gradient_error() > 0.1);
}
