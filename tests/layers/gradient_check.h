#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "layers/layer.h"
#include "tests/kernels/on_device.h"

namespace dgc {

// A layer on a backend with everything its interface asks for: inputs, parameters, statistics, output, saved memory and
// gradients. The loss is sum(r * y) with a fixed random r, so r is the gradient of y.
class LayerRun {
 public:
  // Inputs and parameters start at random in [-1, 1].
  LayerRun(Backend& backend, const Layer& layer, std::vector<Shape> in, unsigned seed = 1)
      : backend_(backend), layer_(layer), in_(std::move(in)), out_(layer.output_shape(in_)) {
    for (const Shape& shape : in_) x_.push_back(random_floats(shape.numel(), seed++));
    for (const ParamSpec& spec : layer.params()) params_.push_back(random_floats(spec.shape.numel(), seed++));
    for (const ParamSpec& spec : layer.buffers()) buffers_.emplace_back(spec.shape.numel(), spec.init.value);
    for (const ParamSpec& spec : layer.state(in_)) state_.push_back(random_floats(spec.shape.numel(), seed++));
    r_ = random_floats(out_.numel(), seed);
  }

  RunContext run;
  std::vector<float>& x(size_t i = 0) { return x_[i]; }
  std::vector<float>& param(size_t i) { return params_[i]; }
  std::vector<float>& buffer(size_t i) { return buffers_[i]; }  // also the statistics that forward() has updated
  std::vector<float>& state(size_t i) { return state_[i]; }     // what every pass starts from
  const std::vector<float>& next_state(size_t i) const { return next_state_[i]; }
  std::vector<float>& r() { return r_; }
  const Shape& output_shape() const { return out_; }
  const std::vector<float>& dx(size_t i = 0) const { return dx_[i]; }
  const std::vector<float>& dparam(size_t i) const { return dparams_[i]; }

  std::vector<float> forward() { return Pass(*this).forward(); }

  struct Wanted {
    bool dx = true;
    int in_place = -1;        // the input whose dx lies in dy's memory
    bool adds = false;        // dx is added to ones
    float dparams_start = 0;  // what the gradients of parameters hold before: backward must add
  };
  void backward(const Wanted& wanted) {
    Pass pass(*this);
    pass.forward();
    pass.backward(wanted);
  }
  void backward() { backward(Wanted()); }

  // Largest |analytic - numeric| / max(1, |numeric|) over every dx and dparam. Central differences, summed in double.
  double worst_gradient_error(float eps = 1e-2f) {
    backward();
    double worst = 0;
    for (size_t i = 0; i < x_.size(); ++i) worst = std::fmax(worst, compare(x_[i], dx_[i], eps));
    for (size_t i = 0; i < params_.size(); ++i) worst = std::fmax(worst, compare(params_[i], dparams_[i], eps));
    // A layer must have what it says of its gradients' memory right, too.
    const auto apart = std::pair(dx_, dparams_);
    for (int i = 0; i < layer_.inputs(); ++i) {
      if (!layer_.gradient_in_place(i)) continue;
      backward({.in_place = i});
      if (std::pair(dx_, dparams_) != apart) return INFINITY;
    }
    if (layer_.adds_gradient()) {
      backward({.adds = true});
      for (size_t i = 0; i < dx_.size(); ++i) {
        for (size_t j = 0; j < dx_[i].size(); ++j)
          worst = std::fmax(worst, std::fabs(dx_[i][j] - apart.first[i][j] - 1));
      }
    }
    return worst;
  }

 private:
  // Device memory of one pass. What the layer does not keep, backward gets without data: a layer that reads it crashes.
  struct Pass {
    explicit Pass(LayerRun& owner) : o(owner) {
      for (size_t i = 0; i < o.x_.size(); ++i) x.emplace_back(o.backend_, o.x_[i]);
      for (const auto& p : o.params_) params.emplace_back(o.backend_, p);
      for (const auto& b : o.buffers_) buffers.emplace_back(o.backend_, b);
      for (const auto& s : o.state_) state.emplace_back(o.backend_, s);
      y.emplace(o.backend_, std::vector<float>(static_cast<size_t>(o.out_.numel()), NAN));
      saved = Buffer(o.backend_.device(), o.run.training ? o.layer_.saved_bytes(o.backend_, o.in_, DType::f32) : 0);
    }

    std::vector<float> forward() {
      const auto xs = const_views(x, o.in_, true), ps = const_views(params, shapes(o.layer_.params()), true);
      const auto bs = views(buffers, shapes(o.layer_.buffers())), ss = views(state, shapes(o.layer_.state(o.in_)));
      o.layer_.forward({.backend = o.backend_,
                        .run = o.run,
                        .x = xs,
                        .params = ps,
                        .buffers = bs,
                        .state = ss,
                        .y = {y->view().data, o.out_},
                        .saved = {saved.data(), {}}});
      for (size_t i = 0; i < buffers.size(); ++i) o.buffers_[i] = buffers[i].host();
      o.next_state_.clear();
      for (const OnDevice& s : state) o.next_state_.push_back(s.host());
      return y->host();
    }

    void backward(const Wanted& wanted) {
      const OnDevice dy(o.backend_, o.r_);
      std::vector<OnDevice> dx, dparams, sums;
      std::vector<View> dxs;
      for (size_t i = 0; i < o.x_.size(); ++i) {
        dx.emplace_back(o.backend_, std::vector<float>(o.x_[i].size(), 99.f));  // overwritten, not added to
        void* at = static_cast<int>(i) == wanted.in_place ? dy.view().data : dx[i].view().data;
        dxs.push_back({wanted.dx ? at : nullptr, o.in_[i]});
        if (wanted.adds) sums.emplace_back(o.backend_, std::vector<float>(o.x_[i].size(), 1.f));
      }
      const std::vector<View> added = views(sums, o.in_);
      for (const auto& p : o.params_) {
        dparams.emplace_back(o.backend_, std::vector<float>(p.size(), wanted.dparams_start));
      }
      const auto xs = const_views(x, o.in_, o.layer_.keeps_input());
      const auto ps = const_views(params, shapes(o.layer_.params()), true);
      const auto dps = views(dparams, shapes(o.layer_.params()));
      o.layer_.backward({.backend = o.backend_,
                         .run = o.run,
                         .x = xs,
                         .params = ps,
                         .y = ConstView(o.layer_.keeps_output() ? y->view().data : nullptr, o.out_),
                         .saved = {saved.data(), {}},
                         .dy = {dy.view().data, o.out_},
                         .dx = dxs,
                         .add_to = added,
                         .dparams = dps});
      o.dx_.clear(), o.dparams_.clear();
      for (size_t i = 0; i < dx.size(); ++i) {
        o.dx_.push_back(static_cast<int>(i) == wanted.in_place ? dy.host() : (wanted.adds ? sums : dx)[i].host());
      }
      for (const OnDevice& d : dparams) o.dparams_.push_back(d.host());
    }

    static std::vector<Shape> shapes(const std::vector<ParamSpec>& specs) {
      std::vector<Shape> list;
      for (const ParamSpec& spec : specs) list.push_back(spec.shape);
      return list;
    }
    static std::vector<View> views(const std::vector<OnDevice>& data, const std::vector<Shape>& shapes) {
      std::vector<View> list;
      for (size_t i = 0; i < data.size(); ++i) list.push_back({data[i].view().data, shapes[i]});
      return list;
    }
    static std::vector<ConstView> const_views(const std::vector<OnDevice>& data, const std::vector<Shape>& shapes,
                                              bool present) {
      std::vector<ConstView> list;
      for (size_t i = 0; i < data.size(); ++i) list.emplace_back(present ? data[i].view().data : nullptr, shapes[i]);
      return list;
    }

    LayerRun& o;
    std::vector<OnDevice> x, params, buffers, state;
    std::optional<OnDevice> y;
    Buffer saved;
  };

  double loss() {
    const auto y = forward();
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(r_[i]) * static_cast<double>(y[i]);
    return sum;
  }

  double compare(std::vector<float>& at, const std::vector<float>& analytic, float eps) {
    double worst = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      const float keep = at[i];
      at[i] = keep + eps;
      const double up_at = at[i], up = loss();
      at[i] = keep - eps;
      const double down_at = at[i], down = loss();
      at[i] = keep;
      const double numeric = (up - down) / (up_at - down_at);
      const double error = std::fabs(static_cast<double>(analytic[i]) - numeric) / std::fmax(1.0, std::fabs(numeric));
      if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
    }
    return worst;
  }

  Backend& backend_;
  const Layer& layer_;
  std::vector<Shape> in_;
  Shape out_;
  std::vector<std::vector<float>> x_, params_, buffers_, state_, next_state_, dx_, dparams_;
  std::vector<float> r_;
};

}  // namespace dgc
