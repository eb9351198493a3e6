#include "models/network.h"

#include <algorithm>

#include "layers/cross_entropy.h"

namespace dgc {
namespace {

Shape with_batch(const Shape& shape, int64_t batch) {
  Shape result = shape;
  result[0] = batch;
  return result;
}

// Throws UserError above kMost numbers, which are far more than fits any memory, and few enough that no sum of bytes
// overflows.
void require_countable(const std::string& what, const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 36;
  int64_t numel = 1;
  for (const int64_t size : shape) {
    if (!__builtin_mul_overflow(numel, size, &numel) && numel <= kMost) continue;
    throw_user_error(
        "{}: {} is more than the 2^36 numbers that a tensor may have; make the model, its input or the "
        "batch smaller",
        what, shape.str());
  }
}

int append_named(std::vector<ParamSpec>& to, const std::string& node, std::vector<ParamSpec> specs) {
  for (ParamSpec& spec : specs) {
    spec.name = node + "." + spec.name;
    require_countable(spec.name, spec.shape);
    to.push_back(std::move(spec));
  }
  return static_cast<int>(specs.size());
}

}  // namespace

Network::Network(const Shape& sample, Input input) : input_(input), loss_(std::make_unique<CrossEntropy>()) {
  DGC_CHECK(sample.rank() < Shape::kMaxRank, "no room for the batch");
  std::vector<int64_t> sizes = {1};
  sizes.insert(sizes.end(), sample.begin(), sample.end());
  shapes_.emplace_back(std::span<const int64_t>(sizes));
}

int Network::add(const std::string& name, std::unique_ptr<Layer> layer, std::vector<int> inputs) {
  DGC_CHECK(loss_params_.empty(), "layer " + name + " comes after the loss");
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
  require_countable("layer " + name, shapes_.back());
  Node node{.name = name, .layer = std::move(layer), .inputs = std::move(inputs)};
  node.first_param = static_cast<int>(params_.size());
  node.first_buffer = static_cast<int>(buffers_.size());
  node.first_state = static_cast<int>(state_.size());
  node.params = append_named(params_, name, node.layer->params());
  node.buffers = append_named(buffers_, name, node.layer->buffers());
  node.states = append_named(state_, name, node.layer->state(in));
  nodes_.push_back(std::move(node));
  return output();
}

void Network::set_loss(const std::string& name, std::unique_ptr<Loss> loss, const std::vector<Tie>& ties) {
  DGC_CHECK(loss_params_.empty(), "a network has one loss");
  try {
    loss->logits_shape(shapes_.back());
  } catch (const UserError& error) {
    throw_user_error("loss {}: {}", name, error.what());
  }
  for (const ParamSpec& spec : loss->params()) {
    const auto tie = std::ranges::find(ties, spec.name, &Tie::own);
    if (tie == ties.end()) {
      loss_params_.push_back(static_cast<int>(params_.size()));
      own_loss_params_ += append_named(params_, name, {spec});
      continue;
    }
    const auto shared = std::ranges::find(params_, tie->of, &ParamSpec::name);
    DGC_CHECK(shared != params_.end(), "loss " + name + " is tied to " + tie->of + ", which does not exist");
    if (shared->shape != spec.shape) {
      throw_user_error("loss {}: its {} {} cannot be {}, which is {}", name, spec.name, spec.shape.str(), tie->of,
                       shared->shape.str());
    }
    loss_params_.push_back(static_cast<int>(shared - params_.begin()));
    ties_.push_back({name + "." + spec.name, tie->of});
  }
  loss_ = std::move(loss);
}

int Network::freeze(const std::string& name) {
  const auto is_meant = [&](const std::string& one) { return one == name || one.starts_with(name + "."); };
  int found = 0;
  for (ParamSpec& spec : params_) {
    const bool is_tied =
        std::ranges::any_of(ties_, [&](const Tie& tie) { return tie.of == spec.name && is_meant(tie.own); });
    if (!is_meant(spec.name) && !is_tied) continue;
    spec.frozen = true;
    ++found;
  }
  return found;
}

Shape Network::shape(int tensor, int64_t batch) const {
  if (tensor == 0) return with_batch(shapes_[0], batch);
  return batch == 1 ? shapes_[static_cast<size_t>(tensor)] : shapes(batch)[static_cast<size_t>(tensor)];
}

std::vector<Shape> Network::shapes(int64_t batch) const {
  std::vector<Shape> all = {with_batch(shapes_[0], batch)};
  require_countable("the input", all[0]);
  for (const Node& node : nodes_) {
    std::vector<Shape> in;
    for (const int input : node.inputs) in.push_back(all[static_cast<size_t>(input)]);
    all.push_back(node.layer->output_shape(in));
    require_countable("layer " + node.name, all.back());
  }
  return all;
}

}  // namespace dgc
