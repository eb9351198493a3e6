#include "config/data_types.h"

#include <algorithm>

#include "config/table.h"
#include "data/images/open_images.h"
#include "data/speech/open_speech.h"

namespace dgc {
namespace {

template <int64_t side, int64_t channels>
Shape padded(const ImageOptions& o) {
  const int64_t to = std::max(side, o.pad_to);
  return {to, to, channels};
}

int64_t ten_or_chosen(const ImageOptions& o) { return o.only_classes.empty() ? 10 : std::ssize(o.only_classes); }

}  // namespace

const std::vector<DataType>& data_types() {
  using Options = ImageOptions;
  static const std::vector<DataType> all = {
      {.name = "cifar10",
       .is_folder = true,
       .own_side = 32,
       .sample = padded<32, 3>,
       .classes = ten_or_chosen,
       .open = open_cifar10,
       .reader = read_like_cifar10},
      {.name = "mnist",
       .is_folder = true,
       .own_side = 28,
       .sample = padded<28, 1>,
       .classes = ten_or_chosen,
       .open = open_mnist,
       .reader = read_like_mnist},
      {.name = "fashion_mnist",
       .is_folder = true,
       .own_side = 28,
       .sample = padded<28, 1>,
       .classes = ten_or_chosen,
       .open = open_fashion_mnist,
       .reader = read_like_fashion_mnist},
      {.name = "image_folder",
       .is_folder = true,
       .any_size = true,
       .sample =
           [](const Options& o) {
             return Shape{o.image_size, o.image_size, 3};
           },
       .open = open_image_folder,
       .reader = read_like_image_folder},
      {.name = "synthetic",
       .sample =
           [](const Options& o) {
             return Shape{o.synthetic.height, o.synthetic.width, o.synthetic.channels};
           },
       .classes = [](const Options& o) { return o.synthetic.classes; },
       .open = open_synthetic},
      {.name = "text", .kind = DataKind::text},
      {.name = "an4", .kind = DataKind::speech, .is_folder = true, .list = list_an4},
      {.name = "librispeech", .kind = DataKind::speech, .is_folder = true, .has_parts = true, .list = list_librispeech},
      {.name = "speech_manifest",
       .kind = DataKind::speech,
       .is_folder = true,
       .has_parts = true,
       .list = list_manifests}};
  return all;
}

const DataType& data_type(const DataOptions& data) { return row_named(data_types(), data.type); }

bool has_validation_set(const DataOptions& data) {
  return data_type(data).kind == DataKind::text || data.validation_split > 0;
}

}  // namespace dgc
