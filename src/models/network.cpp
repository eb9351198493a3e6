#include "models/network.h"

namespace dgc {
namespace {

Shape with_batch(const Shape& shape, int64_t batch) {
  Shape result = shape;
  result[0] = batch;
  return result;
}

int append_named(std::vector<ParamSpec>& to, const std::string& node, std::vector<ParamSpec> specs) {
  for (ParamSpec& spec : specs) {
    spec.name = node + "." + spec.name;
    to.push_back(std::move(spec));
  }
  return static_cast<int>(specs.size());
}

}  // namespace

Network::Network(const Shape& sample) {
  DGC_CHECK(sample.rank() < Shape::kMaxRank, "no room for the batch");
  std::vector<int64_t> sizes = {1};
  sizes.insert(sizes.end(), sample.begin(), sample.end());
  shapes_.emplace_back(std::span<const int64_t>(sizes));
}

int Network::add(const std::string& name, std::unique_ptr<Layer> layer, std::vector<int> inputs) {
  DGC_CHECK(static_cast<int>(inputs.size()) == layer->inputs(), "layer " + name + " got a wrong number of inputs");
  std::vector<Shape> in;
  for (const int tensor : inputs) {
    DGC_CHECK(tensor >= 0 && tensor <= output(), "layer " + name + " reads a tensor that does not exist yet");
    in.push_back(shapes_[static_cast<size_t>(tensor)]);
  }
  try {
    shapes_.push_back(layer->output_shape(in));
  } catch (const UserError& error) {
    throw_user_error("layer {}: {}", name, error.what());
  }
  Node node{.name = name, .layer = std::move(layer), .inputs = std::move(inputs)};
  node.first_param = static_cast<int>(params_.size());
  node.first_buffer = static_cast<int>(buffers_.size());
  node.params = append_named(params_, name, node.layer->params());
  node.buffers = append_named(buffers_, name, node.layer->buffers());
  nodes_.push_back(std::move(node));
  return output();
}

Shape Network::shape(int tensor, int64_t batch) const {
  return with_batch(shapes_[static_cast<size_t>(tensor)], batch);
}

}  // namespace dgc
