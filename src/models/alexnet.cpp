#include "models/alexnet.h"

#include "layers/activation.h"
#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/lrn.h"
#include "layers/pool.h"

namespace dgc {
namespace {

// Appends one layer after another.
class Chain {
 public:
  explicit Chain(const Shape& image) : net_(image) {}

  void conv(const std::string& name, const Conv2dOptions& options) {
    net_.append(name, std::make_unique<Conv2d>(options));
    relu(name);
  }
  void norm(const std::string& name) { net_.append(name, std::make_unique<Lrn>(LrnOptions{})); }
  void pool(const std::string& name) { net_.append(name, std::make_unique<Pool>(PoolOptions{PoolKind::max, 3, 2, 0})); }
  void flatten() { net_.append("flatten", std::make_unique<Flatten>()); }
  void linear(const std::string& name, int64_t out) {
    net_.append(name, std::make_unique<Linear>(LinearOptions{net_.shape(net_.output())[1], out}));
  }
  void relu(const std::string& name) {
    net_.append(name + ".relu", std::make_unique<ActivationLayer>(Activation::relu));
  }
  void dropout(const std::string& name, double p) {
    net_.append(name, std::make_unique<Dropout>(DropoutOptions{p}, name));
  }
  Network take() { return std::move(net_); }

 private:
  Network net_;
};

}  // namespace

Network make_alexnet(const AlexNetOptions& options, const Shape& image) {
  Chain net(image);
  net.conv("conv1", {.in = 3, .out = 96, .kernel = 11, .stride = 4, .pad = 2});
  net.norm("norm1");
  net.pool("pool1");
  net.conv("conv2", {.in = 96, .out = 256, .kernel = 5, .pad = 2, .groups = 2});
  net.norm("norm2");
  net.pool("pool2");
  net.conv("conv3", {.in = 256, .out = 384, .kernel = 3, .pad = 1});
  net.conv("conv4", {.in = 384, .out = 384, .kernel = 3, .pad = 1, .groups = 2});
  net.conv("conv5", {.in = 384, .out = 256, .kernel = 3, .pad = 1, .groups = 2});
  net.pool("pool5");
  net.flatten();
  net.linear("fc6", 4096);
  net.relu("fc6");
  net.dropout("drop6", options.dropout);
  net.linear("fc7", 4096);
  net.relu("fc7");
  net.dropout("drop7", options.dropout);
  net.linear("fc8", options.classes);
  return net.take();
}

}  // namespace dgc
