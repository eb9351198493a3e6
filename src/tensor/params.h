#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/device.h"
#include "tensor/view.h"

namespace dgc {

// How a parameter is initialised.
struct Init {
  enum class Kind { constant, uniform, normal } kind = Kind::constant;
  // The constant, the half-width of uniform(-value, value), or the standard deviation of normal(0, value).
  float value = 0;
};

struct ParamSpec {
  std::string name;  // PyTorch's: "layer1.0.conv1.weight"
  Shape shape;       // PyTorch's order and layout
  Init init;
  bool frozen = false;  // training leaves it as it is
};

// True for biases and for scale and shift of BatchNorm, which have fewer than two dimensions.
inline bool is_small(const ParamSpec& spec) { return spec.shape.rank() < 2; }

// Where each parameter lies in a flat arena. Weights, gradients, u, v and momentum are all arenas of one layout, so one
// offset finds a parameter in every one of them. Each tensor starts on a 64-byte boundary; the gaps stay zero. The
// small tensors (is_small) lie behind all others, so that they can be taken for one tensor. Frozen tensors lie behind
// everything: what is trained lies as in a layout of trained_specs() alone, and an optimizer knows only that one.
class ParamLayout {
 public:
  explicit ParamLayout(std::vector<ParamSpec> specs);  // throws InternalError on a repeated name

  int size() const { return static_cast<int>(specs_.size()); }
  const ParamSpec& spec(int i) const { return specs_[static_cast<size_t>(i)]; }
  int64_t offset(int i) const { return offsets_[static_cast<size_t>(i)]; }  // in elements
  int64_t numel(int i) const { return spec(i).shape.numel(); }
  int64_t parameters() const { return parameters_; }  // elements of all parameters, without the gaps
  int64_t extent() const { return extent_; }          // elements of an arena, which include the gaps
  // These two may be called only on a layout without frozen tensors. The small tensors lie from small_offset() to
  // extent(), and have small_parameters() elements without the gaps.
  int64_t small_offset() const { return small_offset_; }
  int64_t small_parameters() const { return small_parameters_; }

 private:
  std::vector<ParamSpec> specs_;
  std::vector<int64_t> offsets_;
  int64_t parameters_ = 0;
  int64_t extent_ = 0;
  int64_t small_offset_ = 0;
  int64_t small_parameters_ = 0;
};

std::vector<ParamSpec> trained_specs(std::vector<ParamSpec> specs);  // those that are not frozen, in their order

// fp32 memory for all parameters of one layout, zeroed when it is made. The layout must outlive the arena.
class Arena {
 public:
  Arena(std::shared_ptr<Device> device, const ParamLayout& layout, MemoryUse use = MemoryUse::other)
      : layout_(&layout), buffer_(std::move(device), float_bytes(layout.extent()), use) {}

  const ParamLayout& layout() const { return *layout_; }
  float* data() const { return buffer_.f32(); }
  int64_t extent() const { return layout_->extent(); }
  size_t bytes() const { return buffer_.bytes(); }
  View view(int i) const { return {data() + layout_->offset(i), layout_->spec(i).shape}; }
  Device& device() const { return buffer_.device(); }

 private:
  const ParamLayout* layout_;
  Buffer buffer_;
};

// Fills every parameter as its spec says. The numbers depend on (seed, parameter name, element) alone.
void initialize(const Arena& weights, uint64_t seed);

}  // namespace dgc
