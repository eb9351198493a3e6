#pragma once

#include <cudnn.h>

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "kernels/backend.h"

namespace dgc::cuda {

struct LstmKey {
  LstmArgs args;
  DType type;
  auto operator<=>(const LstmKey&) const = default;
};

// The four parameters of an LSTM in the order of LstmWeights.
using LstmPointers = std::array<const float*, 4>;

// What cuDNN needs to know about one LSTM. It wants all parameters in one "weight space" of the activations' type.
class PreparedLstm {
 public:
  // Elements [from, from + numel) of parameter `tensor` lie at `to` in the weight space.
  struct Piece {
    size_t tensor;
    int64_t from, to, numel;
  };

  PreparedLstm(cudnnHandle_t, const std::shared_ptr<Device>&, const LstmKey&, Fp32Math);
  ~PreparedLstm();
  PreparedLstm(const PreparedLstm&) = delete;
  PreparedLstm& operator=(const PreparedLstm&) = delete;

  // Where the weight space would begin if the parameters, as they lie, were one already; null if they are not. In fp32
  // they are, wherever the sizes leave no gaps between tensors of an arena.
  const float* weight_space(const LstmPointers&) const;

  cudnnRNNDescriptor_t rnn = nullptr;
  cudnnRNNDataDescriptor_t x = nullptr, y = nullptr;
  cudnnTensorDescriptor_t state = nullptr;  // h and c: [1, batch, hidden]
  Buffer lengths;                           // i32 [batch] on the device: every stream has all steps
  std::vector<Piece> pieces;
  size_t weight_bytes = 0, training_bytes = 0, inference_bytes = 0, reserve_bytes = 0;

 private:
  void describe(cudnnHandle_t, const LstmKey&, Fp32Math);
  void find_pieces(cudnnHandle_t, const std::shared_ptr<Device>&, const LstmKey&);
  void add_piece(const LstmKey&, const void* space, size_t tensor, int64_t from, cudnnTensorDescriptor_t,
                 const void* at);

  DType type_;
  cudnnDropoutDescriptor_t dropout_ = nullptr;  // none: it is a layer of its own
  cudnnTensorDescriptor_t matrix_ = nullptr, bias_ = nullptr;
};

// Looks each LSTM up once and keeps it.
class RnnCache {
 public:
  RnnCache(std::shared_ptr<Device> device, Fp32Math math) : device_(std::move(device)), math_(math) {}
  const PreparedLstm& get(cudnnHandle_t, const LstmKey&);

 private:
  std::shared_ptr<Device> device_;
  Fp32Math math_;
  std::map<LstmKey, std::unique_ptr<PreparedLstm>> prepared_;
};

}  // namespace dgc::cuda
