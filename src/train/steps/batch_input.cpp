#include "train/steps/batch_input.h"

namespace dgc {

BatchInput::BatchInput(Backend& backend, const Network& network, const Sizes& sizes, DType activations)
    : backend_(backend),
      network_(network),
      sizes_(sizes),
      type_(network.input_type(activations)),
      labels_per_row_(network.loss().logits_shape(network.shape(network.output()))[0]),
      streams_(network.shape(0)[1]) {
  Device& device = *backend.device();
  const auto elements = static_cast<size_t>(network.shape(0, sizes.rows).numel());
  const auto labels = static_cast<size_t>(pads() ? streams_ * (1 + sizes.most_labels) : sizes.rows * labels_per_row_);
  const auto lengths = static_cast<size_t>(pads() ? streams_ : 0);
  x_ = Buffer(backend.device(), elements * dtype_size(type_), MemoryUse::batches);
  labels_ = Buffer(backend.device(), labels * sizeof(int32_t), MemoryUse::batches);
  lengths_ = Buffer(backend.device(), lengths * sizeof(int32_t), MemoryUse::batches);
  static_assert(sizeof(float) == sizeof(int32_t));  // one upload buffer fits values and tokens
  x_upload_ = device.make_upload(elements * sizeof(float));
  label_upload_ = device.make_upload(labels * sizeof(int32_t));
  if (pads()) length_upload_ = device.make_upload(lengths * sizeof(int32_t));
}

View BatchInput::labels() const {
  const Shape shape = pads() ? Shape{streams_, 1 + sizes_.most_labels} : Shape{rows_ * labels_per_row_};
  return {labels_.data(), shape, DType::i32};
}

View BatchInput::lengths() const { return pads() ? View{lengths_.data(), {streams_}, DType::i32} : View{}; }

void BatchInput::stage(const Batch& batch) {
  const int64_t row = network_.shape(0).numel();
  const int64_t numbers = type_ == DType::i32 ? std::ssize(batch.tokens) : std::ssize(batch.values);
  staged_rows_ = numbers / row;
  DGC_CHECK(staged_rows_ * row == numbers && staged_rows_ <= sizes_.rows,
            "a batch of as many rows as there is room for");
  const int64_t labels = pads() ? streams_ * (1 + sizes_.most_labels) : staged_rows_ * labels_per_row_;
  DGC_CHECK(std::ssize(batch.labels) == labels, "the labels of a batch");
  DGC_CHECK(!pads() || std::ssize(batch.lengths) == streams_, "a length for each stream of a batch");
  if (type_ == DType::i32) {
    x_upload_->stage(batch.tokens.data(), batch.tokens.size() * sizeof(int32_t));
  } else {
    x_upload_->stage(batch.values.data(), batch.values.size() * sizeof(float));
  }
  label_upload_->stage(batch.labels.data(), batch.labels.size() * sizeof(int32_t));
  if (pads()) length_upload_->stage(batch.lengths.data(), batch.lengths.size() * sizeof(int32_t));
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
  if (!pads()) return;
  backend_.device()->copy(lengths_.data(), length_upload_->arrive(), lengths().bytes());
  length_upload_->release();
}

}  // namespace dgc
