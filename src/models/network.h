#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/layer.h"

namespace dgc {

// A network is a list of named layers, each reading tensors that came before it. Tensor 0 is the input, tensor i + 1
// the output of node i, and the last one the output of the network.
class Network {
 public:
  struct Node {
    std::string name;
    std::unique_ptr<Layer> layer;
    std::vector<int> inputs;
    int first_param = 0, params = 0;    // in params()
    int first_buffer = 0, buffers = 0;  // in buffers()
  };

  // sample: the shape of one input, without the batch.
  explicit Network(const Shape& sample);

  // Returns the tensor that the layer writes. Throws UserError, with the layer's name before it, when shapes do not
  // fit.
  int add(const std::string& name, std::unique_ptr<Layer> layer, std::vector<int> inputs);

  const std::vector<Node>& nodes() const { return nodes_; }
  Shape shape(int tensor, int64_t batch = 1) const;
  int output() const { return static_cast<int>(nodes_.size()); }

  // Full names ("layer1.0.conv1.weight"), in the order of the nodes.
  const std::vector<ParamSpec>& params() const { return params_; }
  const std::vector<ParamSpec>& buffers() const { return buffers_; }

 private:
  std::vector<Node> nodes_;
  std::vector<Shape> shapes_;  // of every tensor, at batch 1
  std::vector<ParamSpec> params_;
  std::vector<ParamSpec> buffers_;
};

}  // namespace dgc
