#include "train/batch_input.h"

namespace dgc {

BatchInput::BatchInput(Backend& backend, const Network& network, int64_t most_rows, DType activations)
    : backend_(backend), network_(network), activations_(activations) {
  Device& device = *backend.device();
  const auto pixels = static_cast<size_t>(network.shape(0, most_rows).numel());
  const auto rows = static_cast<size_t>(most_rows);
  images_ = Buffer(backend.device(), pixels * dtype_size(activations));
  labels_ = Buffer(backend.device(), rows * sizeof(int32_t));
  image_upload_ = device.make_upload(pixels * sizeof(float));
  label_upload_ = device.make_upload(rows * sizeof(int32_t));
}

void BatchInput::stage(const Batch& batch) {
  staged_rows_ = static_cast<int64_t>(batch.labels.size());
  image_upload_->stage(batch.images.data(), batch.images.size() * sizeof(float));
  label_upload_->stage(batch.labels.data(), batch.labels.size() * sizeof(int32_t));
}

void BatchInput::arrive() {
  rows_ = staged_rows_;
  backend_.convert({image_upload_->arrive(), images().shape}, images());
  image_upload_->release();
  backend_.device()->copy(labels_.data(), label_upload_->arrive(), labels().bytes());
  label_upload_->release();
}

}  // namespace dgc
