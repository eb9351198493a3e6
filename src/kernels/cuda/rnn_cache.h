#pragma once

#include <cudnn.h>

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/libraries.h"

namespace dgc::cuda {

struct RnnKey {
  RnnArgs args;
  DType type;
  auto operator<=>(const RnnKey&) const = default;
};

// The parameters of a recurrent layer in the order of RnnWeights; without biases the last two are null.
using RnnPointers = std::array<const float*, 4>;

// What cuDNN needs to know about one recurrent layer. cuDNN wants all parameters in one "weight space" of the
// activations' type.
class PreparedRnn {
 public:
  // Elements [from, from + numel) of parameter `tensor` lie at `to` in the weight space.
  struct Piece {
    size_t tensor;
    int64_t from, to, numel;
  };

  PreparedRnn(cudnnHandle_t, const std::shared_ptr<Device>&, const RnnKey&, Fp32Math);

  // Where the weight space would begin if the parameters, as they lie, were one already; null if they are not: in 16
  // bits, and where other tensors of the arena lie between a layer's matrices and its biases (ParamLayout puts all 1-D
  // tensors last).
  const float* weight_space(const RnnPointers&) const;

  RnnDescriptor rnn;
  RnnDataDescriptor x, y;
  TensorDescriptor state;  // h, and an lstm's c: [1, batch, hidden]
  Buffer lengths;          // i32 [batch] on the device: every stream has all steps
  std::vector<Piece> pieces;
  size_t weight_bytes = 0, training_bytes = 0, inference_bytes = 0, reserve_bytes = 0;

 private:
  void describe(cudnnHandle_t, const RnnKey&, Fp32Math);
  void find_pieces(cudnnHandle_t, const std::shared_ptr<Device>&, const RnnKey&);
  void add_piece(const RnnKey&, const void* space, size_t tensor, int64_t from, cudnnTensorDescriptor_t,
                 const void* at);

  DType type_;
  DropoutDescriptor dropout_;  // no dropout: that is a layer of its own
  TensorDescriptor matrix_, bias_;
};

// Prepares each layer once, at its first use, and keeps it.
class RnnCache {
 public:
  RnnCache(std::shared_ptr<Device> device, Fp32Math math) : device_(std::move(device)), math_(math) {}
  const PreparedRnn& get(cudnnHandle_t, const RnnKey&);

 private:
  std::shared_ptr<Device> device_;
  Fp32Math math_;
  std::map<RnnKey, std::unique_ptr<PreparedRnn>> prepared_;
};

}  // namespace dgc::cuda
