#include "kernels/cuda/rnn_cache.h"

#include "tensor/errors.h"

namespace dgc::cuda {
namespace {

constexpr size_t kWeightIh = 0, kWeightHh = 1, kBiasIh = 2, kBiasHh = 3;

// cuDNN defines all cells as RnnArgs does; its GRU, too, resets after the recurrent product.
cudnnRNNMode_t cell_mode(RnnCell cell) {
  switch (cell) {
    case RnnCell::lstm:
      return CUDNN_LSTM;
    case RnnCell::gru:
      return CUDNN_GRU;
    case RnnCell::tanh:
      return CUDNN_RNN_TANH;
    case RnnCell::relu:
      return CUDNN_RNN_RELU;
  }
  throw InternalError("an unknown cell");
}

// Earlier versions have recurrent layers in fp32 and fp16 only.
constexpr size_t kFirstWithBf16 = 91300;  // as cudnnGetVersion() counts

void require_type(DType type) {
  if (type != DType::bf16 || cudnnGetVersion() >= kFirstWithBf16) return;
  throw_user_error(
      "precision: bf16 needs cuDNN 9.13 or newer for recurrent layers, and this is cuDNN {}; install a newer "
      "one, or set precision to \"fp16\", \"tf32\" or \"fp32\"",
      cudnn_version());
}

int64_t numel(cudnnTensorDescriptor_t tensor) {
  cudnnDataType_t type;
  int rank = 0, sizes[3] = {}, strides[3] = {};
  check(cudnnGetTensorNdDescriptor(tensor, 3, &type, &rank, sizes, strides), "cudnnGetTensorNdDescriptor");
  int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= sizes[i];
  return n;
}

}  // namespace

PreparedRnn::PreparedRnn(cudnnHandle_t dnn, const std::shared_ptr<Device>& device, const RnnKey& key, Fp32Math math)
    : lengths(device, static_cast<size_t>(key.args.batch) * sizeof(int32_t)), type_(key.type) {
  require_type(key.type);
  describe(dnn, key, math);
  check(cudnnGetRNNWeightSpaceSize(dnn, rnn, &weight_bytes), "cudnnGetRNNWeightSpaceSize");
  check(cudnnGetRNNTempSpaceSizes(dnn, rnn, CUDNN_FWD_MODE_TRAINING, x, &training_bytes, &reserve_bytes),
        "cudnnGetRNNTempSpaceSizes");
  size_t no_reserve = 0;
  check(cudnnGetRNNTempSpaceSizes(dnn, rnn, CUDNN_FWD_MODE_INFERENCE, x, &inference_bytes, &no_reserve),
        "cudnnGetRNNTempSpaceSizes");
  find_pieces(dnn, device, key);
}

void PreparedRnn::describe(cudnnHandle_t dnn, const RnnKey& key, Fp32Math math) {
  const RnnArgs& a = key.args;
  const int steps = to_int(a.steps), batch = to_int(a.batch), in = to_int(a.in), hidden = to_int(a.hidden);
  const cudnnDataType_t type = dnn_type(key.type);
  check(cudnnSetDropoutDescriptor(dropout_, dnn, 0, nullptr, 0, 0), "cudnnSetDropoutDescriptor");
  // The standard algorithm takes one product after the other. The other algorithms keep weights in registers or shared
  // memory across steps, which works only where the weights fit.
  check(cudnnSetRNNDescriptor_v8(rnn, CUDNN_RNN_ALGO_STANDARD, cell_mode(a.cell),
                                 a.biases ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS, CUDNN_UNIDIRECTIONAL,
                                 CUDNN_LINEAR_INPUT, type, CUDNN_DATA_FLOAT, math_type(key.type, math), in, hidden,
                                 hidden, 1, dropout_, CUDNN_RNN_PADDED_IO_DISABLED),
        "cudnnSetRNNDescriptor_v8");
  const std::vector<int> all_steps(static_cast<size_t>(batch), steps);
  const auto set_data = [&](cudnnRNNDataDescriptor_t data, int width) {
    check(cudnnSetRNNDataDescriptor(data, type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, steps, batch, width,
                                    all_steps.data(), nullptr),
          "cudnnSetRNNDataDescriptor");
  };
  set_data(x, in);
  set_data(y, hidden);
  const int sizes[] = {1, batch, hidden}, strides[] = {batch * hidden, hidden, 1};
  check(cudnnSetTensorNdDescriptor(state, type, 3, sizes, strides), "cudnnSetTensorNdDescriptor");
  lengths.device().copy_in(lengths.data(), all_steps.data(), lengths.bytes());
}

// cuDNN numbers the matrices in PyTorch's order: those for the input, one per gate, then those for the state.
void PreparedRnn::find_pieces(cudnnHandle_t dnn, const std::shared_ptr<Device>& device, const RnnKey& key) {
  const Buffer space(device, weight_bytes);  // only its address counts
  const int64_t hidden = key.args.hidden, gates = key.args.gates() / hidden;
  for (const bool biases : {false, true}) {
    if (biases && !key.args.biases) break;
    for (int32_t number = 0; number < 2 * gates; ++number) {
      void *matrix = nullptr, *bias = nullptr;
      check(cudnnGetRNNWeightParams(dnn, rnn, 0, weight_bytes, space.data(), number, matrix_, &matrix, bias_, &bias),
            "cudnnGetRNNWeightParams");
      const bool of_input = number < gates;
      const int64_t gate = number % gates, width = of_input ? key.args.in : hidden;
      if (biases) {
        add_piece(key, space.data(), of_input ? kBiasIh : kBiasHh, gate * hidden, bias_, bias);
      } else {
        add_piece(key, space.data(), of_input ? kWeightIh : kWeightHh, gate * hidden * width, matrix_, matrix);
      }
    }
  }
  int64_t total = 0;
  for (const Piece& piece : pieces) total += piece.numel;
  const int64_t columns = key.args.in + hidden + (key.args.biases ? 2 : 0);
  DGC_CHECK(total == key.args.gates() * columns, "cuDNN has other weights than this cell's");
}

void PreparedRnn::add_piece(const RnnKey& key, const void* space, size_t tensor, int64_t from,
                            cudnnTensorDescriptor_t desc, const void* at) {
  DGC_CHECK(at != nullptr, "cuDNN has no such weights");
  const auto bytes = static_cast<const std::byte*>(at) - static_cast<const std::byte*>(space);
  const Piece piece{tensor, from, static_cast<int64_t>(bytes) / static_cast<int64_t>(dtype_size(key.type)),
                    numel(desc)};
  if (!pieces.empty()) {
    Piece& last = pieces.back();
    if (last.tensor == tensor && last.from + last.numel == from && last.to + last.numel == piece.to) {
      last.numel += piece.numel;
      return;
    }
  }
  pieces.push_back(piece);
}

const float* PreparedRnn::weight_space(const RnnPointers& tensors) const {
  if (type_ != DType::f32) return nullptr;
  const float* const begin = tensors[pieces[0].tensor] + pieces[0].from - pieces[0].to;
  int64_t total = 0;
  for (const Piece& piece : pieces) {
    if (tensors[piece.tensor] + piece.from != begin + piece.to) return nullptr;
    total += piece.numel;
  }
  return float_bytes(total) == weight_bytes ? begin : nullptr;
}

const PreparedRnn& RnnCache::get(cudnnHandle_t dnn, const RnnKey& key) {
  const auto known = prepared_.find(key);
  if (known != prepared_.end()) return *known->second;
  return *prepared_.emplace(key, std::make_unique<PreparedRnn>(dnn, device_, key, math_)).first->second;
}

}  // namespace dgc::cuda
