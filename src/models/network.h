#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/loss.h"

namespace dgc {

// A network is a list of named layers, each reading tensors that came before it. Tensor 0 is the input, tensor i + 1
// the output of node i, and the last one the output of the network. A loss says what that output is measured by.
class Network {
 public:
  enum class Input { numbers, tokens };  // numbers: of the type of the activations; tokens: i32

  struct Node {
    std::string name;
    std::unique_ptr<Layer> layer;
    std::vector<int> inputs;
    int first_param = 0, params = 0;    // first index and number in params()
    int first_buffer = 0, buffers = 0;  // first index and number in buffers()
    int first_state = 0, states = 0;    // first index and number in state()
  };
  // A parameter of the loss that is one of the network's: it exists once, and both add to its gradient.
  struct Tie {
    std::string own;  // name in the loss: "weight"
    std::string of;   // name in the network: "encoder.weight"
  };

  // sample: the shape of one input, without the batch.
  explicit Network(const Shape& sample, Input input = Input::numbers);

  // Returns the tensor that the layer writes. Throws UserError, with the layer's name before it, when shapes do not
  // fit.
  int add(const std::string& name, std::unique_ptr<Layer> layer, std::vector<int> inputs);
  // Adds a layer that reads the last tensor so far.
  int append(const std::string& name, std::unique_ptr<Layer> layer) { return add(name, std::move(layer), {output()}); }

  // To be called after the last layer. A network without a loss of its own takes its output as the logits of a cross
  // entropy. Throws UserError as add() does.
  void set_loss(const std::string& name, std::unique_ptr<Loss> loss, const std::vector<Tie>& ties = {});

  // Freezes the parameters of that full name, or whose full names begin with it and a dot. A tied parameter has both of
  // its names. Returns how many there are.
  int freeze(const std::string& name);

  const std::vector<Node>& nodes() const { return nodes_; }
  const Loss& loss() const { return *loss_; }
  // Indices in params() of the loss's parameters, in the loss's order. The last own_loss_params() of params() are the
  // loss's alone.
  const std::vector<int>& loss_params() const { return loss_params_; }
  int own_loss_params() const { return own_loss_params_; }
  DType input_type(DType activations) const { return input_ == Input::tokens ? DType::i32 : activations; }
  // The loss's ties, with full names: {"decoder.weight", "encoder.weight"}.
  const std::vector<Tie>& ties() const { return ties_; }
  Shape shape(int tensor, int64_t batch = 1) const;
  // The shapes of all tensors. The batch need not be every tensor's first size: where it is time, a stride shortens it.
  // Throws UserError, with the layer's name before it, when a tensor would have more than 2^36 numbers.
  std::vector<Shape> shapes(int64_t batch) const;
  // How many numbers the logits have for a label.
  int64_t classes() const { return loss().logits_shape(shape(output()))[1]; }
  int output() const { return static_cast<int>(nodes_.size()); }

  // Full names ("layer1.0.conv1.weight"), in the order of the nodes, the loss last.
  const std::vector<ParamSpec>& params() const { return params_; }
  const std::vector<ParamSpec>& buffers() const { return buffers_; }
  const std::vector<ParamSpec>& state() const { return state_; }  // one worker's state (Layer::state)

 private:
  std::vector<Node> nodes_;
  std::vector<Shape> shapes_;  // shapes of all tensors at batch 1
  std::vector<ParamSpec> params_;
  std::vector<ParamSpec> buffers_;
  std::vector<ParamSpec> state_;
  Input input_;
  std::unique_ptr<Loss> loss_;
  std::vector<int> loss_params_;
  int own_loss_params_ = 0;
  std::vector<Tie> ties_;
};

}  // namespace dgc
