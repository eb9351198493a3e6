#include "train/batch_input.h"

namespace dgc {

BatchInput::BatchInput(Backend& backend, const Network& network, int64_t most_rows, DType activations)
    : backend_(backend),
      network_(network),
      type_(network.input_type(activations)),
      labels_per_row_(network.loss().logits_shape(network.shape(network.output()))[0]) {
  Device& device = *backend.device();
  const auto elements = static_cast<size_t>(network.shape(0, most_rows).numel());
  const auto labels = static_cast<size_t>(most_rows * labels_per_row_);
  x_ = Buffer(backend.device(), elements * dtype_size(type_));
  labels_ = Buffer(backend.device(), labels * sizeof(int32_t));
  static_assert(sizeof(float) == sizeof(int32_t));  // images and tokens take as much on their way
  x_upload_ = device.make_upload(elements * sizeof(float));
  label_upload_ = device.make_upload(labels * sizeof(int32_t));
}

void BatchInput::stage(const Batch& batch) {
  staged_rows_ = static_cast<int64_t>(batch.labels.size()) / labels_per_row_;
  if (type_ == DType::i32) {
    x_upload_->stage(batch.tokens.data(), batch.tokens.size() * sizeof(int32_t));
  } else {
    x_upload_->stage(batch.images.data(), batch.images.size() * sizeof(float));
  }
  label_upload_->stage(batch.labels.data(), batch.labels.size() * sizeof(int32_t));
}

void BatchInput::arrive() {
  rows_ = staged_rows_;
  if (type_ == DType::i32) {
    backend_.device()->copy(x_.data(), x_upload_->arrive(), x().bytes());
  } else {
    backend_.convert({x_upload_->arrive(), x().shape}, x());
  }
  x_upload_->release();
  backend_.device()->copy(labels_.data(), label_upload_->arrive(), labels().bytes());
  label_upload_->release();
}

}  // namespace dgc
