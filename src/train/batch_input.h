#pragma once

#include <memory>

#include "data/batch.h"
#include "models/network.h"

namespace dgc {

// Where a batch lies on the device, at addresses that never change, and how the next one gets there meanwhile.
class BatchInput {
 public:
  // activations: the type in which the network takes what it reads, unless that is tokens.
  BatchInput(Backend&, const Network&, int64_t most_rows, DType activations);

  void stage(const Batch&);  // starts on its way; `batch` may be reused on return
  void arrive();             // queued: from here on the views are the batch staged last

  View x() const { return {x_.data(), network_.shape(0, rows_), type_}; }
  View labels() const { return {labels_.data(), {rows_ * labels_per_row_}, DType::i32}; }

 private:
  Backend& backend_;
  const Network& network_;
  DType type_;
  int64_t labels_per_row_;
  int64_t rows_ = 0, staged_rows_ = 0;
  Buffer x_, labels_;
  std::unique_ptr<Upload> x_upload_, label_upload_;
};

}  // namespace dgc
