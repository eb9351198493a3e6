#include "models/executor.h"

#include <algorithm>
#include <array>

namespace dgc {
namespace {

constexpr size_t kMaxViews = 8;  // inputs, parameters or statistics of one layer

// A short list of views on the stack: building it must not allocate.
template <typename V>
struct ViewList {
  std::array<V, kMaxViews> items;
  size_t size = 0;
  void push(const V& view) {
    DGC_CHECK(size < kMaxViews, "a layer with too many views");
    items[size++] = view;
  }
  std::span<const V> span() const { return {items.data(), size}; }
};

// Refuses an arena whose layout is another network's: layers would read and write beyond their tensors in it.
View arena_view(const Arena& arena, const std::vector<ParamSpec>& specs, int i) {
  const ParamSpec& wanted = specs[static_cast<size_t>(i)];
  DGC_CHECK(i < arena.layout().size() && arena.layout().spec(i).shape == wanted.shape,
            "an arena without this network's " + wanted.name);
  return arena.view(i);
}

// The loss's parameters lie at the indices of loss_params(), which need not be consecutive: a tied one is a layer's.
template <typename V>
ViewList<V> loss_views(const Arena& arena, const Network& network) {
  ViewList<V> list;
  for (const int i : network.loss_params()) list.push(arena_view(arena, network.params(), i));
  return list;
}

template <typename V>
ViewList<V> arena_views(const Arena& arena, const std::vector<ParamSpec>& specs, int first, int count) {
  ViewList<V> list;
  for (int i = first; i < first + count; ++i) list.push(arena_view(arena, specs, i));
  return list;
}

}  // namespace

void find_filters(const Network& network, const Arena& weights, const Arena* gradients, std::vector<FilterUse>& uses) {
  uses.clear();
  for (const Network::Node& node : network.nodes()) {
    const std::optional<FilterArgs> filter = node.layer->filter();
    if (!filter) continue;
    FilterUse& use = uses.emplace_back();
    use.filter = *filter;
    use.w = arena_view(weights, network.params(), node.first_param);
    if (gradients != nullptr) use.dw = arena_view(*gradients, network.params(), node.first_param);
  }
}

Executor::Executor(const Network& network, Backend& backend, int64_t batch, Mode mode, DType activations)
    : network_(network),
      backend_(backend),
      batch_(batch),
      shapes_(network.shapes(batch)),
      mode_(mode),
      activations_(activations),
      steps_(network.nodes().size()) {
  DGC_CHECK(backend.supports(activations), "a backend without this type of activations");
  DGC_CHECK(batch > 0 && !network.nodes().empty(), "nothing to run");
  plan_activations();
  if (mode == Mode::training) plan_gradients();
  plan_.solve();
}

size_t Executor::tensor_bytes(int tensor) const {
  return static_cast<size_t>(shape(tensor).numel()) * dtype_size(activations_);
}

void Executor::plan_activations() {
  const auto& nodes = network_.nodes();
  activation_.assign(nodes.size() + 1, kNone);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int tensor = static_cast<int>(i) + 1;
    activation_[i + 1] = plan_.add(tensor_bytes(tensor), forward_time(i), forward_time(i));
    std::vector<Shape> in;
    for (const int input : nodes[i].inputs) {
      in.push_back(shape(input));
      if (input == 0) continue;
      const bool keep = mode_ == Mode::training && nodes[i].layer->keeps_input();
      plan_.extend(activation_[static_cast<size_t>(input)], keep ? backward_time(i) : forward_time(i));
    }
    if (mode_ != Mode::training) continue;
    if (nodes[i].layer->keeps_output()) plan_.extend(activation_[i + 1], backward_time(i));
    const size_t saved = nodes[i].layer->saved_bytes(backend_, in, activations_);
    if (saved > 0) steps_[i].saved = plan_.add(saved, forward_time(i), backward_time(i));
  }
  plan_.extend(activation_.back(), loss_time());
  const size_t scratch = network_.loss().scratch_bytes(shape(network_.output()), activations_);
  if (scratch > 0) loss_scratch_ = plan_.add(scratch, loss_time(), loss_time());
}

// Walks backward once. The first reader of a tensor decides where its gradient lies (in dy's own memory where the layer
// allows it); every later reader writes beside it and adds. A tensor that no trained parameter lies before needs no
// gradient.
void Executor::plan_gradients() {
  const auto& nodes = network_.nodes();
  std::vector<bool> wanted(nodes.size() + 1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::span<const ParamSpec> params(network_.params());
    wanted[i + 1] = !std::ranges::all_of(
        params.subspan(static_cast<size_t>(nodes[i].first_param), static_cast<size_t>(nodes[i].params)),
        &ParamSpec::frozen);
    for (const int input : nodes[i].inputs) wanted[i + 1] = wanted[i + 1] || wanted[static_cast<size_t>(input)];
  }
  gradient_.assign(nodes.size() + 1, kNone);
  gradient_.back() = plan_.add(tensor_bytes(network_.output()), loss_time(), loss_time());
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!wanted[i + 1]) continue;
    const int dy = gradient_[i + 1];
    DGC_CHECK(dy != kNone, "the output of " + nodes[i].name + " leads nowhere");
    plan_.extend(dy, backward_time(i));
    for (size_t input = 0; input < nodes[i].inputs.size(); ++input) {
      const auto tensor = static_cast<size_t>(nodes[i].inputs[input]);
      int dx = kNone, add_to = kNone;
      if (wanted[tensor] && gradient_[tensor] == kNone) {
        const bool in_place = nodes[i].layer->gradient_in_place(static_cast<int>(input));
        dx = in_place ? dy : plan_.add(tensor_bytes(static_cast<int>(tensor)), backward_time(i), backward_time(i));
        gradient_[tensor] = dx;
      } else if (wanted[tensor]) {
        dx = plan_.add(tensor_bytes(static_cast<int>(tensor)), backward_time(i), backward_time(i));
        add_to = gradient_[tensor];
        plan_.extend(add_to, backward_time(i));
        // Memory that two gradients share must not be added to before the other gradient has been read.
        for (size_t other = 1; other <= i; ++other) {
          DGC_CHECK(other == tensor || gradient_[other] != add_to, "gradients of two open tensors share memory");
        }
      }
      steps_[i].dx.push_back(dx);
      steps_[i].add_to.push_back(add_to);
    }
  }
}

void Executor::attach(void* memory) { memory_ = static_cast<std::byte*>(memory); }

View Executor::block_view(int block, const Shape& shape) const {
  if (block == kNone) return {nullptr, shape, activations_};
  return {memory_ + plan_.offset(block), shape, activations_};
}

ConstView Executor::tensor_view(int tensor, ConstView x) const {
  if (tensor == 0) return x;
  return block_view(activation_[static_cast<size_t>(tensor)], shape(tensor));
}

void Executor::check_input(ConstView x) const {
  DGC_CHECK(x.shape == shape(0) && x.dtype == network_.input_type(activations_),
            "input " + x.shape.str() + " does not fit the network");
}

View Executor::forward(const Arena& weights, const Arena& buffers, ConstView x, const RunContext& run) {
  DGC_CHECK(memory_ != nullptr || plan_.bytes() == 0, "attach() memory first");
  check_input(x);
  DGC_CHECK(run.training == (mode_ == Mode::training), "executor planned for another mode");
  DGC_CHECK(run.state != nullptr || network_.state().empty(), "this network needs a state");
  find_filters(network_, weights, nullptr, filters_);
  backend_.with_filters(filters_, activations_, [&] { run_forward(weights, buffers, x, run); });
  return output();
}

void Executor::run_forward(const Arena& weights, const Arena& buffers, ConstView x, const RunContext& run) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Network::Node& node = network_.nodes()[i];
    const Range range(backend_, node.name.c_str());
    ViewList<ConstView> in;
    for (const int input : node.inputs) in.push(tensor_view(input, x));
    const auto params = arena_views<ConstView>(weights, network_.params(), node.first_param, node.params);
    const auto statistics = arena_views<View>(buffers, network_.buffers(), node.first_buffer, node.buffers);
    ViewList<View> state;
    if (node.states > 0) state = arena_views<View>(*run.state, network_.state(), node.first_state, node.states);
    node.layer->forward({.backend = backend_,
                         .run = run,
                         .x = in.span(),
                         .params = params.span(),
                         .buffers = statistics.span(),
                         .state = state.span(),
                         .y = block_view(activation_[i + 1], shape(static_cast<int>(i) + 1)),
                         .saved = block_view(steps_[i].saved, {})});
  }
}

View Executor::output() const { return block_view(activation_.back(), shape(network_.output())); }

void Executor::loss(const Arena& weights, const Arena& gradients, const Target& target) {
  DGC_CHECK(mode_ == Mode::training, "executor planned for evaluation");
  const auto dparams = loss_views<View>(gradients, network_);
  run_loss(weights, target, output_gradient(), dparams.span());
}

void Executor::loss(const Arena& weights, const Target& target) { run_loss(weights, target, {}, {}); }

void Executor::run_loss(const Arena& weights, const Target& target, View dx, std::span<const View> dparams) {
  const Range range(backend_, "loss");
  const auto params = loss_views<ConstView>(weights, network_);
  network_.loss().run({.backend = backend_,
                       .x = output(),
                       .labels = target.labels,
                       .params = params.span(),
                       .scratch = block_view(loss_scratch_, {}),
                       .stats = target.stats,
                       .dx = dx,
                       .dparams = dparams,
                       .gradient_scale = target.gradient_scale,
                       .control = target.control,
                       .lengths = target.lengths});
}

void Executor::logits(const Arena& weights, View to) {
  const View x = output();
  const Shape all = network_.loss().logits_shape(x.shape);
  DGC_CHECK(to.shape == all, fmt::format("logits of the shape {}, not {}", all.str(), to.shape.str()));
  const auto params = loss_views<ConstView>(weights, network_);
  network_.loss().logits(backend_, {x.data, {all[0], x.numel() / all[0]}, x.dtype}, params.span(), to);
}

View Executor::output_gradient() const { return block_view(gradient_.back(), shape(network_.output())); }

void Executor::backward(const Arena& weights, const Arena& gradients, ConstView x, const RunContext& run,
                        const std::function<void(int first)>& ready) {
  DGC_CHECK(mode_ == Mode::training, "executor planned for evaluation");
  check_input(x);
  find_filters(network_, weights, ready ? nullptr : &gradients, filters_);
  backend_.with_filters(filters_, activations_, [&] { run_backward(weights, gradients, x, run, ready); });
}

void Executor::run_backward(const Arena& weights, const Arena& gradients, ConstView x, const RunContext& run,
                            const std::function<void(int first)>& ready) {
  const int loss_params = network_.own_loss_params();
  if (ready && loss_params > 0) ready(static_cast<int>(network_.params().size()) - loss_params);
  for (size_t i = steps_.size(); i-- > 0;) {
    const Network::Node& node = network_.nodes()[i];
    const Step& step = steps_[i];
    if (step.dx.empty()) continue;  // no trained parameter in this node nor before it
    const Range range(backend_, node.name.c_str());
    ViewList<ConstView> in;
    ViewList<View> dx, add_to;
    for (size_t input = 0; input < node.inputs.size(); ++input) {
      ConstView view = tensor_view(node.inputs[input], x);
      if (!node.layer->keeps_input()) view.data = nullptr;
      in.push(view);
      dx.push(block_view(step.dx[input], view.shape));
      add_to.push(block_view(step.add_to[input], view.shape));
    }
    ConstView y = tensor_view(static_cast<int>(i) + 1, x);
    if (!node.layer->keeps_output()) y.data = nullptr;
    const auto params = arena_views<ConstView>(weights, network_.params(), node.first_param, node.params);
    const auto dparams = arena_views<View>(gradients, network_.params(), node.first_param, node.params);
    node.layer->backward({.backend = backend_,
                          .run = run,
                          .x = in.span(),
                          .params = params.span(),
                          .y = y,
                          .saved = block_view(step.saved, {}),
                          .dy = block_view(gradient_[i + 1], y.shape),
                          .dx = dx.span(),
                          .add_to = add_to.span(),
                          .dparams = dparams.span()});
    for (size_t input = 0; input < node.inputs.size(); ++input) {
      if (step.add_to[input] == kNone || node.layer->adds_gradient()) continue;
      backend_.add(dx.items[input], add_to.items[input]);
    }
    if (ready && node.params > 0) ready(node.first_param);
  }
}

}  // namespace dgc
